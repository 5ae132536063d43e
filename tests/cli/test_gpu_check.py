"""`mxopt gpu-check` on pretended GPUs, and with a fault planted in what each part checks."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from pretend_gpus import environment

from mxopt.cli import gpu_check
from mxopt.cli.gpu_check import FAILED, OK, SKIPPED, Outcome
from mxopt.core.errors import DeviceError


def part(name, gpus="V100*4", fault=""):
    """Return what one part says in a process that pretends."""
    child = subprocess.run(
        [sys.executable, "-m", "mxopt.cli.gpu_check", name, "--quick"],
        env=environment(gpus, fault), capture_output=True, text=True,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.strip().splitlines()[-1])


PARTS = [pytest.param(name, marks=[] if name in ("kernels", "copies") else pytest.mark.slow)
         for name in gpu_check.PARTS]  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_nothing_is_wrong_with_sound_gpus(name):
    found = part(name)
    assert found["status"] == OK, found


@pytest.mark.parametrize(
    ("name", "gpus", "fault", "words"),
    [
        pytest.param("libraries", "V100*4", "gone:2", "MXNet counts 3 GPUs, the driver has 4",
                     marks=pytest.mark.slow),
        ("kernels", "V100+H100", "", "gpu(1) computes nothing: .*no kernel image"),
        pytest.param("operators", "V100", "operator:4", "softmax in float32 is off by 0.04",
                     marks=pytest.mark.slow),
        pytest.param("precision", "V100", "overflow:1", "overflowed was not skipped",
                     marks=pytest.mark.slow),
        pytest.param("devices", "V100*4", "copy:1", "gradients of 2 GPUs are not those of one",
                     marks=pytest.mark.slow),
        pytest.param("steps", "V100", "memory:2", "segmentation: out of memory while training",
                     marks=pytest.mark.slow),
        ("copies", "V100*2", "copy:1", "GPU to GPU: other values arrive"),
        pytest.param("resume", "V100", "restore:3", "another loss than the whole one",
                     marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_planted_fault_is_found(name, gpus, fault, words):
    found = part(name, gpus, fault)
    assert found["status"] == FAILED
    assert re.search(words.replace("(", r"\(").replace(")", r"\)"), found["found"])


def test_one_gpu_has_nothing_to_compare_gradients_with():
    assert part("devices", "T4")["status"] == SKIPPED


def test_without_a_gpu_it_says_why(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_check.machine, "survey_gpus", lambda: ([], "no NVIDIA driver"))
    with pytest.raises(DeviceError, match="no NVIDIA driver"):
        gpu_check.run(tmp_path)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.kill(os.getpid(), 11)", "the process ended with SIGSEGV"),
        ("raise SystemExit('no words for it')", "no words for it"),
        ("import time; time.sleep(60)", "not finished after 0.5 s"),
    ],
)
def test_a_part_that_crashes_or_hangs_is_reported(monkeypatch, tmp_path, code, words):
    (tmp_path / "python").write_text(f"#!{sys.executable}\n{code}\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(gpu_check.sys, "executable", str(tmp_path / "python"))
    limit = 0.5 if "hangs" in words or "finished" in words else 60
    monkeypatch.setitem(gpu_check.PARTS, "copies", ("Copies", "report the table", limit))
    outcome = gpu_check.check("copies")
    assert outcome.status == FAILED
    assert words in outcome.found
    assert outcome.report.startswith("report the table")


def test_the_report_names_what_failed_and_nothing_private(monkeypatch, tmp_path, capsys):
    from made_up_gpus import gpu

    rows = [{"copy": "GPU to GPU", "GB a second": "3.1"}]

    def check(name, quick):
        bad = name == "copies"
        return Outcome(name, gpu_check.PARTS[name][0], FAILED if bad else OK,
                       "other values arrive" if bad else "fine", 1.0, rows if bad else [],
                       "report the table" if bad else "")  # fmt: skip

    monkeypatch.setattr(gpu_check.machine, "survey_gpus", lambda: ([gpu()], ""))
    monkeypatch.setattr(gpu_check, "check", check)
    monkeypatch.setenv("CUDA_CACHE_PATH", "/home/ada/cache")
    assert gpu_check.run(tmp_path) == 1
    [written] = tmp_path.glob("*.json")
    assert written.name == "gpu-check-tesla-v100.json"
    facts = json.loads(written.read_text())
    assert [row["part"] for row in facts["parts"]] == list(gpu_check.PARTS)
    html = written.with_suffix(".html").read_text()
    assert "1 of 8 parts failed" in html
    assert "GPU to GPU" in html
    assert "/home/ada" not in html + written.read_text()
    assert "copies" in capsys.readouterr().out.lower()
    monkeypatch.setattr(gpu_check, "check", lambda name, quick: Outcome(name, "x", OK, "fine", 1.0))
    assert gpu_check.run(tmp_path, name="My box") == 0
    assert "No part failed" in (tmp_path / "gpu-check-my-box.html").read_text()
