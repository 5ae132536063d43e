"""The key with which the tasks of one job recognise each other.

Tasks under SLURM and MPI have no common parent that could give them a secret. The first task draws
one and leaves it in a file beside the record, which is on a disk that all hosts share; only its
owner may read it. ``MXOPT_JOB_TOKEN``, set for all tasks, replaces the file.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from mxopt.core.errors import RecordError
from mxopt.methods.kvstore.cluster.roles import Role

TOKEN = "MXOPT_JOB_TOKEN"
_LENGTH = 32


def job_key(roles: list[Role], environment: Mapping[str, str], secret: bytes = b"") -> bytes:
    """Return the key of the job that a task belongs to.

    It is made of the secret, of ``MXOPT_JOB_TOKEN``, and of values that differ between jobs:
    address and port of the first task, the number of workers, and SLURM's job number.

    Args:
        roles: roles that the task starts, with its worker last.
        environment: environment variables of the task.
        secret: the job's secret, unless ``MXOPT_JOB_TOKEN`` is one.
    """
    own = roles[-1].variables
    names = ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_WORKER")
    parts = [own[name] for name in names]
    parts += [environment.get(name, "") for name in ("SLURM_JOB_ID", TOKEN)]
    return hashlib.sha256("\n".join([*parts, secret.hex()]).encode()).digest()


def write_secret(path: Path) -> bytes:
    """Draw a secret, and write it to a file that only this user can read.

    Args:
        path: the file; one that an earlier job has left is replaced.

    Raises:
        RecordError: the file cannot be written.
    """
    secret = secrets.token_bytes(_LENGTH)
    try:
        path.unlink(missing_ok=True)
        # O_EXCL: neither a file that somebody else may read, nor a link to another place.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret)
    except OSError as error:
        raise RecordError(f"cannot write the job's secret to {path}: {error}") from None
    return secret


def read_secret(path: Path) -> bytes:
    """Return the secret that the first task has written.

    Raises:
        OSError: it is not there yet, is not whole, or cannot be read.
    """
    secret = path.read_bytes()
    if len(secret) != _LENGTH:
        raise OSError(f"{path} is not whole")
    return secret
