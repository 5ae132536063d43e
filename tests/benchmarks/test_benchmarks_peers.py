"""Peers: what they are given, that they compute what mxopt does, and that they end with a run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from benchmarks import arms, given, parts
from benchmarks.cases import ALONE, LAUNCH, STEPS
from benchmarks.products import PRODUCTS
from mxopt import measure
from mxopt.core.plan import Plan
from mxopt.measure import Experiment

PEERS = Path(os.environ.get("MXOPT_PEERS", ".venv-peers/bin/python"))
needs_peers = pytest.mark.skipif(not PEERS.exists(), reason="needs the peers' environment")
SENTENCES = {"recipe": "translation", "limit": 24, "vocabulary": 200}
SMALL = {"layers": 1, "units": 256, "heads": 4, "hidden": 1024, "dropout": 0.0}


def in_peers(code):
    """Run Python code in the peers' environment, and return what it prints as JSON."""
    path = {"PYTHONPATH": str(arms.HERE / "peers")}
    done = subprocess.run([str(PEERS), "-c", code], capture_output=True, text=True,
                          env={**os.environ, **path})  # fmt: skip
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def asked(monkeypatch, part, name, **more):
    found = {}
    monkeypatch.setattr(measure, "interleave", lambda *a, **k: found.update(arms=a[2], **k))
    part(name, 6, Path("nowhere"), **more)
    return found


@pytest.mark.parametrize("name", STEPS)
def test_by_default_few_arms_are_measured_beside_every_peer(monkeypatch, name):
    case = STEPS[name]
    found = asked(monkeypatch, parts._step, name, every=False)
    last = list(case["levers"])[-1]
    launched = list(LAUNCH) if case.get("launch") else []
    assert list(found["arms"]) == ["before", "threads", last, *case["peers"], *launched]
    assert found["again"] == last
    assert set(found["headline"]) <= set(found["pairs"])
    assert {(peer, last) for peer in case["peers"]} <= set(found["pairs"])
    every = asked(monkeypatch, parts._step, name, every=True)["arms"]
    assert all(every[arm] == plan for arm, plan in found["arms"].items())
    assert set(case["levers"]) | set(case["dropped"]) <= set(every)


@pytest.mark.parametrize("name", ALONE)
def test_a_switch_alone_is_measured_beside_the_last_arm_and_its_peers(monkeypatch, name):
    own, found = ALONE[name], asked(monkeypatch, parts._alone, name)
    case = STEPS[own["case"]]
    assert list(found["arms"]) == [*own["changes"], *own["peers"]]
    last = asked(monkeypatch, parts._step, own["case"], every=True)
    name = list(case["levers"])[-1]
    unchanged = next(arm for arm, change in own["changes"].items() if not change)
    base = own.get("base", {})
    switches = {key: value for key, value in base.items() if key in Plan.__dataclass_fields__}
    changed_options = {key: value for key, value in base.items() if key not in switches}
    assert found["arms"][unchanged] == last["arms"][name].replace(**switches)
    assert found["arm_options"][unchanged] == {**last["arm_options"][name], **changed_options}
    [(first, one), (second, other)] = own["changes"].items()
    changed = found["arms"][first].diff(found["arms"][second]).keys() | {
        key for key in {**one, **other}
        if found["arm_options"][first].get(key) != found["arm_options"][second].get(key)
    }  # fmt: skip
    assert changed == one.keys() | other.keys()
    before = last["arms"][list(case["levers"])[-2]]  # one lever, which may replace others
    assert len(changed) == 1 or found["arms"][first] == before
    assert set(found["headline"]) <= set(found["pairs"])
    assert {
        arm: own["peer"]["given"] for arm, own in found["arm_options"].items() if "peer" in own
    } == own["peers"]


def test_every_network_has_a_tuned_peer_and_one_that_does_what_the_last_arm_does():
    for case in STEPS.values():
        levers = {k: v for lever in case["levers"].values() for k, v in lever.items()}
        peers = case["peers"].values()
        assert any(given.TUNED.items() <= own.items() for own in peers)
        assert any("compile" in own for own in peers)
        pieces = levers.get("grad_accumulation", 1)
        assert pieces in {own.get("accumulation", 1) for own in peers}
        if levers.get("cpu_operators"):
            assert any(own.get("shared_dropout") and own.get("fused_loss") for own in peers)
        assert any(own.get("unpadded", False) == levers.get("packed", False) for own in peers)


def test_the_page_explains_all_that_arms_are_given():
    cases = (*STEPS.values(), *ALONE.values())
    peers = [own for case in cases for own in case["peers"].values()]
    peers += [own.get("given", {}) for own in PRODUCTS.values()]
    assert {name for own in peers for name in own} <= given.GIVEN.keys()
    assert all(f"`{name}`" in given.legend() for name in given.GIVEN)


def test_the_table_names_what_each_arm_was_given():
    options = {
        "own": {},
        "new": {"peer": {"given": {"compile": True, "accumulation": 2}}},
        "working": {"peer": {"given": {"launcher": True}, "workers": 2}},
        "plain": {"peer": {"given": {}}},
        "read": {"peer": {"workers": 0}},
    }
    found = Experiment("x", "w", dict.fromkeys(options, Plan()), title="T", arm_options=options)
    assert [row[1:] for row in given.table([found]).rows] == [
        ["new", "`compile`, `accumulation = 2`"],
        ["working", "`launcher`, `workers = 2`"],
        ["plain", "as installed"],
        ["read", "as installed"],
    ]


