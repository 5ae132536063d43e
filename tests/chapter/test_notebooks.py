"""The notebooks show MXNet's own lines, in short programs, and their cells can be run again."""

import ast
import json
import symtable
from pathlib import Path

import pytest

CHAPTER = Path(__file__).parents[2] / "ch08"
NOTEBOOKS = sorted([*CHAPTER.glob("*.ipynb"), *CHAPTER.parent.glob("guides/*.ipynb")])
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


def names(cell):
    """Return the names that a cell assigns, that it imports, and that it reads from other cells."""
    table = symtable.symtable("".join(cell["source"]), "cell", "exec")
    own, read, tables = table.get_symbols(), set(), [table]
    assigned = {each.get_name() for each in own if each.is_assigned()}
    imported = {each.get_name() for each in own if each.is_imported()}
    while tables:
        inner = tables.pop()
        read |= {each.get_name() for each in inner.get_symbols()
                 if each.is_referenced() and (inner is table or each.is_global())}  # fmt: skip
        tables += inner.get_children()
    return assigned, imported, read - assigned - imported


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_cell_can_be_run_again_after_later_ones(path):
    _, _, *cells = json.loads(path.read_text())["cells"]  # the second one installs, by the shell
    cells = [names(cell) for cell in cells if cell["cell_type"] == "code"]
    known = set()
    for number, (assigned, imported, read) in enumerate(cells):
        later = set().union(*(each[0] for each in cells[number + 1 :]))
        changed = known & read & later
        assert not changed, f"a later cell assigns what code cell {number} reads: {changed}"
        known |= assigned | imported
