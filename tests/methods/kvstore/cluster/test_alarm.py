"""What dies in one task of a job ends the others."""

import socket
import sys
import time

import pytest

from mxopt.core.errors import PlanError
from mxopt.methods.kvstore.cluster import Alarm, launch
from mxopt.methods.kvstore.cluster.tasks import of_this_task


@pytest.fixture
def address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()


@pytest.fixture
def three(address):
    """The alarms of three tasks, all connected."""
    alarms = [Alarm(rank, 3, address) for rank in range(3)]
    for _ in range(10):
        assert [alarm.heard() for alarm in alarms] == ["", "", ""]
        time.sleep(0.01)
    yield alarms
    for alarm in alarms:
        alarm.tell("")


def heard(alarm):
    for _ in range(250):
        if said := alarm.heard():
            return said
        time.sleep(0.02)
    return ""


def test_what_one_says_the_first_hears_and_passes_on(three):
    first, second, third = three
    second.tell("worker 1 was killed")
    assert heard(first) == "worker 1 was killed"
    assert third.heard() == ""
    first.tell("worker 1 was killed")
    assert heard(third) == "worker 1 was killed"


def test_tasks_that_end_well_end_nobody(three):
    first, second, third = three
    second.tell("")
    for _ in range(10):
        assert first.heard() == third.heard() == ""
        time.sleep(0.01)
    first.tell("")
    for _ in range(10):
        assert third.heard() == ""
        time.sleep(0.01)


def test_a_task_that_goes_without_a_word_is_noticed(three):
    first, second, _ = three
    for connection in second._others:
        connection.close()
    assert heard(first) == "a task has gone without a word"


def test_tasks_that_do_not_come_are_missed(address):
    first, second = Alarm(0, 2, address, patience=0), Alarm(1, 2, ("127.0.0.1", 1), patience=0)
    assert "1 of the other tasks did not come" in first.heard()
    assert "did not come to port 1" in second.heard()
    first.tell("")


def test_a_port_that_is_taken_is_named(address):
    first = Alarm(0, 2, address)
    with pytest.raises(PlanError, match=f"port {address[1]} .* DMLC_PS_ROOT_PORT"):
        Alarm(0, 2, address)
    first.tell("")


@pytest.mark.timeout(30)
@pytest.mark.fault(
    "runs",
    "a process of another task under SLURM or MPI dies",
    sees="worker 1 ran out of memory",
    lost="the steps since the last checkpoint",
)
def test_a_launcher_ends_its_processes_when_it_hears_of_another_s(address, members, sees):
    task = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
            "DMLC_PS_ROOT_PORT": str(address[1] - 1)}  # fmt: skip
    roles = of_this_task("mpi", 2, task)
    alarm, other = Alarm.for_task(roles), Alarm(1, 2, address)
    assert other.heard() == ""
    other.tell("worker 1 ran out of memory")
    sleep = [sys.executable, "-c", "import time; time.sleep(0.2 if input() == 'short' else 60)"]
    said = launch(roles, sleep, {}, ["long", "long", "short"], alarm)
    sees(said)
    assert not members()
