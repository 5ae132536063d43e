import numpy as np
import pytest

from mxopt import recipes
from mxopt.core.errors import DataError, PlanError
from mxopt.core.plan import Plan
from mxopt.recipes.translation.recipe import translation
from mxopt.train.fit import fit

SMALL = {"vocabulary": 300, "layers": 1, "units": 16, "heads": 2, "hidden": 32, "dropout": 0.0}
PLAN = Plan(optimizer="adam", learning_rate=0.01, batch_size=16, preprocess="cached")
WORDS = ["red", "blue", "old", "new", "car", "house", "tree", "dog", "cat", "bird", "sees", "has"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A language pair of one's own: the other language spells every word backwards."""
    monkeypatch.setenv("MXOPT_CACHE", str(tmp_path / "cache"))
    random = np.random.RandomState(0)
    for split, count in (("train", 300), ("validation", 8), ("test", 8)):
        lines = [" ".join(random.choice(WORDS, random.randint(2, 6))) for _ in range(count)]
        (tmp_path / f"{split}.en").write_text("\n".join(lines) + "\n")
        backwards = [" ".join(word[::-1] for word in line.split()) for line in lines]
        (tmp_path / f"{split}.xx").write_text("\n".join(backwards) + "\n")
    return tmp_path


def fitted(recipe, plan):
    events = []
    figures = fit(recipe, plan, lambda event, **fields: events.append({"event": event, **fields}))
    return figures, [e for e in events if e["event"] in ("data", "steps", "epoch")]


def own(folder, **options):
    return translation(str(folder), target="xx", **{**SMALL, **options})


def test_a_language_of_ones_own_is_learnt(folder):
    plan = PLAN.replace(
        epochs=15, learning_rate=0.005, schedule="cosine", warmup_epochs=2, clip_norm=1.0,
        bucketing="length", hybridize="yes",
    )  # fmt: skip
    figures, events = fitted(own(folder, units=32, cpu_operators=True, loss="fused"), plan)
    epochs = [event for event in events if event["event"] == "epoch"]
    assert epochs[-1]["validation_loss"] < 0.7 * epochs[0]["validation_loss"]
    assert figures["test_bleu"] > 15
    assert figures["test_chrf"] > 40
    assert "tok:13a" in figures["test_bleu_signature"]
    assert figures["tokens"] == 15 * epochs[0]["tokens"]
    assert events[0]["kind"] == "real"


@pytest.mark.quick(4)
@pytest.mark.parametrize("loss", ["pick", "fused"])
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("hybridize", ["no", "static"])
def test_every_way_to_compute_it_gives_the_same_losses(folder, loss, fast, hybridize):
    recipe = own(folder, loss=loss, cpu_operators=fast, limit=120)
    switches = {"bucketing": "length", "epochs": 2}
    plain = fitted(own(folder, limit=120), PLAN.replace(**switches))[1]
    other = fitted(recipe, PLAN.replace(hybridize=hybridize, **switches))[1]
    for mine, theirs in zip(plain, other):
        if mine["event"] == "steps":
            assert mine["losses"] == pytest.approx(theirs["losses"], rel=2e-3)


def test_accumulated_batches_of_sentences_update_like_one_large_batch(folder):
    plan = PLAN.replace(bucketing="tokens", batch_size=60, epochs=2, clip_norm=1.0)
    large, [_, first, *_] = fitted(own(folder), plan)
    parts = plan.replace(batch_size=30, grad_accumulation=2, hybridize="static")
    small, [_, cut, *_] = fitted(own(folder, loss="fused"), parts)
    assert len(cut["losses"]) > 1.8 * len(first["losses"])
    for name in ("train_loss", "validation_loss", "test_loss"):
        assert small[name] == pytest.approx(large[name], rel=1e-4), name


def test_a_loss_is_a_mean_over_target_words(folder):
    losses = [
        fitted(own(folder, limit=60), PLAN.replace(learning_rate=0.0, batch_size=size))[0]
        for size in (3, 8)
    ]
    assert losses[1]["validation_loss"] == pytest.approx(losses[0]["validation_loss"], rel=1e-4)


@pytest.mark.parametrize(("too_long", "kept"), [("cut", 300), ("drop", None)])
def test_long_sentences_are_cut_or_dropped_and_counted(folder, too_long, kept):
    data = own(folder, longest=3, too_long=too_long).data()
    assert (len(data.train) == 300) == (kept == 300)
    assert "with more than 3 tokens on a side were" in data.origin
    assert max(len(side) for pair in data.train for side in data.transform(*pair)) <= 3


def test_long_sentences_are_refused_if_so_asked(folder):
    with pytest.raises(DataError, match="have more than 3 tokens"):
        own(folder, longest=3, too_long="refuse").data()


def test_files_of_different_length_are_refused_with_both_counts(folder):
    path = folder / "train.xx"
    path.write_text(path.read_text() + "eno erom\n")
    with pytest.raises(DataError, match=r"300.*301|301.*300"):
        own(folder).data()


def test_the_stand_in_is_taken_if_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("MXOPT_CACHE", str(tmp_path))
    data = recipes.load("translation", stand_in=True, limit=50, vocabulary=300).data()
    assert (data.kind, len(data.train)) == ("stand-in", 50)


def test_a_loss_that_is_not_there_is_refused():
    with pytest.raises(PlanError, match="take one of one-hot, pick, fused"):
        translation(loss="hinge")


def test_a_precision_of_dense_layers_that_is_not_there_is_refused():
    with pytest.raises(PlanError, match="dense='float16' is not a choice; take one of float32, bf"):
        translation(dense="float16")
    with pytest.raises(PlanError, match="add kernels=true"):
        translation(dense="bfloat16")


def test_sentences_in_one_row_without_what_computes_them_are_refused():
    for options in ({}, {"kernels": True}, {"loss": "fused"}):
        with pytest.raises(PlanError, match="add kernels=true loss=fused"):
            translation(packed=True, **options)
