import pytest

from mxopt.cluster import of_this_task, on_hosts, read_hosts, roles, worker_number
from mxopt.errors import PlanError
from mxopt.plan import Plan

ADDRESSES = {"one": "10.0.0.1", "two": "10.0.0.2", "node007": "10.0.0.7"}
SLURM = {"SLURM_NTASKS": "4", "SLURM_NNODES": "2", "SLURM_NODELIST": "node[007-008]",
         "SLURM_JOB_ID": "123456"}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    monkeypatch.setattr(roles, "_address_towards", lambda root: f"towards {root}")


def listed(found):
    return [(role.kind, role.number, role.host) for role in found]


def test_one_machine_needs_no_network_but_its_loopback():
    found = on_hosts(2, None, 4321)
    assert listed(found) == [
        ("scheduler", 0, ""), ("server", 0, ""), ("worker", 0, ""), ("worker", 1, ""),
    ]  # fmt: skip
    assert found[-1].variables == {
        "DMLC_ROLE": "worker", "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": "4321",
        "DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "1", "DMLC_NODE_HOST": "127.0.0.1",
        "MXOPT_WORKER": "1",
    }  # fmt: skip
    assert str(found[-1]) == "worker 1 on this machine"


def test_workers_go_round_the_hosts_and_each_host_has_a_server():
    found = on_hosts(3, ["one", "user@two"], 4321, lambda host: ADDRESSES[host])
    assert listed(found) == [
        ("scheduler", 0, "one"), ("server", 0, "one"), ("server", 1, "user@two"),
        ("worker", 0, "one"), ("worker", 1, "user@two"), ("worker", 2, "one"),
    ]  # fmt: skip
    assert {role.variables["DMLC_PS_ROOT_URI"] for role in found} == {"10.0.0.1"}
    assert found[2].variables["DMLC_NODE_HOST"] == "10.0.0.2"
    assert {role.variables["DMLC_NUM_SERVER"] for role in found} == {"2"}


def test_hosts_without_work_get_no_server():
    found = on_hosts(1, ["one", "two"], 4321, lambda host: ADDRESSES[host])
    assert {role.host for role in found} == {"one"}


def test_a_host_that_others_cannot_reach_is_refused():
    with pytest.raises(PlanError, match=r"'one' is 127.0.1.1 here, .* write its IP address"):
        on_hosts(2, ["one", "two"], 1, {"one": "127.0.1.1", "two": "10.0.0.2"}.get)


def test_a_host_without_an_address_is_named():
    def unknown(host):
        raise OSError("Name or service not known")

    with pytest.raises(PlanError, match=r"'one' has no address here \(Name or service not known\)"):
        on_hosts(1, ["one"], 1, unknown)


@pytest.mark.parametrize(
    ("rank", "local", "kinds"),
    [
        (0, 0, ["scheduler", "server", "worker"]),
        (1, 1, ["worker"]),
        (2, 0, ["server", "worker"]),
    ],
)
def test_a_task_of_slurm_finds_out_what_to_start(rank, local, kinds):
    task = {**SLURM, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(local)}
    found = of_this_task("slurm", 4, task, lambda host: ADDRESSES[host])
    assert [role.kind for role in found] == kinds
    own = found[-1].variables
    assert own["MXOPT_WORKER"] == str(rank)
    assert (own["DMLC_PS_ROOT_URI"], own["DMLC_PS_ROOT_PORT"]) == ("10.0.0.7", "23456")
    assert (own["DMLC_NUM_SERVER"], own["DMLC_NODE_HOST"]) == ("2", "towards 10.0.0.7")


def test_a_step_smaller_than_its_allocation_counts():
    step = {**SLURM, "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_STEP_NUM_NODES": "1"}  # fmt: skip
    assert of_this_task("slurm", 2, step)[0].variables["DMLC_PS_ROOT_URI"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node7", "node7"),
        ("node007,node008", "node007"),
        ("node[007-012,20],login", "node007"),
        ("rack[1-2]n[3-4]", "rack1n3"),
        ("n[1,3].cluster", "n1.cluster"),
    ],
)
def test_the_first_of_slurms_nodes(nodes, first):
    assert roles._first_host(nodes) == first


def open_mpi(rank, local, local_size):
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    values = (rank, 4, local, local_size)
    return {f"OMPI_COMM_WORLD_{n}": str(value) for n, value in zip(names, values)}


def test_tasks_of_mpi_on_one_host_and_on_two():
    assert listed(of_this_task("mpi", 4, open_mpi(0, 0, 4))) == [
        ("scheduler", 0, ""), ("server", 0, ""), ("worker", 0, ""),
    ]  # fmt: skip
    second = {**open_mpi(2, 0, 2), "DMLC_PS_ROOT_URI": "10.0.0.1", "DMLC_PS_ROOT_PORT": "99"}
    found = of_this_task("mpi", 4, second)
    assert [role.kind for role in found] == ["server", "worker"]
    assert found[0].variables["DMLC_NUM_SERVER"] == "2"
    assert found[0].variables["DMLC_PS_ROOT_PORT"] == "99"
    hydra = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
    assert listed(of_this_task("mpi", 2, hydra)) == [("worker", 1, "")]


@pytest.mark.parametrize(
    ("starter", "task", "message"),
    [
        ("slurm", {}, "'SLURM_PROCID' is not set: start this with srun"),
        ("mpi", {}, "'PMI_RANK' is not set: start this with mpirun"),
        ("mpi", open_mpi(0, 0, 2), "2 hosts need the first one's address: set DMLC_PS_ROOT_URI"),
        ("mpi", {**open_mpi(0, 0, 2), "DMLC_PS_ROOT_URI": "127.0.1.1"}, "calls itself 127.0.1.1"),
        ("mpi", {**open_mpi(0, 0, 4), "OMPI_COMM_WORLD_SIZE": "3"}, "mpi has started 3 tasks"),
    ],
)
def test_a_task_that_was_started_otherwise_is_refused(starter, task, message):
    with pytest.raises(PlanError, match=message):
        of_this_task(starter, 4, task)


def test_a_worker_knows_its_number_however_it_was_started():
    assert worker_number(on_hosts(3, None, 1)[-1].variables) == 2
    assert worker_number({"HOROVOD_RANK": "3"}) == 3
    assert worker_number({}) == 0


def test_hosts_are_read_from_a_file(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("one  # the big one\n\n# two\nuser@10.0.0.2\n")
    assert read_hosts(path) == ["one", "user@10.0.0.2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-oProxyCommand=evil", "'-oProxyCommand=evil' is not a host"),
        ("one slots=4", "'one slots=4' is not a host"),
        ("# none", "names no host"),
        (None, "cannot read the hosts in"),
    ],
)
def test_a_bad_file_of_hosts_is_refused(tmp_path, text, message):
    path = tmp_path / "hosts"
    if text is not None:
        path.write_text(text)
    with pytest.raises(PlanError, match=message):
        read_hosts(path)


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"processes": 2}, "processes=2 need a way .* sync='dist_sync'"),
        ({"sync": "horovod", "devices": "gpu:0-1"}, "one device a process"),
    ],
)
def test_plans_that_no_processes_can_follow_are_refused(switches, message):
    with pytest.raises(PlanError, match=message):
        Plan(**switches)
