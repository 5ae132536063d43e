"""What dies in one task of a job ends the others."""

import socket
import sys
import time

import pytest

from mxopt.core.errors import PlanError, RecordError
from mxopt.methods.kvstore.cluster import Alarm, keys, launch
from mxopt.methods.kvstore.cluster.alarm import STRANGERS
from mxopt.methods.kvstore.cluster.keys import job_key
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


def heard_for(alarm, seconds):
    """What is heard within some seconds, in which nothing is expected to be."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if said := alarm.heard():
            return said
        time.sleep(0.01)
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
        connection.socket.close()
    assert heard(first) == "a task ended without a message"


def test_tasks_that_do_not_come_are_missed(address):
    first, second = Alarm(0, 2, address, patience=0), Alarm(1, 2, ("127.0.0.1", 1), patience=0)
    assert "1 of the other tasks did not connect" in first.heard()
    assert "did not connect to port 1" in second.heard()
    first.tell("")


def test_a_port_that_is_taken_is_named(address):
    first = Alarm(0, 2, address)
    with pytest.raises(PlanError, match=f"port {address[1]} .* DMLC_PS_ROOT_PORT"):
        Alarm(0, 2, address)
    first.tell("")


def test_strangers_do_not_end_the_job_and_are_not_believed(address):
    first = Alarm(0, 2, address, key=lambda: b"this job's")
    silent, rude, other_job = (socket.create_connection(address, timeout=5) for _ in range(3))
    rude.sendall(b"worker 1 was killed\x1b[2J" * 9)
    rude.close()
    first.heard()
    other_job.sendall(
        other_job.recv(100)
    )  # what the first says of itself is not what another task says
    wrong_key = Alarm(1, 2, address, key=lambda: b"another job's")
    for _ in range(20):
        assert first.heard() == wrong_key.heard() == ""
        time.sleep(0.01)
    assert other_job.recv(100) == b""
    wrong_key.tell("all is lost")
    assert heard_for(first, 0.3) == ""

    second = Alarm(1, 2, address, key=lambda: b"this job's")
    for _ in range(10):
        assert first.heard() == second.heard() == ""
        time.sleep(0.01)
    with pytest.raises(ConnectionRefusedError):  # all have come
        socket.create_connection(address)
    second.tell("worker 1 was killed")
    assert heard(first) == "worker 1 was killed"
    silent.close()
    first.tell("")


def test_a_task_does_not_believe_whoever_has_the_first_one_s_port(address):
    with socket.create_server(address) as server:
        second = Alarm(1, 2, address, key=lambda: b"this job's")
        second.heard()
        stranger, _ = server.accept()
        stranger.sendall(stranger.recv(100) + b"worker 0 was killed")
        stranger.close()
        assert heard_for(second, 0.3) == ""
        second.tell("")


def test_what_would_control_a_terminal_is_taken_out(three):
    first, second, _ = three
    second.tell("worker 1 ended: \x1b[2J\x07\u202egone\r\n")
    assert heard(first) == "worker 1 ended:  [2J  gone  "


def test_a_task_that_dies_before_it_has_come_says_so(address):
    first = Alarm(0, 2, address)
    Alarm(1, 2, address).tell("worker 1 was killed")
    assert heard(first) == "worker 1 was killed"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_the_first_task_listens_at_its_address_and_nowhere_else(address, host):
    first = Alarm(0, 2, (host, address[1]))
    assert first._listener.getsockname()[0] == socket.gethostbyname(host)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.3", address[1]), timeout=5)
    first.tell("")


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_is_not_the_first_host_s_is_named_with_what_to_set(host):
    with pytest.raises(PlanError, match=f"{host} is not an address .* set DMLC_PS_ROOT_URI"):
        Alarm(0, 2, (host, 12345))


def test_many_strangers_leave_room_for_the_tasks(address):
    first = Alarm(0, 2, address, key=lambda: b"this job's")
    strangers = [socket.create_connection(address, timeout=5) for _ in range(3 * STRANGERS)]
    assert first.heard() == ""
    assert len(first._others) == STRANGERS
    second = Alarm(1, 2, address, key=lambda: b"this job's")
    for _ in range(10):
        assert first.heard() == second.heard() == ""
        time.sleep(0.01)
    second.tell("worker 1 was killed")
    assert heard(first) == "worker 1 was killed"
    first.tell("")
    for stranger in strangers:
        stranger.close()


def task_of_mpi(rank, address):
    environment = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2",
                   "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
                   "DMLC_PS_ROOT_PORT": str(address[1] - 1)}  # fmt: skip
    return of_this_task("mpi", 2, environment)


def test_tasks_share_a_random_secret_that_only_their_user_can_read(address, tmp_path):
    secret = tmp_path / "run.secret"
    secret.write_bytes(b"what an earlier job has left")
    secret.chmod(0o644)
    second = Alarm.for_task(task_of_mpi(1, address), secret, {})
    assert second.heard() == ""
    first = Alarm.for_task(task_of_mpi(0, address), secret, {})
    drawn = secret.read_bytes()
    assert secret.stat().st_mode & 0o777 == 0o600
    # Address, port and number of workers are known to everybody.
    guess = Alarm(1, 2, address, key=lambda: keys.job_key(task_of_mpi(1, address), {}))
    for _ in range(20):
        assert first.heard() == guess.heard() == ""
        time.sleep(0.01)
    guess.tell("all is lost")
    assert heard_for(first, 0.3) == ""
    for _ in range(20):
        assert first.heard() == second.heard() == ""
        time.sleep(0.01)
    assert not secret.exists()  # all have come
    second.tell("worker 1 was killed")
    assert heard(first) == "worker 1 was killed"
    first.tell("")

    again = Alarm.for_task(task_of_mpi(0, address), secret, {})
    assert secret.read_bytes() != drawn
    again.tell("")
    assert not secret.exists()


def test_a_token_of_the_user_replaces_the_file(address, tmp_path):
    own = {"MXOPT_JOB_TOKEN": "theirs"}
    tasks = [Alarm.for_task(task_of_mpi(r, address), tmp_path / "run.secret", own) for r in (0, 1)]
    for _ in range(10):
        assert [task.heard() for task in tasks] == ["", ""]
        time.sleep(0.01)
    assert list(tmp_path.iterdir()) == []
    tasks[1].tell("worker 1 was killed")
    assert heard(tasks[0]) == "worker 1 was killed"


def test_a_secret_that_cannot_be_written_is_named(address, tmp_path):
    with pytest.raises(RecordError, match=r"cannot write the job's secret to .*nowhere"):
        Alarm.for_task(task_of_mpi(0, address), tmp_path / "nowhere" / "run.secret", {})


def test_the_key_is_that_of_the_job_and_of_its_token():
    def key(rank=0, **environment):
        task = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": "1", "SLURM_NTASKS": "2",
                "SLURM_NNODES": "1", "SLURM_NODELIST": "a", "SLURM_JOB_ID": "7",
                **environment}  # fmt: skip
        return job_key(of_this_task("slurm", 2, task), task)

    assert key(0) == key(1)
    assert key(0, MXOPT_JOB_TOKEN="secret") == key(1, MXOPT_JOB_TOKEN="secret")
    different = {key(), key(SLURM_JOB_ID="8"), key(MXOPT_JOB_TOKEN="secret")}
    assert len(different) == 3


@pytest.mark.timeout(30)
@pytest.mark.fault(
    "runs",
    "a process of another task under SLURM or MPI dies",
    sees="worker 1 ran out of memory",
    lost="the steps since the last checkpoint",
)
def test_a_launcher_ends_its_processes_when_it_hears_of_another_s(address, members, sees, tmp_path):
    roles, secret = task_of_mpi(0, address), tmp_path / "run.secret"
    first = Alarm.for_task(roles, secret)
    other = Alarm.for_task(task_of_mpi(1, address), secret)
    assert other.heard() == ""
    other.tell("worker 1 ran out of memory")
    sleep = [sys.executable, "-c", "import time; time.sleep(0.2 if input() == 'short' else 60)"]
    said = launch(roles, sleep, {}, ["long", "long", "short"], first)
    sees(said)
    assert not members()
