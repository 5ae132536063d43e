"""Whatever bytes a file has, its reader gives a reading or says in one sentence that it cannot.

TensorFlow Lite's files have tests of their own: ``tests/recipes/segmentation/test_tflite.py``.
"""

import functools
import gzip
import io
import json
import math

import numpy as np
import pytest
import toy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mxnet import cpu
from PIL import Image

from mxopt.core.errors import DataError, MxoptError, RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import RecordWriter, read_run
from mxopt.data.annotations import read_annotation, write_annotation
from mxopt.data.images import read_colour, read_grey
from mxopt.data.parallel_text import read_lines
from mxopt.measure import Experiment, read_experiment
from mxopt.methods import TrainingRun
from mxopt.methods.image_decoder import decode_png
from mxopt.methods.precision import amp
from mxopt.train import checkpoint, optimizer

colour_by_kornia = functools.partial(read_colour, decode=decode_png)
grey_by_kornia = functools.partial(read_grey, decode=decode_png)
few = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


def damaged(content: bytes):
    """Bytes that are cut off, have one changed, have some put in, or never were such a file."""
    places = st.integers(0, len(content) - 1)
    return st.one_of(
        st.binary(max_size=60),
        places.map(lambda at: content[:at]),
        st.tuples(places, st.integers(1, 255)).map(
            lambda change: (
                content[: change[0]]
                + bytes([content[change[0]] ^ change[1]])
                + content[change[0] + 1 :]
            )
        ),
        st.tuples(places, st.binary(min_size=1, max_size=9)).map(
            lambda more: content[: more[0]] + more[1] + content[more[0] :]
        ),
    )


def pixels(mode, kind="png"):
    picture = np.random.RandomState(0).randint(0, 3, (9, 7, 3) if mode == "RGB" else (9, 7))
    file = io.BytesIO()
    Image.fromarray(picture.astype("uint8"), mode).save(file, kind)
    return file.getvalue()


def record(folder):
    with RecordWriter(folder / "made.jsonl") as writer:
        writer.begin("a:b", Plan(batch_size=7).as_dict(), {"size": 96})
        writer.write("epoch", loss=math.nan)
        writer.write("end", status="ok", reason="", figures={"seconds": 2.0})
    return (folder / "made.jsonl").read_bytes()


def annotation(folder):
    (folder / "Annotation").mkdir()
    write_annotation(folder, "Made", (100, 120, 3), [("PASpersonWalking", (3, 4, 50, 60))])
    return (folder / "Annotation" / "Made.txt").read_bytes()


FILES = {
    "an image": (lambda _: pixels("RGB"), read_colour, DataError),
    "an image read by kornia": (lambda _: pixels("RGB"), colour_by_kornia, DataError),
    "a JPEG": (lambda _: pixels("RGB", "jpeg"), read_colour, DataError),
    "a mask": (lambda _: pixels("L"), read_grey, DataError),
    "an annotation": (annotation, read_annotation, DataError),
    "text": (lambda _: "ein Hund\nfünf\n".encode(), read_lines, DataError),
    "packed text": (lambda _: gzip.compress(b"ein Hund\n" * 9), read_lines, DataError),
    "a record": (record, read_run, MxoptError),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp("made")) for name, (make, *_) in FILES.items()}


@pytest.mark.parametrize("name", FILES)
@few
@given(data=st.data())
def test_damage_is_said_or_read_over(tmp_path_factory, made, name, data):
    _, read, refusal = FILES[name]
    folder = tmp_path_factory.mktemp("made")
    path = folder / "file"
    path.write_bytes(data.draw(damaged(made[name])))
    try:
        read(path)
    except refusal as error:
        assert str(path) in str(error) or refusal is MxoptError  # noqa: PT017


@pytest.mark.parametrize(
    ("mode", "read"),
    [("RGB", read_colour), ("L", read_grey), ("RGB", colour_by_kornia), ("L", grey_by_kornia)],
)
@pytest.mark.fault(
    "files", "a bit of an image's or a mask's pixels has flipped", sees="cannot be decoded"
)
def test_no_bit_of_the_pixels_flips_unseen(tmp_path, mode, read, sees):
    content, path = pixels(mode), tmp_path / "image.png"
    start, size = content.index(b"IDAT") + 4, content.index(b"IEND") - content.index(b"IDAT") - 12
    path.write_bytes(content)
    whole = read(path)
    for place in range(start, start + size):
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        try:
            assert (read(path) == whole).all()
        except DataError as error:
            sees(str(error))


@pytest.mark.parametrize(
    "text",
    [
        '{"event": "start", "format": "1", "workload": "", "plan": {}}',
        '{"event": "start", "workload": "", "plan": {"devices": "cpu:0-99999999999"}}',
        '{"event": "start", "workload": "", "plan": {"batch_size": ' + "9" * 5000 + "}}",
        "[" * 100_000,
    ],
)
def test_records_made_up_to_harm_are_refused(tmp_path, text):
    (tmp_path / "run.jsonl").write_text(text + "\n")
    with pytest.raises(MxoptError):
        read_run(tmp_path / "run.jsonl")


@few
@given(data=st.data())
def test_a_damaged_experiment_is_refused_or_read_over(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("made")
    Experiment("demo", "a:b", {"before": Plan(), "after": Plan(seed=1)}).save(folder)
    path = folder / "experiment.json"
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    try:
        read_experiment(folder)
    except RecordError as error:
        assert str(folder) in str(error)  # noqa: PT017


@pytest.fixture(scope="module")
def training():
    net = toy.network([cpu()])
    net(toy.flat_transform(*toy.samples(1)[0])[0].expand_dims(0))
    plan = Plan(momentum=0.9)
    trainer = optimizer.make_trainer(net, plan, amp.for_plan(plan, [cpu()]))
    trainer._init_kvstore()
    run = TrainingRun(plan, toy.toy(), [cpu()], amp.Float32(), None)
    run.network, run.learning, run.trainer = net, net, trainer
    return run


@few
@given(data=st.data())
def test_a_damaged_checkpoint_is_passed_over(tmp_path_factory, training, data):
    """Whichever of its files it is, and wherever: every byte is under a SHA-256."""
    folder = tmp_path_factory.mktemp("made")
    checkpoint.save(folder, training, 1000, {"epoch": 1, "step": 0})
    path = folder / f"epoch-0001.{data.draw(st.sampled_from(['params', 'states', 'json']))}"
    content = path.read_bytes()
    changed = data.draw(damaged(content))
    path.write_bytes(changed)
    found = checkpoint.restore(folder, training, 1000)
    # Blanks and the like can be put into JSON without changing what it says.
    assert found is None or (path.suffix == ".json" and json.loads(changed) == json.loads(content))
