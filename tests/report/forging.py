"""A packed experiment in memory, to be changed as a forger would, and sealed again."""

import copy
import json
from datetime import datetime, timedelta

from mxopt.core.events import Seal, event_of, line_of
from mxopt.core.packed import joined


class Records:
    """The lines of a packed experiment.

    Attributes:
        head: the description.
        machines: the lines of machines.
        runs: the events of each run, in the order of the file.
    """

    def __init__(self, path):
        lines = [event_of(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.head, self.machines, self.runs = lines[0], [], []
        for line in lines[1:]:
            if line["event"] == "machine":
                self.machines.append(line)
            elif line["event"] == "start":
                self.runs.append([line])
            else:
                self.runs[-1].append(line)

    def of(self, arm, number=None):
        """Return the events of the runs of an arm."""
        return [
            run for run in self.runs
            if run[0]["arm"] == arm and run[0]["run"] == (number or run[0]["run"])
        ]  # fmt: skip

    def only(self, arm, number, kind):
        """Return the first event of a kind of one run."""
        return next(event for event in self.of(arm, number)[0] if event["event"] == kind)

    def figures(self, arm, number=1):
        """Return the figures of one run."""
        return self.only(arm, number, "end")["figures"]

    def write(self, path, seal=True):
        """Write the experiment, every run with a new seal unless the old ones are kept."""
        for run in self.runs if seal else []:
            self.seal(run)
        lines = [*self.machines, *(event for run in self.runs for event in run)]
        head = {**self.head, "lines": 1 + len(lines)}
        path.write_text("".join(map(line_of, [head, *lines])), encoding="utf-8")

    def seal(self, run):
        """Compute the seal of a run again."""
        seal = Seal()
        for event in run:
            whole = {key: value for key, value in event.items() if key not in ("arm", "run")}
            if event["event"] == "environment":
                number = whole.pop("machine")
                common = {k: v for k, v in self.machines[number - 1].items() if k != "machine"}
                whole = {**joined(common, whole), "event": "environment"}
            computed = seal.add(whole)
        run[-1]["seal"] = computed


def scaled(run, factor):
    """Multiply all seconds of a run, the stamps of its events included."""

    def change(fields):
        for name, value in fields.items():
            if isinstance(value, dict):
                change(value)
            elif isinstance(value, float) and name.endswith("_per_second"):
                fields[name] = value / factor
            elif isinstance(value, float) and (name == "at" or name.endswith("seconds")):
                fields[name] = value * factor

    for event in run:
        change(event)


def tightened(run):
    """Remove the time between stamps that no clock explains, which would be multiplied, too."""
    removed = before = 0.0
    for event in run:
        if event["event"] == "steps":
            timed = event["seconds"]
        elif event["event"] == "setup":
            timed = event["preprocessing_seconds"] + event["evaluation_preprocessing_seconds"]
        else:
            timed = event.get("validation_seconds")
        gap = event["at"] - before
        before = event["at"]
        if timed is not None:
            spare = max(0.0, gap - timed - 0.002)
            removed += spare
            if event["event"] == "setup":
                event["seconds"] -= spare
                run[-1]["figures"]["setup_seconds"] = event["seconds"]
        event["at"] -= removed
    for name in ("process_seconds", "end_to_end_seconds"):
        run[-1]["figures"][name] -= removed


def begin(run, seconds):
    """Move the start of a run."""
    started = datetime.fromisoformat(run[0]["started"]) + timedelta(seconds=seconds)
    run[0]["started"] = started.isoformat(timespec="milliseconds")


def longer(records, factor):
    """Return the records of an experiment that takes longer, consistent in all parts."""
    found = copy.deepcopy(records)
    found.runs.sort(key=lambda run: run[0]["started"])
    passed = 0.0
    for run in found.runs:
        begin(run, passed)
        ended = run[-1]["at"]
        tightened(run)
        scaled(run, factor)
        passed += run[-1]["at"] - ended
    found.runs.sort(key=lambda run: run[0]["run"])
    return json_copy(found)


def json_copy(records):
    """Return the records as if read from a file: no two events share a dictionary."""
    records.runs = [[json.loads(json.dumps(event)) for event in run] for run in records.runs]
    return records
