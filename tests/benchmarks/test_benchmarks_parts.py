"""The benchmarks' whole epochs and levers: what is run, and what the page says of it."""

import contextlib
import dataclasses
import os
from pathlib import Path
from types import SimpleNamespace

import mxnet as mx
import pytest

from benchmarks import (
    arms,
    beside,
    epochs,
    levers,
    page,
    parts,
    processor_page,
    products,
    sizes,
)
from benchmarks.cases import EPOCHS, STEPS, TRIED
from benchmarks.given import TUNED
from benchmarks.levers import LEVERS
from mxopt import measure, recipes
from mxopt.core.errors import DeviceError
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure import Experiment
from mxopt.methods.input_pipeline.loading import make_loader
from mxopt.train.setup import seed_everything

TINY = {"network": "tiny", "size": 32}
PEERS = Path(os.environ.get("MXOPT_PEERS", ".venv-peers/bin/python"))
needs_peers = pytest.mark.skipif(not PEERS.exists(), reason="needs the peers' environment")
SMALL = {"network": "deeplab_mobilenetv2", "size": 96}
PEER = {
    "given": {"channels_last": True},
    "network": "MobileNetDeepLab",
    "sizes": {"relu6_stages": 16},
}


def written(events):
    return lambda event, **fields: events.append((event, fields))


@pytest.mark.parametrize("preprocess", ["lazy", "cached"])
def test_whole_epochs_are_timed_with_their_validation_and_preparation(preprocess):
    events = []
    plan = Plan(batch_size=2, epochs=2, preprocess=preprocess, learning_rate=0.01)
    found = epochs.run(plan, written(events), train=5, validation=3, **TINY)
    [data] = [fields for event, fields in events if event == "data"]
    each = [fields for event, fields in events if event == "epoch"]
    [setup] = [fields for event, fields in events if event == "setup"]
    assert (data["train"], data["validation"]) == (5, 3)
    assert [epoch["samples"] for epoch in each] == [5, 5]
    inside = sum(epoch["seconds"] + epoch["validation_seconds"] for epoch in each)
    assert found["seconds"] >= inside + setup["seconds"] > 0
    assert found["first_epoch_seconds"] < found["seconds"]
    assert found["validation_mIoU"] == each[-1]["validation_mIoU"]


def test_the_untrained_loss_is_that_of_the_first_weights():
    plan = Plan(batch_size=2, learning_rate=0.5, momentum=0.9, epochs=3)
    options = {**TINY, "norm": False}
    seed_everything(plan.seed)
    recipe = recipes.load("segmentation", **options)
    data, contexts = recipe.data(), [mx.cpu()]
    data = dataclasses.replace(data, validation=data.validation.take(2))
    net = recipe.network(contexts)
    [batch] = make_loader(data, "validation", data.transform, plan, contexts)
    image, mask = batch.shards[0]
    expected = float(recipe.loss(net(image), mask).mean().asscalar())
    assert epochs.untrained_loss(plan, 4, 2, options) == pytest.approx(expected, rel=1e-5)


@needs_peers
@pytest.mark.usefixtures("weights")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_peer_trains_on_the_same_images_in_the_same_order(workers):
    plan = Plan(batch_size=2, epochs=2, learning_rate=0.001, momentum=0.9)
    own = epochs.run(plan, written([]), train=5, validation=3, **SMALL)
    peer = {**PEER, "workers": workers}
    other = epochs.run(plan, written([]), train=5, validation=3, peer=peer, **SMALL)
    assert other["loss_difference"] < 1e-5
    for name in ("train_loss", "validation_loss", "validation_mIoU"):
        assert other[name] == pytest.approx(own[name], abs=1e-3), name
    assert own.keys() <= other.keys()
    assert 0 < other["first_validation_seconds"] < other["first_epoch_seconds"]


@needs_peers
@pytest.mark.usefixtures("weights")
def test_a_peer_of_another_validation_loss_is_refused(monkeypatch):
    def changed(script, job, write):
        return arms.run_peer(
            script, {**job, "untrained_loss": job["untrained_loss"] + 0.002}, write
        )

    monkeypatch.setattr(epochs, "run_peer", changed)
    with pytest.raises(DeviceError, match="validation loss before training differs"):
        epochs.run(Plan(batch_size=2), written([]), train=2, validation=2,
                   peer={**PEER, "workers": 0}, **SMALL)  # fmt: skip


