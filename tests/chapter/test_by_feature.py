"""The scripts of ch08/by_feature: each the base and one feature, which trains as the base does."""

from __future__ import annotations

import ast
import difflib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import needs
import pytest
from pretend_gpus import environment

from mxopt.data import sources

FOLDER = Path(__file__).parents[2] / "ch08" / "by_feature"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "base")
MOST_LINES = 15
ROUNDED = 1.1e-4  # losses are printed with four digits


def code(name):
    """Return the lines of a script without its docstring."""
    text = (FOLDER / f"{name}.py").read_text()
    doc = ast.parse(text).body[0]
    return text.splitlines()[doc.end_lineno :]


def tolerance(name):
    words = " ".join(ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text())).split())
    if "CPU the losses equal" in words or "losses equal those of the base." in words:
        return 1e-6
    return max(float(found) for found in re.findall(r"(?:within |\()(\d[\d.e-]*\d)\b", words))


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """A folder with twelve photographs and masks."""
    folder, root = tmp_path_factory.mktemp("few"), sources.stand_in("penn-fudan").path
    for kind in ("PNGImages", "PedMasks"):
        (folder / kind).mkdir()
        for path in sorted((root / kind).glob("*.png"))[:12]:
            shutil.copy(path, folder / kind)
    return folder


def losses(name, folder, gpus=""):
    variables = environment(gpus) if gpus else None
    done = subprocess.run([sys.executable, str(FOLDER / f"{name}.py"), str(folder)], env=variables,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.findall(r"epoch \d+: loss ([\d.]+), [\d.]+ s", done.stdout)
    assert len(found) == 4
    return [float(loss) for loss in found]


@pytest.fixture(scope="module")
def base(few):
    return losses("base", few)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_the_base_and_a_few_lines(name):
    found = [line for line in difflib.ndiff(code("base"), code(name)) if line[:2] in ("+ ", "- ")]
    assert 0 < len(found) <= MOST_LINES, found
    assert "mxopt" not in "".join(code(name)).replace("import mxopt", "", 1)


@pytest.mark.parametrize("given", [[], ["/nosuch"]])
def test_a_folder_without_photographs_is_named(given):
    done = subprocess.run([sys.executable, str(FOLDER / "base.py"), *given],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 1
    wrong = given[0] if given else "nothing"
    assert f"{wrong}: give a folder with PNGImages, 4 or more .png, and PedMasks" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs.bfloat16 if name == "amp" else ())
        for name in SCRIPTS
        if name != "float16"
    ],
)
def test_a_script_trains_as_the_base_does(name, few, base):
    found = losses(name, few)
    last = 1 if name in ("schedule", "clipping") else len(found)  # later they learn otherwise
    assert found[:last] == pytest.approx(base[:last], abs=ROUNDED + tolerance(name))
    assert base[-1] < base[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["float16", "multi_device", "device"])
def test_a_script_runs_on_gpus(name, few):
    found = losses(name, few, "V100*2")
    expected = losses("base", few, "V100*2")
    allowed = 0.02 if name == "device" else tolerance(name)  # it says so for a GPU
    assert found == pytest.approx(expected, abs=ROUNDED + allowed)


@pytest.mark.slow
def test_mixed_precision_learns_once_its_loss_scale_fits(few):
    first, *_, last = losses("amp", few, "V100")
    assert last < 0.8 * first
