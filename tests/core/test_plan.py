import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxopt.core import plan as plans
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan


def test_diff_names_every_factor_that_differs():
    before = Plan()
    after = before.replace(precision="amp", batch_size=8)
    assert before.diff(after) == {"precision": ("float32", "amp"), "batch_size": (4, 8)}
    assert before.diff(before) == {}


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("engine=Naive", "ThreadedEngine, NaiveEngine"),
        ("batch_sise=4", "did you mean 'batch_size'"),
        ("batch_size=0", "batch_size=0 must be a whole number of at least 1"),
        ("batch_size=2.5", "must be a whole number"),
        ("learning_rate=fast", "must be a number"),
        ("learning_rate=nan", "at least 0"),
        ("learning_rate=inf", "learning_rate=inf must be a finite number"),
        ("weight_decay=inf", "must be a finite number"),
        ("momentum=2", "momentum=2.0 must be below 1, such as 0.9"),
        ("momentum=1", "must be below 1"),
        ("devices=gpu", "gpu:0-3"),
        ("devices=cpu:3-1", "cpu:3-1"),
        ("devices=cpu:0-9999999999", "cpu:0-9999999999"),
        ("prefetch=2", "set num_workers"),
        ("warmup_epochs=1", "fewer than epochs"),
        ("image_dtype=uint16", "image_dtype='uint16' is not a choice; take one of float32, uint8"),
        ("batch_size", "name=value"),
    ],
)
def test_a_bad_word_is_refused_with_what_is_allowed(word, says):
    with pytest.raises(PlanError, match=says):
        Plan.parse([word])


@pytest.mark.parametrize("value", [True, "4", 4.0, None])
def test_a_value_of_the_wrong_type_is_refused(value):
    with pytest.raises(PlanError, match="batch_size"):
        Plan(batch_size=value)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "engine": st.sampled_from(plans.choices("engine")),
            "batch_size": st.integers(1, 512),
            "learning_rate": st.floats(0, 10),
            "cpu_threads": st.none() | st.integers(1, 64),
            "clip_norm": st.none() | st.floats(0, 5),
            "devices": st.sampled_from(["cpu:0", "gpu:0-3", "cpu:1-2"]),
        },
    )
)
def test_words_and_dictionaries_give_back_the_plan(switches):
    plan = Plan(**switches)
    assert Plan.from_dict(plan.as_dict()) == plan
    assert Plan.parse(f"{name}={value}" for name, value in plan.as_dict().items()) == plan


def test_device_indices():
    assert Plan(devices="gpu:1-3").device_indices == [1, 2, 3]
    assert Plan(devices="gpu:1-3").device_kind == "gpu"
