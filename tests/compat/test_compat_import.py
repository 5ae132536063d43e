"""MXNet, GluonCV and GluonNLP import quietly, and each patch fixes something that is broken."""

import json
import sys

import numpy
import pytest
from compat.children import run_python

from mxopt import compat
from mxopt.compat import editing, toolchain
from mxopt.compat.patch import Patch

NAMES = [patch.name for patch in compat.patches()]


@pytest.mark.parametrize("warnings", ["default", "error"])
def test_import_is_silent(warnings):
    # -W error turns a warning into a failure; -W default shows each one that is raised.
    child = run_python("import mxopt, mxnet, gluoncv, gluonnlp", "-W", warnings)
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")


def test_import_without_bytecode_is_silent(tmp_path):
    # The compiler complains of escapes only while it compiles: keep it from finding its own output.
    child = run_python(
        "import mxopt, gluonnlp, gluoncv.model_zoo",
        "-W",
        "default",
        PYTHONPYCACHEPREFIX=str(tmp_path),
    )
    assert (child.returncode, child.stderr) == (0, "")


def test_a_new_pytorch_in_the_environment_is_in_nobodys_way(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("__version__ = '2.13.0'\n")
    child = run_python(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import mxopt, gluoncv.model_zoo; "
        "print('torch' in sys.modules)"
    )
    assert (child.returncode, child.stdout.strip(), child.stderr) == (0, "False", "")


def test_importing_mxopt_leaves_mxnet_alone():
    child = run_python("import mxopt, sys; print([m for m in sys.modules if m[:5] == 'mxnet'])")
    assert child.stdout.strip() == "[]"


def test_activating_again_changes_nothing():
    before, finders, product = compat.patches(), list(sys.meta_path), numpy.product
    compat.activate()
    assert compat.patches() == before
    assert sys.meta_path == finders
    assert numpy.product is product


def test_every_restored_name_is_missing_without_mxopt():
    restored = [
        name[len("numpy.") :] for name in NAMES if name.startswith("numpy.") and "(" not in name
    ]
    code = (
        "import json, sys, warnings; warnings.simplefilter('ignore'); import numpy; "
        "print(json.dumps([n for n in json.loads(sys.argv[1]) if hasattr(numpy, n)]))"
    )
    child = run_python(code.replace("sys.argv[1]", repr(json.dumps(restored))))
    assert restored
    assert json.loads(child.stdout) == []


def test_no_edit_fits_an_mxnet_it_was_not_made_for(monkeypatch):
    recordio = pytest.importorskip("mxnet").recordio
    with pytest.raises(compat.CompatError, match="from another release than expected"):
        editing.edit("unpack", "no such text", "", recordio)


@pytest.mark.parametrize("patch", compat.patches(), ids=lambda patch: patch.name)
def test_patches_say_why_and_since_when(patch):
    assert isinstance(patch, Patch)
    assert patch.reason
    assert patch.broken_since.split()[0] in ("Python", "NumPy", "SciPy", "always,")


def test_what_mxnet_rarely_uses_is_imported_when_it_is_used():
    code = (
        "import sys, types, mxopt, mxnet as mx\n"
        "late = {'scipy.stats', 'requests'}\n"
        "assert not (late | {'distutils', 'setuptools'}) & {*sys.modules}\n"
        "assert mx.contrib.quantization.stats.entropy([0.5, 0.5]) > 0\n"
        "assert late & {*sys.modules} == {'scipy.stats'}\n"
        "assert mx.gluon.utils.requests.get\n"
        "assert {type(sys.modules[name]) for name in late} == {types.ModuleType}"
    )
    child = run_python(code)
    assert (child.returncode, child.stderr) == (0, "")


@pytest.mark.parametrize("when", ["before", "after"])
def test_others_import_what_mxnet_rarely_uses_as_ever(when):
    others = "from scipy import stats; import requests, scipy.stats as again"
    if sys.version_info < (3, 12):
        others += ", distutils.util"
    lines = [others, "import mxopt, mxnet as mx"]
    child = run_python(
        "\n".join(lines if when == "before" else ["import mxopt", *lines[::-1]])
        + "\nimport types; assert stats is again"
        "\nassert type(stats) is types.ModuleType is type(requests)"
        "\nassert mx.contrib.quantization.stats.entropy is stats.entropy"
    )
    assert (child.returncode, child.stderr) == (0, "")


def test_a_half_imported_mxnet_is_refused_in_a_sentence():
    code = (
        "import sys, types; sys.modules['mxnet.base'] = types.ModuleType('mxnet.base')\n"
        "import mxopt"
    )
    child = run_python(code)
    assert child.returncode == 1
    assert child.stderr.strip().endswith(
        "CompatError: An earlier 'import mxnet' failed half way and cannot be repeated in this "
        "process: restart Python (or the notebook's kernel) and import mxopt before mxnet."
    )


@pytest.mark.fault(
    "machine",
    "MXNet was imported before mxopt, and failed",
    sees="An earlier 'import mxnet' failed half way",
)
def test_a_real_failed_import_is_refused(sees):
    # Without mxopt, MXNet fails on every NumPy from 1.24 on, and leaves submodules behind.
    child = run_python(
        "try:\n    import mxnet\nexcept (AttributeError, ImportError, OSError):\n    import mxopt"
    )
    sees(child.stderr)


def test_an_mxnet_that_was_imported_and_works_is_kept():
    code = (
        "from importlib.machinery import PathFinder\n"
        "import sys, mxopt, mxnet\n"
        "before = mxnet\n"
        "for name in [m for m in sys.modules if m.startswith('mxopt')]: del sys.modules[name]\n"
        "import mxopt\n"
        "assert mxnet is before is sys.modules['mxnet']\n"
        "print(float(mxnet.np.ones(3).sum()))"
    )
    child = run_python(code)
    assert child.stdout.strip() == "3.0", child.stderr


def test_without_mxnet_mxopt_imports_and_says_how_to_install():
    hidden = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'mxnet': raise ModuleNotFoundError(name)\n"
        "import importlib.machinery, importlib.util\n"
        "real = importlib.machinery.PathFinder.find_spec\n"
        "importlib.machinery.PathFinder.find_spec = staticmethod(\n"
        "    lambda name, *rest: None if name == 'mxnet' else real(name, *rest))\n"
        "import mxopt\n"
        "try:\n    mxopt.compat.require_mxnet()\n"
        "except mxopt.compat.CompatError as error: print(error)\n"
        "import mxnet"
    )
    child = run_python(hidden)
    assert "pip install 'mxopt[cpu]'" in child.stdout
    assert "ModuleNotFoundError: No module named 'mxnet'" in child.stderr


