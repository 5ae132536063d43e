"""One process of a distributed run: ``python -m mxopt.measure.kvstore_process``, job on its input.

It ends when its launcher does: only the launcher holds standard input open. This works through ssh
as well, where :mod:`mxopt.core.child` does not.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading


def main() -> None:
    """Run a worker's part of the job, or serve as scheduler or server until the workers end."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_launcher, daemon=True).start()
    if os.environ["DMLC_ROLE"] != "worker":
        import mxopt  # noqa: F401  (lets MXNet import)

        # The import itself serves, and ends the process when the last worker has left.
        import mxnet  # noqa: F401  # isort: skip

        return
    from mxopt.measure.__main__ import do

    reason = do(job)
    if reason:
        # A usual exit would first wait for the other workers, which wait for gradients of this one.
        print(reason, file=sys.stderr, flush=True)
        os._exit(1)


def _end_with_the_launcher():
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
