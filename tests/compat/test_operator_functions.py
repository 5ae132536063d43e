"""The functions of MXNet's operators that an import keeps are those that MXNet would make."""

from compat.children import run_python

# Compares every function that was kept with the one that MXNet makes for the same operator.
COMPARE = """
import ctypes
import mxopt, mxnet as mx
from mxnet.base import OpHandle, c_str, check_call, _LIB
from mxopt.compat import operator_functions

def facts(function):
    code = function.__code__
    return (
        function.__name__, function.__module__, function.__doc__, function.__defaults__,
        function.__kwdefaults__, function.__globals__ is maker.namespace, code.co_code,
        code.co_consts, code.co_names, code.co_varnames, code.co_argcount, code.co_flags,
    )

for maker in operator_functions._makers.values():
    assert not maker.texts
    print(maker.path.name.rpartition("_")[0], len(maker.kept) > 1000)
    for name, func_name in maker.kept:
        handle = OpHandle()
        check_call(_LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)))
        kept, made = maker(handle, name, func_name), maker.make(handle, name, func_name)
        assert facts(kept) == facts(made), (name, facts(kept), facts(made))
print(mx.nd.Activation.__code__.co_filename == str(maker.path).replace("symbol", "ndarray"))
print(mx.np.ones(3).sum().item(), mx.sym.relu(mx.sym.var("x")).list_arguments())
"""


def test_functions_read_back_are_those_that_mxnet_makes(tmp_path):
    # With the first variable Python writes no bytecode of its own accord.
    where = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPYCACHEPREFIX": "",
        "MXOPT_CACHE": str(tmp_path),
    }
    first = run_python("import mxopt, mxnet", "-W", "error", **where)
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    assert len([*tmp_path.rglob("*.pyc")]) == 2  # ndarray and symbol
    second = run_python(COMPARE, "-W", "error", **where)
    assert second.stderr == ""
    assert second.stdout.splitlines() == [
        *("mxnet_ndarray_register True", "mxnet_symbol_register True"),
        *("True", "3.0 ['x']"),
    ]


def test_keeping_them_takes_little_memory_of_the_process_that_does(tmp_path):
    # A run's peak memory may be measured, and the first run is the one that keeps them.
    code = "import mxopt, mxnet; print(mxopt.machine.peak_memory())"
    keeping, reading = (int(run_python(code, MXOPT_CACHE=str(tmp_path)).stdout) for _ in range(2))
    assert keeping < 1.3 * reading


USE = "import mxopt, mxnet as mx; print(mx.nd.relu(mx.nd.array([-1, 2])).asnumpy())"


def test_what_is_damaged_or_of_another_mxnet_is_made_again(tmp_path):
    run_python("import mxopt, mxnet", MXOPT_CACHE=str(tmp_path))
    kept = sorted((tmp_path / "operators").glob("*.py"))
    assert len(kept) == 2
    whole = [path.read_bytes() for path in kept]
    kept[0].write_bytes(whole[0][: len(whole[0]) // 2])
    kept[1].write_bytes(
        whole[1].replace(b"MADE_FROM = '[(", b"MADE_FROM = '[(1", 1)
    )  # another MXNet's
    child = run_python(USE, MXOPT_CACHE=str(tmp_path))
    assert (child.returncode, child.stdout, child.stderr) == (0, "[0. 2.]\n", "")
    assert [path.read_bytes() for path in kept] == whole


def test_a_cache_that_cannot_be_written_to_changes_nothing(tmp_path):
    (tmp_path / "file").touch()
    child = run_python(USE, MXOPT_CACHE=str(tmp_path / "file"))
    assert (child.returncode, child.stdout, child.stderr) == (0, "[0. 2.]\n", "")
