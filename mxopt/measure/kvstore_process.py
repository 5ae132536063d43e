"""A process of a run in many: ``python -m mxopt.measure.kvstore_process`` with a job on its input.

It ends when its launcher does: standard input is held open by the launcher and by nobody else,
which holds through ssh as well, where :mod:`mxopt.core.child` cannot reach.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading


def main() -> None:
    """Do a worker's part of a job, or serve until the workers have done theirs."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_launcher, daemon=True).start()
    if os.environ["DMLC_ROLE"] != "worker":
        import mxopt  # noqa: F401  (lets MXNet import)

        # Serves within the import, and ends the process when the last worker has left.
        import mxnet  # noqa: F401  # isort: skip

        return
    from mxopt.measure.__main__ import do

    reason = do(job)
    if reason:
        # A worker that ended as usual would first wait for the others, who wait for its gradients.
        print(reason, file=sys.stderr, flush=True)
        os._exit(1)


def _end_with_the_launcher():
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
