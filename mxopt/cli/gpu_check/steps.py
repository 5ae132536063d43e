"""The part that trains each recipe for some steps, and looks at its memory and its time."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from mxopt import machine
from mxopt.cli.gpu_check.faults import Fault

MIB = 1 << 20


def steps(quick: bool) -> tuple[str, list[dict]]:
    """Train each recipe for some steps at the chapter's sizes; compare its memory."""
    from mxopt import measure
    from mxopt.cli.gpu_check import networks

    rows, least = [], _on_paper(quick)
    with tempfile.TemporaryDirectory() as folder:
        for name, (plan, options) in networks.chapter(quick).items():
            record, peak = Path(folder, f"{name}.jsonl"), _Peak()
            options = {**options, "evaluate": False}
            with peak:
                run = measure.run("mxopt.chapter.workloads:train", plan, record, options)
            rows.append({"recipe": name, "peak": peak.text, "a step at least": least.get(name, "")})
            if not run.ok:
                raise Fault(f"{name}: {run.reason}", rows)
            rows[-1].update(_of_run(run))
    return f"{len(rows)} recipes train at the chapter's sizes", rows


def _of_run(run) -> dict[str, str]:
    """Return what a run's record says of its memory and its steps, for the table."""
    needs = [need for need in run.only("memory")["needs"] if need["place"] != "the host"]
    estimate = max(need["fixed"] + need["samples"] * need["sample"] for need in needs)
    name, speed = next(item for item in run.figures.items() if item[0].endswith("_per_second"))
    sizes = [size for event in run.all("steps") for size in event["sizes"]][1:]  # without the first
    mean = sum(sizes) / max(1, len(sizes)) / speed
    return {
        "estimate of the peak": f"{estimate / MIB:,.0f} MiB",
        "first step": f"{run.figures['first_step_seconds']:.1f} s",
        "a step": f"{1000 * mean:,.0f} ms",
        "speed": f"{speed:,.1f} {name.replace('_per_second', '')} a second",
    }


def _on_paper(quick: bool) -> dict[str, str]:
    """Return how long each step takes at least on this GPU, if its data sheet is known."""
    from mxopt.cli.gpu_check import expected

    name = machine.gpus()[0].name
    if quick or not any(model.name in name for model in expected.MODELS):
        return {}
    least = {}
    for row in expected.rows():
        if row["GPU"] in name:
            least[row["step"]] = row["float32, at least"]
            least[f"{row['step']}, amp"] = row["float16, at least"]
    return least


class _Peak(threading.Thread):
    """The largest memory of the first GPU that the driver reports, looked up ten times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.before, self.largest, self._stop_it = self._used(), 0, threading.Event()

    def __enter__(self):
        self.start()

    def __exit__(self, *error):
        self._stop_it.set()
        self.join()

    @staticmethod
    def _used() -> int:
        import pynvml

        pynvml.nvmlInit()
        try:
            return pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used
        finally:
            pynvml.nvmlShutdown()

    def run(self):
        while not self._stop_it.wait(0.1):
            self.largest = max(self.largest, self._used() - self.before)

    @property
    def text(self) -> str:
        """The peak, for the table."""
        return f"{self.largest / MIB:,.0f} MiB"
