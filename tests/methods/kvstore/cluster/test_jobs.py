import os
import subprocess
import sys
import time

import mxnet as mx
import pytest
import toy
from faults import within
from mxnet import nd

from mxopt import recipes
from mxopt.core.atomic import by_number
from mxopt.core.plan import Plan
from mxopt.core.records import read_run
from mxopt.methods.kvstore.cluster.launcher import GRACE
from mxopt.train.fit import fit

SWITCHES = ["batch_size=4", "momentum=0.9", "kvstore=dist_sync", "processes=2"]


@pytest.fixture
def job(tmp_path, hosts):
    """Return a function that starts a job of two workers, one on each host, and its record."""
    (tmp_path / "hosts").write_text("\n".join(hosts))
    record = tmp_path / "run.jsonl"

    def start(*words):
        command = [sys.executable, "-m", "mxopt", "run", "--hosts", str(tmp_path / "hosts"),
                   "--record", str(record), *words]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)  # fmt: skip

    return start, record


def trained_alone(epochs, recipe):
    plan = Plan(batch_size=4, momentum=0.9, epochs=epochs)
    return fit(recipe, plan, lambda event, **fields: None)


def carried(host):
    """Return the bytes that the cable of a namespace has carried so far, both ways."""
    words = ["ip", "netns", "exec", host, "cat", "/proc/net/dev"]
    lines = subprocess.run(words, check=True, text=True, capture_output=True).stdout.splitlines()
    [card] = (line.split(":")[1].split() for line in lines if line.strip().startswith("mx"))
    return int(card[0]) + int(card[8])


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("hosts", ["network namespaces"], indirect=True)
def test_two_hosts_train_as_one_and_send_what_is_expected(job, hosts, members):
    """22 images in batches of 4 are 6 steps an epoch.

    The start sends the weights once, and some bytes for each of the network's 10 arrays.
    """
    start, record = job
    words = ["segmentation", *SWITCHES, "epochs=6", "preprocess=cached"]
    options = {"size": 32, "limit": 22, "channels": 32, "norm": "false"}
    words += [word for option in options.items() for word in ("--option", "{}={}".format(*option))]
    before = carried(hosts[0])
    running = start(*words)
    said = running.communicate()[0]
    assert running.returncode == 0, said
    recipe = recipes.load("segmentation", **{**options, "norm": False})
    expected = trained_alone(6, recipe)
    # What differs is the order in which gradients are added, and 36 steps carry it on.
    assert read_run(record).figures["test_loss"] == pytest.approx(expected["test_loss"], abs=2e-4)
    assert within(20, lambda: not members())

    net = recipe.network([mx.cpu()])
    net(nd.zeros((1, 3, 32, 32)))
    parameters = sum(p.data().size for p in net.collect_params().values())
    in_a_step = 8 * parameters * (2 - 1) / 2  # docs/clusters.md
    both_ways = 2 * in_a_step * 6 * 6
    assert both_ways == pytest.approx(carried(hosts[0]) - before, rel=0.1)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("hosts", ["sessions", "ssh"], indirect=True)
@pytest.mark.fault(
    "runs",
    "one of many workers is killed",
    sees="worker 1 on ... ended with ... the same command continues from the checkpoint",
    lost="the steps since the last checkpoint",
)
@pytest.mark.parametrize("where", [["--checkpoints"], ["--checkpoint-steps", "10"]])
def test_a_killed_worker_ends_the_job_which_then_goes_on(job, hosts, members, where, sees):
    start, record = job
    words = ["toy:toy", *SWITCHES, "epochs=4", "--option", "train=300", *where]
    killed = start(*words)
    folder = record.with_suffix(".checkpoints")
    while killed.poll() is None and not list(folder.glob("epoch-*.json")):
        time.sleep(0.01)
    [worker] = members(worker="1")
    worker.kill()
    said = killed.communicate(timeout=GRACE + 60)[0].splitlines()[-1]
    assert killed.returncode == 1
    kept = by_number(folder.glob("epoch-*.json"))[-1]
    sees(said)
    assert f"worker 1 on {hosts[1]} ended" in said
    assert said.endswith(str(kept))
    assert within(20, lambda: not members())

    assert start(*words).wait() == 0
    resumed, expected = read_run(record).figures, trained_alone(4, toy.toy(300))
    assert resumed["resumed_epochs"] == int(kept.stem.split("-")[1])
    assert (resumed["resumed_steps"] == 0) == ("step" not in kept.stem)
    for figure in ("train_loss", "validation_loss", "test_loss"):
        assert resumed[figure] == pytest.approx(expected[figure], abs=1e-5)
    assert not folder.exists()
