"""Ranges of hyper-parameters, as a search's user writes them."""

from __future__ import annotations

import dataclasses

from mxopt.core.errors import PlanError


@dataclasses.dataclass(frozen=True)
class Range:
    """The values of one hyper-parameter.

    Attributes:
        kind: ``float``, ``int``, ``choice`` or ``bool``.
        values: lowest and highest value, or the choices.
        log: whether a number is drawn on a logarithmic scale.
        step: distance of whole numbers.
    """

    kind: str
    values: tuple
    log: bool = False
    step: int = 1

    @classmethod
    def parse(cls, text: str) -> Range:
        """Return the range that is written as ``float:1e-4:1e-2:log`` or ``choice:64,128``.

        >>> Range.parse("int:64:512:64")
        Range(kind='int', values=(64, 512), log=False, step=64)

        Args:
            text: the kind and its values, separated by colons.

        Raises:
            PlanError: it is not of that form.
        """
        kind, *rest = text.split(":")
        log = rest[-1:] == ["log"]
        rest = rest[:-1] if log else rest
        try:
            if kind == "bool" and not rest:
                return cls("choice", (False, True))
            if kind == "choice" and len(rest) == 1:
                return cls("choice", tuple(_value(word) for word in rest[0].split(",")))
            number = {"float": float, "int": int}[kind]
            low, high = (number(word) for word in rest[:2])
            step = int(rest[2]) if len(rest) == 3 and kind == "int" else 1
            if len(rest) > 2 + (kind == "int") or not low < high or step < 1 or (log and low <= 0):
                raise ValueError
            return cls(kind, (low, high), log, step)
        except (KeyError, ValueError, IndexError):
            raise PlanError(
                f"{text!r} is no range; write float:LOW:HIGH, int:LOW:HIGH or int:LOW:HIGH:STEP, "
                "with :log for a logarithmic scale, choice:A,B,C, or bool"
            ) from None

    def suggest(self, trial, name: str):
        """Return Optuna's choice.

        Args:
            trial: an Optuna trial.
            name: name of the hyper-parameter.
        """
        if self.kind == "choice":
            return trial.suggest_categorical(name, self.values)
        if self.kind == "int":
            return trial.suggest_int(name, *self.values, step=self.step, log=self.log)
        return trial.suggest_float(name, *self.values, log=self.log)


def _value(word: str):
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(word.lower(), word)
