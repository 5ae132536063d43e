"""Real programs that start processes: MPICH's and Open MPI's mpirun (``make test-cluster``)."""

import os
import subprocess
import sys

import pytest
import toy
from faults import within
from real import REAL
from test_jobs import SWITCHES, trained_alone

from mxopt.core.records import read_run


@pytest.fixture(params=["mpich", "openmpi"])
def mpirun(request, tmp_path):
    """Return a function that starts a job of two workers under an MPI, and its record."""
    program = REAL / request.param / "bin" / "mpirun"
    if not program.exists():
        pytest.skip("no MPI is set up: make test-cluster")
    record = tmp_path / "run.jsonl"
    # What Open MPI wants to be told as root, and where there are fewer cores than tasks.
    own = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
           "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # fmt: skip

    def start(*words):
        command = [str(program), "-n", "2", sys.executable, "-m", "mxopt", "run", "toy:toy",
                   *SWITCHES, *words, "--under", "mpi", "--record", str(record)]  # fmt: skip
        return subprocess.Popen(command, env={**os.environ, **own}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip

    return start, record


@pytest.mark.timeout(120)
def test_tasks_of_a_real_mpi_train_as_one(mpirun, members):
    start, record = mpirun
    running = start("epochs=3", "--option", "train=40")
    said = running.communicate()[0]
    assert running.returncode == 0, said
    expected = trained_alone(3, toy.toy(40))
    assert read_run(record).figures["test_loss"] == pytest.approx(expected["test_loss"], abs=1e-5)
    assert within(20, lambda: not members())


@pytest.mark.timeout(120)
def test_a_killed_task_ends_the_job_of_a_real_mpi(mpirun, members):
    start, record = mpirun
    running = start("epochs=400", "--option", "train=300", "--checkpoints")
    folder = record.with_suffix(".checkpoints")
    assert within(60, lambda: list(folder.glob("epoch-*.json")))
    [worker] = members(worker="1")
    worker.kill()
    said = running.communicate(timeout=60)[0]
    assert running.returncode != 0
    assert "worker 1" in said
    assert within(10, lambda: not members())
