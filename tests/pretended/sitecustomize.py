"""Python imports this when it starts: children of a test get the GPUs that the test pretends."""

import os

if os.environ.get("MXOPT_PRETENDED_GPUS"):
    import pretend_gpus

    pretend_gpus.install(os.environ["MXOPT_PRETENDED_GPUS"])
