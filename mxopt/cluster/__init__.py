"""Many processes and machines: who does what where, and what ends them all.

Training over MXNet's parameter server takes one scheduler, which introduces everybody; servers,
which add up gradients; and workers, which train. MXNet reads from the environment which of them a
process is: :mod:`mxopt.cluster.roles`, and :mod:`mxopt.cluster.tasks` under SLURM and MPI. One that
dies leaves the others waiting for ever, so somebody watches (:mod:`mxopt.cluster.launcher`), and
tells those who watch elsewhere (:mod:`mxopt.cluster.alarm`).
"""

from mxopt.cluster.alarm import Alarm
from mxopt.cluster.launcher import launch
from mxopt.cluster.roles import Role, on_hosts, read_hosts, worker_number
from mxopt.cluster.tasks import of_this_task, task_number

__all__ = [
    "Alarm",
    "Role",
    "launch",
    "of_this_task",
    "on_hosts",
    "read_hosts",
    "task_number",
    "worker_number",
]
