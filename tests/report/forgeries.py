"""Forgeries: each changes the records of a good experiment; and what ``verify`` then says."""

import copy

from forging import begin, scaled


def divide(records, kinds):
    """Divide the seconds of the runs of an arm by ten, in events of these kinds."""
    for run in records.of("after"):
        inside = [event for event in run if event["event"] in kinds]
        stamps = [event["at"] for event in inside]
        scaled(inside, 0.1)
        for event, at in zip(inside, stamps):
            event["at"] = at
            event.get("figures", {}).update(
                {k: v * 10 for k, v in event.get("figures", {}).items() if k[:7] == "process"}
            )


def seconds_in_figures(records):
    divide(records, ["end"])


def seconds_in_figures_and_epochs(records):
    divide(records, ["end", "epoch"])


def seconds_in_everything_but_stamps(records):
    divide(records, ["end", "epoch", "steps", "check"])


def stamps_too(records):
    for run in records.of("after"):
        scaled(run, 0.1)


def stamps_but_not_of_the_process(records):
    for number in (1, 2):
        before = dict(records.figures("after", number))
        scaled(records.of("after", number)[0], 0.1)
        after = records.figures("after", number)
        after.update({k: before[k] for k in after if k.startswith("process")})


def stamps_and_starts_but_not_the_processor(records):
    for number in (1, 2):
        run = records.of("after", number)[0]
        used = records.figures("after", number)["cpu_seconds"]
        scaled(run, 0.01)
        records.figures("after", number)["cpu_seconds"] = used


def seconds_added(records):
    for run in records.of("before"):
        for event in run:
            if event["event"] in ("steps", "epoch"):
                event["seconds"] *= 2


def preparation_left_out(records):
    for number in (1, 2):
        setup = records.only("after", number, "setup")
        figures = records.figures("after", number)
        figures["training_seconds"] -= setup["preprocessing_seconds"]
        setup["preprocessing_seconds"] = 0.0


def a_better_rate(records):
    records.figures("after")["samples_per_second"] *= 2


def a_shorter_first_step(records):
    records.figures("after")["first_step_seconds"] *= 0.5


def processor_time(records):
    for number in (1, 2):
        records.figures("after", number)["cpu_seconds"] *= 0.1


def a_raised_validation_score(records):
    records.figures("after")["validation_mIoU"] += 0.1


def an_impossible_score(records):
    records.figures("after")["test_mIoU"] = 1.3


def a_lower_loss(records):
    records.figures("after")["train_loss"] *= 0.5


def a_score_that_is_no_number(records):
    records.figures("after")["test_mIoU"] = "nan"


def a_loss_that_is_no_number(records):
    records.only("after", 1, "steps")["losses"][0] = "nan"


def fewer_samples(records):
    records.only("after", 1, "steps")["sizes"][0] -= 1


def an_epoch_less(records):
    run = records.of("after", 1)[0]
    run[:] = [event for event in run if event.get("epoch") != 1]


def a_run_dropped(records):
    records.runs.remove(records.of("after", 2)[0])


def the_first_run_dropped(records):
    records.runs.remove(records.of("after", 1)[0])


def the_worst_run_dropped_and_the_others_numbered_again(records):
    records.runs.remove(records.of("after", 1)[0])
    records.only("after", 2, "start")["run"] = 1


def the_last_repeat_dropped(records):
    records.runs = [run for run in records.runs if run[0]["run"] == 1]


def planned_lowered(records):
    records.head["planned"] = 1


def planned_left_out(records):
    del records.head["planned"]


def a_run_added(records):
    run = copy.deepcopy(records.of("after", 2)[0])
    run[0]["run"] = 3
    records.runs.append(run)


def seeds_swapped(records):
    one, two = records.of("after")
    one[0]["plan"]["seed"], two[0]["plan"]["seed"] = 8, 7


def runs_swapped(records):
    one, two = records.of("after")
    one[0]["run"], two[0]["run"] = 2, 1
    one[0]["plan"]["seed"], two[0]["plan"]["seed"] = 8, 7
    records.runs.sort(key=lambda run: run[0]["run"])


def runs_at_the_same_time(records):
    [run] = records.of("after", 1)
    earlier = [other for other in records.runs if other[0]["started"] < run[0]["started"]]
    before = max(earlier, key=lambda other: other[0]["started"])
    run[0]["started"] = before[0]["started"]
    begin(run, before[-1]["at"] / 2)


def another_processor(records):
    for run in records.of("after"):
        environment = next(event for event in run if event["event"] == "environment")
        environment["cpu"] = {"model": "a faster one"}


