"""The notebooks show MXNet's own lines: every call of the chapter, and short programs."""

import ast
import json
from pathlib import Path

import pytest

CHAPTER = Path(__file__).parents[2] / "ch08"
# The calls that the chapter is about, which a reader looks for.
CALLS = {
    "8_1": (
        *("MXNET_ENGINE_TYPE", "wait_to_read(", "waitall(", "DataLoader(", "num_workers=2"),
        *("as_in_context(", 'cast("float16")', "amp.init(", "amp.init_trainer(", "amp.scale_loss("),
        *("amp.unscale(", "split_and_load(", "autograd.backward(", "trainer.step("),
        "hybridize(static_alloc=True, static_shape=True)",
    ),
    "8_2": ("get_model(", "_DeepLabHead(", "SegmentationMetric(", "SoftmaxCrossEntropyLoss("),
    "8_3": ("transformer_en_de_512", "NMTModel(", "FixedBucketSampler(", "corpus_bleu("),
}
MOST_LINES = {"8_1": 15, "8_2": 32, "8_3": 32}


def code(name):
    [path] = CHAPTER.glob(f"{name}_*.ipynb")
    cells = json.loads(path.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_of_the_chapter_are_there(name):
    text = "\n".join(code(name))
    assert not [call for call in CALLS[name] if call not in text]


@pytest.mark.parametrize("name", MOST_LINES)
def test_programs_that_are_compared_are_short(name):
    compared = [source for source in code(name) if "SideBySide(" in source]
    assert len(compared) >= (6 if name == "8_1" else 1)
    for source in compared:
        for function in ast.parse(source).body:
            if isinstance(function, ast.FunctionDef):
                lines = source.splitlines()[function.lineno : function.end_lineno]
                assert len([line for line in lines if line.strip()]) <= MOST_LINES[name], (
                    function.name
                )