def measured(name, figures, options=None, **description):
    """Return an experiment of one run an arm."""
    runs = {arm: [Run(Path("x"), Plan(), "w", status="ok", figures=own)]
            for arm, own in figures.items()}  # fmt: skip
    plans = description.pop("plans", dict.fromkeys(figures, Plan(epochs=2)))
    return Experiment(name, "w", plans, title="T", runs=runs, arm_options=options or {},
                      **description)  # fmt: skip


def epochs_found():
    more = {"peak_memory_bytes": 2**20, "first_epoch_seconds": 1.0, "validation_loss": 0.1,
            "validation_mIoU": 0.9}  # fmt: skip
    figures = {
        "before": {"seconds": 30.0, **more},
        "after": {"seconds": 10.0, **more},
        "slow": {"seconds": 25.0, "loss_difference": 2e-5, **more},
        "quick": {"seconds": 20.0, "loss_difference": 1e-6, **more},
    }
    sizes = {"train": 16, "validation": 8}
    options = {arm: dict(sizes) for arm in figures}
    for peer in ("slow", "quick"):
        options[peer]["peer"] = {"given": {}}
    return measured("epochs", figures, options)


def test_the_fastest_peer_is_the_one_of_the_fewest_seconds():
    assert beside.best_peer(epochs_found()) == "quick"
    assert page._cell(epochs_found(), "quick").startswith("2.00")


def test_a_comparison_has_a_row_and_a_processor_a_column(monkeypatch):
    monkeypatch.setattr(processor_page, "name", lambda known: f"{len(known)} experiments")
    known = {Path("a"): {"epochs": epochs_found()},
             Path("b"): {"epochs": epochs_found(), "loader": loader_found()}}  # fmt: skip
    table = page._summary(known)
    assert table.columns[2:] == ["1 experiments", "2 experiments"]
    (_, no_target, *both), (_, target, missing, alone) = table.rows
    assert (no_target, target, missing) == ("", "1.5", "not measured")
    assert [cell[:4] for cell in (*both, alone)] == ["2.00", "2.00", "1.50"]
    assert [cell.endswith("; memory 1.00") for cell in (*both, alone)] == [True, True, False]


def case_found(name):
    """Return an experiment with peers of settings alone, and one with a method of mxopt's."""
    speeds = {"own": 4.0, "eager": 1.0, "tuned": 2.0, "by-hand": 4.0}
    gifts = {"eager": {}, "tuned": TUNED, "by-hand": {**TUNED, "unpadded": True}}
    return measured(
        name, {arm: {"per_second": speed} for arm, speed in speeds.items()},
        {arm: {"peer": {"given": own}} for arm, own in gifts.items()},
        figure="per_second", better="higher",
    )  # fmt: skip


def test_peers_with_settings_alone_have_a_line_where_a_rewritten_one_is_the_fastest(monkeypatch):
    monkeypatch.setattr(processor_page, "name", lambda known: "m")
    found = case_found("transformer")
    assert beside.best_peer(found) == "by-hand"
    assert beside.best_peer(found, settings_alone=True) == "tuned"
    known = {Path("a"): {"transformer": found}, Path("b"): {"epochs": epochs_found()}}
    about, table = page._settings_alone(known)
    assert "`compile`, `huge_pages`" in about
    [line] = [each for each in table.splitlines() if each.startswith("| T |")]
    assert line.split(" | ")[1].startswith("2.00")
    assert line.split(" | ")[2].startswith("not measured")
    assert page._settings_alone({Path("b"): {"epochs": case_found("epochs")}}) == []


def test_peers_that_all_have_more_than_settings_have_no_line_of_their_own(monkeypatch):
    monkeypatch.setattr(processor_page, "name", lambda known: "m")
    found = case_found("transformer")
    options = {"by-hand": found.arm_options["by-hand"], "eager": {}, "tuned": {}}
    found = dataclasses.replace(found, arm_options=options)
    assert beside.best_peer(found, settings_alone=True) is None
    assert page._settings_alone({Path("a"): {"transformer": found}}) == []


def test_a_peer_of_better_quality_is_named_beside_the_speed():
    speeds = {"own": [2.0, 2.1, 2.0], "eager": [1.0, 1.0, 1.1]}
    runs = {arm: [Run(Path("x"), Plan(), "w", status="ok",
                      figures={"per_second": value, "test_mIoU": 0.5 + 0.3 * (arm == "eager")})
                  for value in values] for arm, values in speeds.items()}  # fmt: skip
    found = Experiment("x", "w", dict.fromkeys(speeds, Plan()), runs=runs, figure="per_second",
                       better="higher", quality="test_mIoU", margin=0.01, title="T",
                       arm_options={"eager": {"peer": {"given": {}}}},
                       pairs=[("eager", "own")])  # fmt: skip
    said = "faster, test_mIoU lost"
    assert said in beside.verdict(found, "eager", None)
    assert said in page._cell(found, "eager")
    assert said in sizes.parts([found])[1]


