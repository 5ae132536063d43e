"""Several processes and machines: the role of each process, and how all of them end.

Training with MXNet's parameter server needs one scheduler, which connects the processes; servers,
which sum gradients; and workers, which train. MXNet reads the role of a process from its
environment (``roles``; under SLURM and MPI ``tasks``). If one process dies the others wait forever,
so a launcher watches them (``launcher``) and informs the launchers of other tasks (``alarm``).
``batch_script`` writes the job that SLURM starts.
"""

from mxopt.methods.kvstore.cluster.alarm import Alarm
from mxopt.methods.kvstore.cluster.batch_script import batch_script, on_nodes
from mxopt.methods.kvstore.cluster.launcher import launch
from mxopt.methods.kvstore.cluster.roles import Role, on_hosts, read_hosts, worker_number
from mxopt.methods.kvstore.cluster.tasks import of_this_task, task_number

__all__ = [
    "Alarm",
    "Role",
    "batch_script",
    "launch",
    "of_this_task",
    "on_hosts",
    "on_nodes",
    "read_hosts",
    "task_number",
    "worker_number",
]