def an_inherited_variable(records):
    for run in records.of("after"):
        environment = next(event for event in run if event["event"] == "environment")
        environment.setdefault("variables", {})["OPENBLAS_CORETYPE"] = "Prescott"


def a_variable_of_the_plan(records):
    for run in records.of("after"):
        environment = next(event for event in run if event["event"] == "environment")
        environment.setdefault("variables", {})["MXNET_ENGINE_TYPE"] = "NaiveEngine"


def another_commit(records):
    for run in records.of("after"):
        run[0]["commit"] = "f" * 40


def a_commit_with_changes(records):
    for run in records.runs:
        run[0]["commit"] += "+changes"


def no_commit(records):
    for run in records.runs:
        run[0]["commit"] = ""


def another_source(records):
    for run in records.of("after"):
        run[0]["source"] = "f" * 64


def no_source(records):
    for run in records.runs:
        del run[0]["source"]


def another_score_at_step_0(records):
    for run in records.of("before"):
        next(event for event in run if event["event"] == "check")["validation_mIoU"] = 0.9


def no_score_at_step_0(records):
    run = records.of("after", 1)[0]
    run.remove(next(event for event in run if event["event"] == "check"))


def other_weights(records):
    for run in records.of("after"):
        next(event for event in run if event["event"] == "weights")["hash"] = "f" * 64


def a_goal_below_the_start(records):
    records.head["goal"] = 0.0


def no_goal(records):
    records.head["goal"] = None


def another_plan(records):
    records.only("after", 1, "start")["plan"]["batch_size"] = 8


def other_options(records):
    records.only("after", 1, "start")["options"]["size"] = 96


def no_reason(records):
    records.only("after", 1, "end")["status"] = "failed"


FORGERIES = {
    seconds_in_figures: "its seconds is .*, its events give",
    seconds_in_figures_and_epochs: r"epoch 0 took .* s, its parts",
    seconds_in_everything_but_stamps: "its steps took .* does not explain the",
    stamps_too: "after-01.* ended, and the measurement was not resumed",
    stamps_but_not_of_the_process: "its process took .* its last time stamp is",
    stamps_and_starts_but_not_the_processor: "its cpu_seconds",
    seconds_added: "its steps took .* lie between the time stamps",
    preparation_left_out: "its preparation took .* does not explain the",
    a_better_rate: "its samples_per_second is .*, its events give",
    a_shorter_first_step: "its samples_per_second is .*, its events give",
    processor_time: "its cpu_seconds is .*, its events give",
    a_raised_validation_score: "its validation_mIoU is .*, its events give",
    an_impossible_score: "its test_mIoU is 1.3, which is impossible",
    a_lower_loss: "its train_loss is .*, its events give",
    a_score_that_is_no_number: "counts as a success, and its test_mIoU is not a number",
    a_loss_that_is_no_number: "1 of its steps' losses are not finite",
    fewer_samples: "its steps hold 15 samples",
    an_epoch_less: "trained 1 epochs, its plan asks for 2",
    a_run_dropped: "arm after has 1 runs, 2 were planned",
    the_first_run_dropped: "run 2 of after, but run 1 is missing",
    the_worst_run_dropped_and_the_others_numbered_again: "has the seed 8, run 1 needs 7",
    the_last_repeat_dropped: "arm before has 1 runs, 2 were planned",
    planned_lowered: "2 runs of before, and 1 were planned",
    planned_left_out: "does not say how many runs were planned",
    a_run_added: "3 runs of after, and 2 were planned",
    seeds_swapped: "has the seed 8, run 1 needs 7",
    runs_swapped: "arms have to be interleaved",
    runs_at_the_same_time: r"after-01.* started .* before .* ended",
    another_processor: "ran elsewhere than .*: cpu",
    an_inherited_variable: "ran elsewhere than .*: OPENBLAS_CORETYPE",
    a_variable_of_the_plan: "ran with MXNET_ENGINE_TYPE=NaiveEngine, its plan sets",
    another_commit: "the runs were made by different code",
    a_commit_with_changes: "has changes that nobody can look up",
    no_commit: "names no commit",
    another_source: "the runs were made by different code",
    no_source: "made by version 0.2 or before",
    another_score_at_step_0: "headline before → after: not the same start: validation_mIoU",
    no_score_at_step_0: "has 0 checks before its first step",
    other_weights: "headline before → after: not the same start: other initial weights",
    a_goal_below_the_start: "starts at .*, the goal is 0",
    no_goal: "that was not fixed before",
    another_plan: "ran under another plan than its experiment's: batch_size",
    other_options: "ran under another plan than its experiment's: its options",
    no_reason: "ended as failed without a reason",
}