def test_a_lucky_median_makes_no_fastest_peer():
    figures = {"own": [10.0, 20.0, 30.0], "lucky": [5.0, 19.0, 29.0], "close": [9.9, 18.0, 27.0]}
    runs = {arm: [Run(Path("x"), Plan(), "w", status="ok", figures={"per_second": value})
                  for value in values] for arm, values in figures.items()}  # fmt: skip
    options = {arm: {"peer": {"given": {}}} for arm in ("lucky", "close")}
    found = Experiment("x", "w", dict.fromkeys(figures, Plan()), arm_options=options, runs=runs,
                       figure="per_second", better="higher")  # fmt: skip
    assert found.median("lucky") > found.median("close")
    assert beside.best_peer(found) == "close"


def test_the_page_has_whole_epochs_beside_the_peer_and_no_target():
    text = "\n".join(beside.epochs(epochs_found()))
    assert (
        "2 epochs of 16 images, with validation on 8 others before the first and after each."
        in text
    )
    assert "`after` relative to the fastest peer (`quick`): 2.0" in text
    assert "Memory: 1.00 times the peer's." in text
    assert "arget" not in text
    assert "differ by 2e-05 at most" in text
    assert "share of the ceiling" not in text


@pytest.mark.parametrize("equal", [True, False])
def test_the_page_says_where_only_mxopt_validated_before_training(equal):
    found = epochs_found()
    check = {"event": "check", "progress": 0.0, "validation_seconds": 2.0}
    found.runs["after"] = [dataclasses.replace(found.runs["after"][0], events=[check])]
    if equal:
        found.runs["quick"][0].figures["first_validation_seconds"] = 4.0
    text = "\n".join(beside.epochs(found))
    assert ("relative to `quick` would be\n2.50" in text) != equal
    assert ("would be" in text) != equal


def asked(monkeypatch, part, name):
    found = {}

    def interleave(name, workload, arms, *, arm_options, **more):
        found.update(arms=arms, options=arm_options, workload=workload, **more)

    monkeypatch.setattr(measure, "interleave", interleave)
    part(name, 1, Path("nowhere"))
    return found


def test_whole_epochs_ask_the_same_images_of_every_arm(monkeypatch):
    found = asked(monkeypatch, parts._epochs, "epochs")
    assert list(found["arms"])[:3] == ["before", "cached", "after"]
    assert found["arms"]["before"].preprocess == "lazy"
    assert found["arms"]["cached"].preprocess == "cached"
    assert found["arms"]["after"].preprocess == "device"
    assert found["arms"]["after"].graph_rewrites == "usual+inverted_residual"
    for arm, plan in found["arms"].items():
        own = found["options"][arm]
        assert EPOCHS["options"].items() <= own.items(), arm
        assert (plan.batch_size * plan.grad_accumulation, plan.epochs) == (4, 2)
    peers = [own["peer"] for own in found["options"].values() if "peer" in own]
    assert {(len(p["given"]), p["workers"]) for p in peers} == {(1, 0), (1, 2), (4, 0), (4, 2)}


def test_levers_are_pairs_with_as_many_images_an_update(monkeypatch):
    found = asked(monkeypatch, parts._levers, "levers")
    assert found["pairs"] == [("at-once", "accumulated"), ("full", "early")]
    for pair in found["pairs"]:
        plans = [found["arms"][arm] for arm in pair]
        assert len({plan.batch_size * plan.grad_accumulation for plan in plans}) == 1, pair
        assert len({found["options"][arm]["limit"] for arm in pair}) == 1, pair
    early = found["options"]["early"]
    # The timed epoch is the last one, and so must be an early one too.
    resized = found["arms"]["early"]
    assert resized.progressive_epochs == resized.epochs
    assert resized.progressive_resizing < early["size"] == found["options"]["full"]["size"]
    assert found["arms"]["accumulated"].grad_accumulation == 4
    assert set(STEPS["mobilenet"]["options"]) <= set(early)


