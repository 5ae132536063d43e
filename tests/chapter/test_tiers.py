from __future__ import annotations

import pytest
from made_up_gpus import GPU_BUILD, FakeNvml, gpu

from mxopt import machine
from mxopt.chapter import tiers
from mxopt.core.errors import DeviceError, PlanError

NO_GPUS = ([], "no NVIDIA driver on this machine")
REAL, NO_DATA = (True, "/data/PennFudanPed (cache)"), (False, "its address does not answer")


def test_a_usable_gpu_makes_the_gpu_tier():
    survey = ([gpu(), gpu(index=1, name="Tesla T4")], "")
    tier = tiers.pick_tier(survey=survey)
    assert tier == tiers.Tier("gpu", "2 usable GPUs (Tesla V100, Tesla T4)")


def test_real_data_makes_the_cpu_tier():
    tier = tiers.pick_tier(survey=NO_GPUS, real_data=REAL)
    assert tier.name == "cpu"
    assert "no NVIDIA driver" in tier.why
    assert REAL[1] in tier.why


def test_neither_makes_the_smoke_tier():
    tier = tiers.pick_tier(survey=NO_GPUS, real_data=NO_DATA)
    assert tier.name == "smoke"
    assert NO_DATA[1] in tier.why


def test_a_hopper_gpu_falls_to_the_cpu_tier_and_is_told_so():
    hopper = FakeNvml(("NVIDIA H100", [9, 0]))
    tier = tiers.pick_tier(survey=machine.survey_gpus(GPU_BUILD, hopper), real_data=REAL)
    assert tier.name == "cpu"
    assert "GPU 0, NVIDIA H100: compute capability 9.0 (Hopper)" in tier.why


@pytest.mark.parametrize("name", ["smoke", "cpu"])
def test_a_tier_asked_for_is_taken(name):
    assert tiers.pick_tier(name, survey=([gpu()], "")) == tiers.Tier(name, "requested")


def test_gpu_tier_asked_for():
    tier = tiers.pick_tier("gpu", survey=([gpu()], ""))
    assert tier == tiers.Tier("gpu", "requested, 1 usable GPU (Tesla V100)")


@pytest.mark.parametrize(
    ("survey", "words"),
    [(NO_GPUS, "no NVIDIA driver"), (([gpu((9, 0), "too new (Hopper)")], ""), "Hopper")],
)
def test_gpu_tier_asked_for_in_vain_says_why(survey, words):
    with pytest.raises(DeviceError, match=words):
        tiers.pick_tier("gpu", survey=survey)


def test_unknown_tier_names_the_known_ones():
    with pytest.raises(PlanError, match=r"'tpu'.* smoke, cpu, gpu"):
        tiers.pick_tier("tpu")


def test_real_data_is_asked_of_the_data_room(monkeypatch):
    from mxopt import data

    monkeypatch.setattr(data, "reachable", lambda name: (name == "penn-fudan", "here"))
    assert tiers.pick_tier(survey=NO_GPUS).name == "cpu"
