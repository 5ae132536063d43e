import gc
import os
import resource
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import faults
import pytest
from hypothesis import settings
from in_process import runs_in_process

import mxopt  # noqa: F401  (before any test module imports MXNet)
from mxopt.core.errors import DataError
from mxopt.data import download, locate, sources

# Child processes of the tests import tests/toy.py as a user's module is imported: from the path.
_here = str(Path(__file__).parent)
os.environ["PYTHONPATH"] = os.pathsep.join([_here, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No example fails for the time that it takes on a busy machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)  # before slow tests are deselected
def pytest_collection_modifyitems(items):
    """Mark as slow what follows the first variants of a test that are to be quick."""
    seen = Counter()
    for item in items:
        quick = item.get_closest_marker("quick")
        if quick:
            name = item.nodeid.partition("[")[0]
            seen[name] += 1
            if seen[name] > quick.args[0]:
                item.add_marker("slow")


def pytest_collection_finish():
    """Keep what was imported out of the garbage collections of every ``DataLoader``."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def sees(request):
    """What the test's mark says the user sees; the test fails if it does not look for it."""
    said = faults.Sees(request.node.get_closest_marker("fault").kwargs["sees"])
    yield said
    assert said.found, f"the mark says {said.text!r} and the test does not look for it"


@pytest.fixture
def little_disk():
    """Return a context manager that limits files to some bytes, as a full disk does."""

    @contextmanager
    def limit(size):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limit


@pytest.fixture
def in_process():
    """Runs of experiments in this process, where theirs is not what is tested."""
    with runs_in_process():
        yield


@pytest.fixture(scope="session")
def streets(tmp_path_factory):
    """The shipped street scenes, unpacked."""
    folder = tmp_path_factory.mktemp("streets")
    download.unzip(sources.STAND_INS / "streets.zip", folder)
    return folder


@pytest.fixture(scope="session")
def weights():
    """Path of the published weights, where they are on this machine; nothing is downloaded."""
    try:
        folder = locate("deeplab-mobilenetv2", allow_download=False).path
    except DataError as error:
        pytest.skip(str(error))
    return folder / "deeplabv3_mnv2_pascal_quant.tflite"
