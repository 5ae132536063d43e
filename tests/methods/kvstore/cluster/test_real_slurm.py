"""A real SLURM: its controller, and two nodes on this machine (``make test-cluster``).

Debian's packages are unpacked, not installed, so this needs no root.
"""

import contextlib
import getpass
import os
import socket
import subprocess
import sys

import pytest
import toy
from faults import within
from real import REAL
from test_jobs import trained_alone

from mxopt.cli.main import main
from mxopt.core.records import read_run

SLURM = REAL / "slurm"
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
PluginDir={plugins}
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2
PartitionName=all Nodes=n[1-2] Default=YES State=UP
"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("", 0))
        return [one.getsockname()[1] for one in sockets]


def own_address():
    """Return this machine's address in a network; nodes refuse the loopback's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine is in no network")
        return probe.getsockname()[0]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Yield a function that runs a command of SLURM, with two idle nodes behind it."""
    if not (SLURM / "usr" / "sbin" / "slurmctld-wlm").exists():
        pytest.skip("no SLURM is set up: make test-cluster")
    folder = tmp_path_factory.mktemp("slurm")
    [plugins] = SLURM.glob("usr/lib/*/slurm-wlm")
    for name in ("state", "n1", "n2"):
        (folder / name).mkdir()
    text = CONFIGURATION.format(
        host=socket.gethostname().partition(".")[0],
        folder=folder,
        user=getpass.getuser(),
        plugins=plugins,
        ports=free_ports(3),
    )
    (folder / "slurm.conf").write_text(text)
    libraries = [plugins, plugins.parent, *SLURM.glob("lib/*-linux-gnu")]
    variables = {
        "SLURM_CONF": str(folder / "slurm.conf"),
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)),
        "PATH": os.pathsep.join([str(SLURM / "usr" / "bin"), os.environ["PATH"]]),
    }
    daemons = SLURM / "usr" / "sbin"
    stepd = daemons / "slurmstepd-wlm"
    commands = [[daemons / "slurmctld-wlm", "-D"]]
    commands += [[daemons / "slurmd-wlm", "-D", "-N", node, "-d", stepd] for node in ("n1", "n2")]

    def run(*words, **own):
        return subprocess.run(
            [SLURM / "usr" / "bin" / words[0], *words[1:]],
            env={**os.environ, **variables, **own},
            capture_output=True,
            text=True,
        )

    with contextlib.ExitStack() as stack:
        for number, command in enumerate(commands):
            log = stack.enter_context(open(folder / f"{number}.log", "w"))
            running = stack.enter_context(
                subprocess.Popen(command, env={**os.environ, **variables}, stdout=log, stderr=log)
            )
            stack.callback(running.terminate)
        assert within(30, lambda: run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout == "2\n")
        yield run


def script(capsys, path, record, *words):
    """Write the batch script that ``mxopt slurm`` prints for the toy recipe on two nodes."""
    command = ["slurm", "toy:toy", "batch_size=4", "momentum=0.9", *words, "--nodes", "2"]
    assert main([*command, "--hours", "1", "--record", str(record)]) == 0
    path.write_text(capsys.readouterr().out)
    return str(path)


@pytest.fixture
def environment():
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "DMLC_PS_ROOT_URI": own_address(),
    }


@pytest.mark.timeout(120)
def test_a_printed_script_trains_on_two_nodes_as_one_process(
    cluster, capsys, tmp_path, environment, members
):
    record = tmp_path / "run.jsonl"
    job = script(capsys, tmp_path / "job.sh", record, "epochs=3", "--option", "train=40")
    said = cluster("sbatch", "--wait", job, **environment)
    log = record.with_suffix(".log")
    assert said.returncode == 0, said.stderr + (log.read_text() if log.exists() else "no log")
    run = read_run(record)
    assert (run.plan.processes, run.plan.kvstore) == (2, "dist_sync")
    expected = trained_alone(3, toy.toy(40))
    assert run.figures["test_loss"] == pytest.approx(expected["test_loss"], abs=1e-5)
    assert within(20, lambda: not members())


@pytest.mark.timeout(180)
def test_a_killed_worker_ends_the_job_and_the_same_script_continues(
    cluster, capsys, tmp_path, environment, members
):
    record = tmp_path / "run.jsonl"
    words = ["epochs=40", "--option", "train=300"]
    job = script(capsys, tmp_path / "job.sh", record, *words)
    number = cluster("sbatch", "--parsable", "--no-requeue", job, **environment).stdout.strip()
    folder = record.with_suffix(".checkpoints")
    assert within(60, lambda: list(folder.glob("epoch-*.json")))
    [worker] = members(worker="1")
    worker.kill()
    assert within(60, lambda: not cluster("squeue", "-h", "-j", number).stdout.strip())
    assert "worker 1" in record.with_suffix(".log").read_text()
    assert within(20, lambda: not members())
    said = cluster("sbatch", "--wait", job, **environment)
    assert said.returncode == 0, said.stderr + record.with_suffix(".log").read_text()
    expected = trained_alone(40, toy.toy(300))
    assert read_run(record).figures["test_loss"] == pytest.approx(expected["test_loss"], abs=1e-4)


@pytest.mark.timeout(60)
def test_slurm_accepts_the_script_and_refuses_more_nodes_than_there_are(cluster, capsys, tmp_path):
    job = script(capsys, tmp_path / "job.sh", tmp_path / "run.jsonl")
    said = cluster("sbatch", "--test-only", job)
    assert said.returncode == 0, said.stderr
    assert "on nodes n[1-2]" in said.stderr
    text = (tmp_path / "job.sh").read_text()
    (tmp_path / "job.sh").write_text(text.replace("nodes=2", "nodes=3"))
    assert cluster("sbatch", "--test-only", job).returncode != 0
    (tmp_path / "job.sh").write_text(text.replace("requeue", "re-queue"))
    assert "unrecognized option" in cluster("sbatch", "--test-only", job).stderr
