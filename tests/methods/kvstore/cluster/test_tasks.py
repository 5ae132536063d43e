import pytest

from mxopt.core.errors import PlanError
from mxopt.methods.kvstore.cluster import of_this_task, tasks

SLURM = {"SLURM_NTASKS": "4", "SLURM_NNODES": "2", "SLURM_NODELIST": "node[007-008]",
         "SLURM_JOB_ID": "123456"}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    monkeypatch.setattr(tasks, "_address_towards", lambda root: f"towards {root}")


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
    found = of_this_task("slurm", 4, task, {"node007": "10.0.0.7"}.get)
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
    assert tasks._first_host(nodes) == first


def open_mpi(rank, local, local_size):
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    values = (rank, 4, local, local_size)
    return {f"OMPI_COMM_WORLD_{n}": str(value) for n, value in zip(names, values)}


def test_tasks_of_mpi_on_one_host_and_on_two():
    first = of_this_task("mpi", 4, open_mpi(0, 0, 4))
    assert [role.kind for role in first] == ["scheduler", "server", "worker"]
    assert first[0].variables["DMLC_PS_ROOT_URI"] == "127.0.0.1"
    second = {**open_mpi(2, 0, 2), "DMLC_PS_ROOT_URI": "10.0.0.1", "DMLC_PS_ROOT_PORT": "99"}
    found = of_this_task("mpi", 4, second)
    assert [role.kind for role in found] == ["server", "worker"]
    assert found[0].variables["DMLC_NUM_SERVER"] == "2"
    assert found[0].variables["DMLC_PS_ROOT_PORT"] == "99"
    hydra = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
    [worker] = of_this_task("mpi", 2, hydra)
    assert (worker.kind, worker.number) == ("worker", 1)


@pytest.mark.parametrize(
    ("starter", "task", "message"),
    [
        ("slurm", {}, "'SLURM_PROCID' is not set: start this with srun"),
        ("mpi", {}, "'PMI_RANK' is not set: start this with mpirun"),
        ("mpi", open_mpi(0, 0, 2), "2 hosts need the first one's address: set DMLC_PS_ROOT_URI"),
        (
            "mpi",
            {**open_mpi(0, 0, 2), "DMLC_PS_ROOT_URI": "127.0.1.1"},
            "has the address 127.0.1.1",
        ),
        ("mpi", {**open_mpi(0, 0, 4), "OMPI_COMM_WORLD_SIZE": "3"}, "mpi has started 3 tasks"),
    ],
)
def test_a_task_that_was_started_otherwise_is_refused(starter, task, message):
    with pytest.raises(PlanError, match=message):
        of_this_task(starter, 4, task)