def test_the_page_says_what_levers_keep_and_what_they_change():
    figures = {
        arm: {"samples_per_second": speed, "peak_memory_bytes": size * 2**20, "train_loss": 0.5}
        for arm, speed, size in [("at-once", 4.0, 8000), ("accumulated", 6.0, 2800),
                                 ("full", 6.0, 2800), ("early", 15.0, 2000)]
    }  # fmt: skip
    found = measured("levers", figures, figure="samples_per_second", better="higher")
    table, words = levers.parts(found)
    assert "4 → 6 | 1.50" in table
    assert "8,000 MiB → 2,800 MiB" in table
    assert "0.5 → 0.5" in table
    for name, lever in LEVERS.items():
        assert f"**{name}**. Equal: {lever['equal']}. Not equal: {lever['unequal']}." in words
    assert "Not equal: what is learned" in words


def test_a_lever_that_could_not_run_says_why():
    arms = [arm for lever in LEVERS.values() for arm in lever["arms"]]
    found = measured("levers", {arm: {"samples_per_second": 1.0} for arm in arms},
                     figure="samples_per_second", better="higher")  # fmt: skip
    found.runs["at-once"] = [Run(Path("x"), Plan(), "w", status="refused", reason="no memory")]
    assert "| not measured (no memory) | not measured | at-once refused |" in levers.parts(found)[0]


def test_the_libraries_of_products_differ_in_nothing_else(monkeypatch):
    found = asked(monkeypatch, products.blas, "blas")
    for first, second in found["pairs"]:
        assert found["arms"][first].diff(found["arms"][second]).keys() == {"blas"}
        assert found["options"][first] == found["options"][second]
    assert [found["arms"][arm].blas for arm in found["arms"]] == 2 * ["default", "mkl", "openblas"]


@pytest.mark.parametrize(
    ("options", "operations"),
    [({}, 2 * 64**3), ({"operator": "dot"}, 2 * 64**3),
     ({"operator": "batch_dot", "batch": 8}, 16 * 64**3)],
)  # fmt: skip
def test_a_rate_counts_the_operations_of_the_product(monkeypatch, options, operations):
    @contextlib.contextmanager
    def one_second():
        yield SimpleNamespace(seconds=1.0)

    monkeypatch.setattr(products, "timed", one_second)
    found = products.multiply(Plan(), None, size=64, rounds=1, **options)
    assert found == {"gflop_per_second": operations / 1e9}


@pytest.mark.parametrize("name", TRIED)
def test_what_else_is_tried_differs_from_the_last_arm_in_that_alone(monkeypatch, name):
    found = asked(monkeypatch, parts._tried, name)
    first, *others = found["arms"]
    for arm in others:
        changed = found["arms"][first].diff(found["arms"][arm]).keys()
        own = found["options"][arm]
        changed |= {key for key in own if own[key] != found["options"][first].get(key)}
        assert changed == TRIED[name]["changes"][arm].keys()


def test_the_page_has_a_row_for_each_thing_tried():
    figures = {"every-lever": {"samples_per_second": 4.0, "peak_memory_bytes": 2**20},
               "keep": {"samples_per_second": 3.0, "peak_memory_bytes": 2**21}}  # fmt: skip
    plans = {"every-lever": Plan(), "keep": Plan(allocator="keep")}
    found = measured("tried-resnet", figures, plans=plans, figure="samples_per_second",
                       better="higher")  # fmt: skip
    [row] = beside.tried([found]).rows
    assert row[1] == "allocator: default → keep"
    assert row[2].startswith("0.75")
    assert row[4] == "1 → 2 MiB"


def loader_found():
    speeds = {"workers": 150.0, "cached": 900.0, "torch": 100.0}
    figures = {arm: {"samples_per_second": speed, "first_epoch_seconds": 1.0}
               for arm, speed in speeds.items()}  # fmt: skip
    plans = {arm: Plan(preprocess="cached" if arm == "cached" else "lazy") for arm in speeds}
    return measured("loader", figures, {"torch": {"peer": {"workers": 0}}}, plans=plans,
                    figure="samples_per_second", better="higher")  # fmt: skip


def test_the_loaders_verdict_is_of_an_arm_that_reads_as_the_peer_does():
    found = loader_found()
    _, verdict, *notes = processor_page._loader(found)
    assert "`workers` relative to the fastest peer (`torch`): 1.50" in verdict
    assert notes == [processor_page.BUSY, processor_page.SHORT]
    assert page._cell(found, beside.best_peer(found)).startswith("1.50")