def test_distutils_version_is_there():
    code = (
        "import mxopt\n"
        "from distutils.version import LooseVersion, StrictVersion\n"
        "assert LooseVersion('1.9.1') < LooseVersion('1.10') and StrictVersion('1.2') == '1.2'\n"
        "assert not LooseVersion('2.0') < '1.9'"
    )
    child = run_python(code)
    assert child.returncode == 0, child.stderr


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python before 3.12 has distutils")
def test_distutils_stand_in_is_used_where_it_is_gone():
    from distutils.version import LooseVersion

    assert LooseVersion("1.9.1").version == [1, 9, 1]
    assert len({LooseVersion("1.0"), LooseVersion("1.0")}) == 1


@pytest.mark.fault(
    "machine",
    "there is no C compiler to set up with",
    sees="no C compiler was found",
)
def test_a_missing_compiler_is_one_sentence(monkeypatch, sees):
    assert toolchain.missing() is None
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CC", "no-such-compiler")
    sees(toolchain.missing())


def test_missing_headers_are_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda name: str(tmp_path))
    assert "headers are missing" in toolchain.missing()


@pytest.mark.parametrize("version", [(3, 8, 18), (3, 14, 0)])
def test_a_python_that_is_too_old_or_too_new_is_said(monkeypatch, version):
    assert toolchain.unsuitable() is None
    monkeypatch.setattr(toolchain.sys, "version_info", version)
    assert f"this is 3.{version[1]}" in toolchain.unsuitable()


def test_a_python_without_environments_is_said(monkeypatch):
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    assert "-venv'" in toolchain.unsuitable()
