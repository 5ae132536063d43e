"""Many processes and machines: who does what where, and what ends them all.

Training over MXNet's parameter server takes one scheduler, which introduces everybody; servers,
which add up gradients; and workers, which train. MXNet reads from the environment which of them a
process is (:mod:`mxopt.cluster.roles`). One that dies leaves the others waiting for ever, so
somebody watches (:mod:`mxopt.cluster.launcher`).
"""

from mxopt.cluster.launcher import launch
from mxopt.cluster.roles import (
    Role,
    of_this_task,
    on_hosts,
    read_hosts,
    task_number,
    worker_number,
)

__all__ = [
    "Role",
    "launch",
    "of_this_task",
    "on_hosts",
    "read_hosts",
    "task_number",
    "worker_number",
]