def test_each_thing_that_launch_sets_has_its_line(monkeypatch):
    asked_for = asked(monkeypatch, parts._step, "transformer")
    figures = {"before": 1.0, "threads": 2.0, "launch-copies": 2.4, "launch": 3.0,
               "launch-huge": 6.0}  # fmt: skip
    found = measured(
        "transformer", {arm: {"tokens_per_second": speed} for arm, speed in figures.items()},
        plans={arm: asked_for["arms"][arm] for arm in figures}, pairs=asked_for["pairs"],
        figure="tokens_per_second", better="higher",
    )  # fmt: skip
    lines = [(row[1], row[4].split()[0]) for row in beside.launched([found]).rows]
    threads = f"cpu_threads: None → {found.arms['threads'].cpu_threads}"
    keep, huge = "allocator: default → keep", "pages: default → huge"
    serial = "copies: parallel → serial"
    assert lines == [
        (threads, "2.00"),
        (serial, "1.20"),
        (keep, "1.25"),
        (f"{threads}, {serial}, {keep}", "3.00"),
        (f"{huge} (not set)", "2.00"),
    ]


def test_operators_are_timed_in_the_graph_as_it_is_and_in_the_last_arm(monkeypatch):
    found = asked(monkeypatch, parts._roofline, "roofline")
    for name, case in STEPS.items():
        last = list(case["levers"])[-1]
        plain = found["arms"][f"{name}-static"]
        assert (plain.hybridize, plain.graph_rewrites) == ("static", "none")
        assert not found["options"][f"{name}-static"].get("kernels")
        assert f"{name}-{last}" in found["arms"]
    assert len(found["arms"]) == 2 * len(STEPS)


@pytest.mark.parametrize(("again", "said"), [([4.0, 4.1, 3.9], False), ([3.0, 3.01, 3.02], True)])
def test_the_verdict_says_when_the_same_arm_differs_from_itself(again, said):
    speeds = {"kernels": [4.0, 4.02, 4.01], "kernels-again": again, "eager": [2.0, 2.01, 2.02]}
    runs = {arm: [Run(Path("x"), Plan(), "w", status="ok",
                      figures={"per_second": value, "peak_memory_bytes": 1.0})
                  for value in values] for arm, values in speeds.items()}  # fmt: skip
    found = Experiment("x", "w", dict.fromkeys(speeds, Plan()), runs=runs, figure="per_second",
                       better="higher", again="kernels-again",
                       arm_options={"eager": {"peer": {"given": {}}}})  # fmt: skip
    assert ("measured twice differs by 1.3" in beside.verdict(found, "eager", None)) == said


def test_a_lever_that_was_dropped_is_shown_and_is_not_the_last_arm():
    case, speeds = STEPS["transformer"], {"fused": 4.0, "huge": 3.0, "eager": 2.0}
    plans = {arm: Plan(**case["dropped"].get(arm, {})) for arm in speeds}
    found = measured(
        "transformer", {arm: {"tokens_per_second": speed} for arm, speed in speeds.items()},
        {"eager": {"peer": {"given": {}}}}, plans=plans, figure="tokens_per_second",
        better="higher",
    )  # fmt: skip
    assert beside.last_arm(found) == "fused"
    assert "`fused` relative to the fastest peer (`eager`): 2.00" in beside.verdict(
        found, "eager", 1.2
    )
    assert beside.ladder(found).rows[-1][:2] == ["huge", "pages: default → huge (dropped)"]


def test_levers_are_shown_from_an_older_experiment_that_has_more_of_them():
    def case(**speeds):
        figures = {arm: {"samples_per_second": speed} for arm, speed in speeds.items()}
        return measured("resnet", figures, figure="samples_per_second", better="higher")

    short, long = case(before=1.0, threads=2.0), case(before=1.0, threads=2.0, static=3.0)
    about, table = processor_page._levers(short, None)
    assert about == "The effect of each lever, added to those before it:"
    assert "| static |" not in table
    about, table = processor_page._levers(short, long)
    assert "(ladders/resnet.jsonl)" in about
    assert "| static |" in table


def test_an_arms_variables_are_set_before_anything_is_loaded(monkeypatch):
    monkeypatch.setenv("MXNET_A_SWITCH", "15")

    def load(name, **options):
        raise DeviceError(f"{options} with {os.environ['MXNET_A_SWITCH']}")

    monkeypatch.setattr(recipes, "load", load)
    with pytest.raises(DeviceError, match=r"'size': 32. with 60"):
        arms.step(Plan(), None, environment={"MXNET_A_SWITCH": "60"}, size=32)