def test_the_table_has_the_arms_of_every_processor_once():
    first = {"eager": {"peer": {"given": {}}}}
    second = {**first, "best": {"peer": {"given": {"fused_loss": True}}}}
    known = [
        Experiment("x", "w", dict.fromkeys(options, Plan()), title="T", arm_options=options)
        for options in (second, first)
    ]
    assert [row[1] for row in given.table(known).rows] == ["eager", "best"]


@needs_peers
def test_fused_or_without_padding_the_loss_has_the_same_value_and_gradients():
    code = """
import json, torch, step
from networks import Translator
torch.manual_seed(0)
net = Translator(50, 1, 16, 2, 32, 0.0, 9)
words = [torch.randint(50, (3, 7)) for _ in range(3)]
batch = words[0], words[1], torch.tensor([7, 4, 2]), torch.tensor([7, 5, 1]), words[2]
found = []
for loss, net.unpadded in (
    (step.sentence_loss, False), (step.projected_loss, False),
    (step.sentence_loss, True), (step.projected_loss, True),
):
    net.zero_grad()
    value = loss(net, batch)
    (2 * value).backward()
    found.append([value.detach()] + [p.grad for p in net.parameters()])
print(json.dumps([float((a - b).abs().max() / a.abs().max())
                  for other in found[1:] for a, b in zip(found[0], other)]))
"""
    differences = in_peers(code)
    assert len(differences) > 60
    assert max(differences) < 1e-5


@needs_peers
def test_shared_dropout_drops_as_often_and_keeps_the_mean():
    code = """
import json, torch
from translator import Drop
torch.manual_seed(0)
drop = Drop(0.1).train()
drop.rows = torch.nn.functional.dropout(torch.ones(512, 64), 0.1)
x = drop(torch.ones(40, 50, 64))
print(json.dumps([float((x == 0).float().mean()), float(x.mean()), bool((x[0] == x[1]).all())]))
"""
    share, mean, equal = in_peers(code)
    assert share == pytest.approx(0.1, abs=0.01)
    assert mean == pytest.approx(1, abs=0.01)
    assert not equal


@needs_peers
@pytest.mark.parametrize(
    "name",
    [
        "eager",
        "best-halves",
        "best-unpadded",
        "best-bfloat16",
        "best-autocast",
        "best-autocast-unpadded",
    ],
)
def test_a_peer_trains_like_mxopt_with_what_it_is_given(monkeypatch, tmp_path, name):
    monkeypatch.setenv(arms.EXCHANGE, str(tmp_path))
    events = []
    plan = Plan(batch_size=400, bucketing="tokens", optimizer="adam", learning_rate=5e-4,
                epochs=2, preprocess="cached")  # fmt: skip
    options = {**SENTENCES, **SMALL}
    what = {**given.SENTENCE_PEERS, **given.BFLOAT16_PEERS, **given.UNPADDED_BFLOAT16_PEERS}[name]
    peer = {"network": "Translator", "sizes": SMALL, "given": what}
    own = arms.step(plan, lambda *_, **__: None, **options)
    found = arms.step(plan, lambda event, **fields: events.append((event, fields)), peer=peer,
                      **options)  # fmt: skip
    assert found["difference"] < 1e-3
    assert found["compilations_while_timed"] == 0
    assert found["train_loss"] == pytest.approx(own["train_loss"], abs=0.02)
    assert found["cpu_seconds"] > 0
    [(event, facts)] = events
    assert (event, facts["given"]) == ("peer", what)
    assert any("MKL" in line for line in facts["built_with"])
    if "launcher" in what:
        for library in ("libiomp5", "libtcmalloc", "libmkl_intel_cpu"):
            assert any(name.startswith(library) for name in facts["loaded"]), library
        assert facts["variables"]["THP_MEM_ALLOC_ENABLE"] == "1"


@needs_peers
def test_a_peer_without_the_libraries_that_it_is_given_is_refused():
    code = "import json, facts\ntry: facts.check_loaded({'mkl_intel_kernels': True})\n"
    said = in_peers(code + "except SystemExit as error: print(json.dumps(str(error)))")
    assert said == "mkl_intel_kernels needs libmkl_intel_cpu, which is not loaded; run: make peers"


@needs_peers
def test_the_peak_memory_of_a_peer_is_not_that_of_the_process_that_started_it():
    code = """
import subprocess, sys
large = b"x" * 2**31
subprocess.run([sys.executable, "-c", "import facts; print(facts.peak_memory())"])
"""
    assert 2**25 < in_peers(code) < 2**30


@needs_peers
@pytest.mark.parametrize("what", [{}, given.TUNED], ids=["plain", "launcher"])
def test_a_peer_ends_with_a_killed_run(what):
    code = f"""
from benchmarks import arms
print("started", flush=True)
arms.run_peer("multiply.py", {{"size": 3000, "rounds": 10**6, "given": {what!r}}}, print)
"""
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    run.stdout.readline()
    peers = _wait(lambda: _below(run.pid, "multiply.py"))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not any(p.cpu_times().user > 3 for p in peers):
        time.sleep(0.1)
        peers = _below(run.pid, "multiply.py")
    assert peers
    run.send_signal(signal.SIGKILL)
    run.wait()
    _, alive = psutil.wait_procs(peers, timeout=10)
    try:
        assert not alive
    finally:
        for process in alive:
            process.kill()


def _below(pid, script):
    children = psutil.Process(pid).children(recursive=True)
    return [child for child in children if any(script in word for word in child.cmdline())]


def _wait(found, seconds=30):
    deadline = time.monotonic() + seconds
    while not (result := found()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return result
