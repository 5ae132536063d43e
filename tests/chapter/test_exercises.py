"""The exercises: every solution in the notebooks passes its check, and wrong answers get a hint."""

from __future__ import annotations

import json
from pathlib import Path

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt.chapter import exercises
from mxopt.chapter.exercises import chapter, checklist, guides, practice

HERE = Path(__file__).parents[2]
NOTEBOOKS = sorted([*HERE.glob("ch08/*.ipynb"), *HERE.glob("guides/*.ipynb")])


def cells(tag, notebook):
    found = json.loads(notebook.read_text())["cells"]
    for number, cell in enumerate(found):
        if tag in cell["metadata"].get("tags", []):
            yield number, "".join(cell["source"]), found


def exercises_of(notebook):
    """Yield the stub, the solution and the check of every exercise."""
    for number, solution, found in cells("solution", notebook):
        stub, check = found[number - 1], found[number + 1]
        assert "exercise" in stub["metadata"]["tags"]
        yield "".join(stub["source"]), solution, "".join(check["source"]).rstrip(";")


ALL = [
    pytest.param(*parts, id=parts[2].split("(")[0].removeprefix("exercises."))
    for notebook in NOTEBOOKS
    for parts in exercises_of(notebook)
]


class Both:
    """The checks of the chapter and of the guides, by name."""

    def __getattr__(self, name):
        homes = (chapter, guides, checklist, practice)
        return next(getattr(home, name) for home in homes if hasattr(home, name))


def names():
    return {"mx": mx, "nd": nd, "np": np, "gluon": gluon, "autograd": autograd,
            "exercises": Both()}  # fmt: skip


@pytest.mark.parametrize(("stub", "solution", "check"), ALL)
def test_the_solution_is_right_and_the_stub_is_not(stub, solution, check, capsys):
    space = names()
    exec(solution, space)
    assert eval(check, space)
    assert capsys.readouterr().out == "right\n"
    space = names()
    exec(stub, space)
    assert not eval(check, space)
    assert capsys.readouterr().out.startswith("not yet: ")


def test_every_check_is_an_exercise():
    used = {check.split("(")[0].removeprefix("exercises.") for _, _, check in
            (parts.values for parts in ALL)}  # fmt: skip
    assert used == set(exercises.CHECKS)
    for notebook in NOTEBOOKS:
        assert 4 <= len(list(exercises_of(notebook))) <= 6


def no_wait(function):
    import time

    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def waits_at_the_end(function):
    import time

    begin = time.perf_counter()
    function()
    nd.waitall()
    return time.perf_counter() - begin


class Forgetful(gluon.data.Dataset):
    """Prepares a sample whenever it is asked for, and leaves its label where it was."""

    def __init__(self, raw, prepare, device):
        self.raw, self.prepare, self.device = raw, prepare, device

    def __len__(self):
        return len(self.raw)

    def __getitem__(self, index):
        image, label = self.raw[index]
        return self.prepare(image.as_in_context(self.device), label)


def each_the_whole_batch(net, trainer, loss, data, label, contexts):
    with autograd.record():
        losses = [loss(net(data.as_in_context(c)), label.as_in_context(c)) for c in contexts]
    autograd.backward(losses)
    trainer.step(len(data))


def divided_by_their_number(net, loss, x, y, parts):
    begin = 0
    for size in parts:
        with autograd.record():
            own = slice(begin, begin + size)
            value = loss(net(x[own]), y[own]).mean() / len(parts)
        value.backward()
        begin += size


def not_divided(net, loss, x, y, parts):
    begin = 0
    for size in parts:
        with autograd.record():
            value = loss(net(x[begin : begin + size]), y[begin : begin + size]).mean()
        value.backward()
        begin += size


def waits_each_time(net, trainer, loss, batches):
    found = []
    for x, y in batches:
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(len(x))
        found.append(value.mean().asscalar())
    return float(np.mean(found))


def one_by_one(fits, first):
    while fits(first + 1):
        first += 1
    return first


@pytest.mark.parametrize(
    ("check", "answers", "hint"),
    [
        ("one_layer", [lambda w1, b1, w2, b2: (nd.dot(w2, w1), b2)], "passes through the second"),
        ("one_layer", [lambda w1, b1, w2, b2: (nd.dot(w1.T, w2.T), b2)], "(outputs, inputs)"),
        ("one_layer", [lambda w1, b1, w2, b2: (2 * nd.dot(w2, w1), b2)], "in which order"),
        ("faster", [lambda a, b: (a / b - 1, a / b - 1, a / b)], "share of the old time"),
        ("faster", [lambda a, b: (1 - b / a, 1 - b / a, a / b)], "are 0.25"),
        ("faster", [lambda a, b: (1 - b / a, a / b - 1, b / a)], "old time over the new"),
        ("scaled_rate", [lambda rate, batch, larger: rate * larger / batch], "the linear rule"),
        ("scaled_rate", [lambda rate, batch, larger: rate], "twice the rate"),
        ("shares", [lambda s: [a / b for a, b in zip(s, s[1:])]], "add up to 1"),
        (
            "shares",
            [lambda s: [(a - b) / (s[0] - s[-1]) for a, b in zip(s, s[1:])]],
            "ratios multiply",
        ),
        ("accumulate", [not_divided], "times too large"),
        ("accumulate", [divided_by_their_number], "in a smaller part"),
        ("accumulate", [lambda *rest: 0], "there is no gradient"),
        ("one_wait", [waits_each_time], "it waits 3 times"),
        ("one_wait", [lambda *rest: 0.5], "the weights differ"),
        ("waiting", [lambda stages, count: (stages - 1) / (stages * count)], "draw"),
        ("largest_batch", [one_by_one], "double while it fits"),
        ("largest_batch", [lambda fits, first: first], "your search says"),
        ("clock", [no_wait], "still computing"),
        ("clock", [waits_at_the_end], "queued before"),
        ("clock", [lambda function: 1 / 0], "ZeroDivisionError"),
        ("stays_on_device", [Forgetful], "called 10 times"),
        ("lost_in_float16", [[70000.0, 1e-9]], "one more is lost"),
        ("lost_in_float16", [[70000.0, 1e-7, 2e-8, 1e-9]], "1e-07 survives"),
        ("lost_in_float16", [[5.0]], "choose among"),
        ("loss_scale", [100.0], "power of two"),
        ("loss_scale", [2.0**4], "larger scale"),
        ("loss_scale", [2.0**16], "smaller scale"),
        ("data_parallel_step", [each_the_whole_batch], "another step"),
        ("data_parallel_step", [lambda *rest: None], "did not change"),
        ("mean_iou", [lambda found, truth: (found == truth).mean()], "pixel accuracy"),
        ("time_to_target", [lambda seconds, scores, goal: 40], "first time counts"),
        ("parts_of_a_speedup", [4.0, 40 / 60], "60 before"),
        ("is_shown", [dict.fromkeys(["[-0.004, +0.010]", "[-0.020, +0.030]",
                                     "[-0.009, -0.001]"], True)], "lower end, -0.020"),
        ("padding_share", [lambda batches: 0], "longest sentence"),
        ("smoothed_loss", [lambda p, word, s: -np.log(p[word])], "0.1 / 3"),
        ("inverse_sqrt_rate", [lambda step, warmup, peak: peak], "half of the warm-up"),
        ("fair_unit", ["sentences a second"], "short sentences"),
    ],
)  # fmt: skip
def test_a_wrong_answer_gets_a_hint(check, answers, hint, capsys):
    assert not exercises.CHECKS[check](*answers)
    said = capsys.readouterr().out
    assert said.startswith("not yet: ")
    assert hint in said
