"""Many processes and machines: who does what where, and what ends them all.

Training over MXNet's parameter server takes one scheduler, which introduces everybody; servers,
which add up gradients; and workers, which train. MXNet reads from the environment which of them a
process is: ``roles``, and ``tasks`` under SLURM and MPI. One that dies leaves the others waiting
for ever, so somebody watches (``launcher``), and tells those who watch elsewhere (``alarm``).
"""

from mxopt.methods.kvstore.cluster.alarm import Alarm
from mxopt.methods.kvstore.cluster.launcher import launch
from mxopt.methods.kvstore.cluster.roles import Role, on_hosts, read_hosts, worker_number
from mxopt.methods.kvstore.cluster.tasks import of_this_task, task_number

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
