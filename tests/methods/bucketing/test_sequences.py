from types import SimpleNamespace

import mxnet as mx
import numpy as np
import pytest
from mxnet import gluon, nd

from mxopt.core.errors import DataError, PlanError
from mxopt.core.plan import Plan
from mxopt.methods.bucketing.sequences import MULTIPLE, PairBatch, SentenceLoader
from mxopt.methods.data_parallel.parallel import WHOLE, Share

PAD, BOS, EOS = 0, 2, 3
VOCABULARY = SimpleNamespace(pad=PAD, bos=BOS, eos=EOS)
RANDOM = np.random.RandomState(0)
PAIRS = [
    (" ".join(map(str, RANDOM.randint(4, 50, RANDOM.randint(1, 12)))),
     " ".join(map(str, RANDOM.randint(4, 50, RANDOM.randint(1, 12)))))
    for _ in range(53)
]  # fmt: skip


def encode(*pair):
    return tuple([int(word) for word in text.split()] for text in pair)


def loader(shuffle=True, contexts=None, data=PAIRS, share=WHOLE, transform=encode, **switches):
    plan = Plan(**{"batch_size": 8, **switches})
    return SentenceLoader(
        gluon.data.SimpleDataset(data), transform, PairBatch(VOCABULARY), plan,
        contexts or [mx.cpu()], shuffle, share,
    )  # fmt: skip


def rows(batch):
    """Return a batch's pairs as they went in, the arrays checked against each other."""
    found = []
    for shard in batch.shards:
        source, shifted, source_length, target_length, words = (a.asnumpy() for a in shard)
        for i in range(len(source)):
            n, m = source_length[i], target_length[i]
            assert source[i, n - 1] == words[i, m - 1] == EOS
            assert shifted[i, 0] == BOS
            assert (source[i, n:] == PAD).all()
            assert (words[i, m:] == PAD).all()
            np.testing.assert_array_equal(shifted[i, 1:m], words[i, : m - 1])
            found.append((tuple(source[i, : n - 1]), tuple(words[i, : m - 1])))
    return found


@pytest.mark.parametrize("bucketing", ["none", "length", "tokens"])
@pytest.mark.parametrize("preprocess", ["lazy", "cached", "device"])
def test_every_pair_comes_once_and_whole_in_every_epoch(bucketing, preprocess):
    size = 40 if bucketing == "tokens" else 8
    load = loader(bucketing=bucketing, preprocess=preprocess, batch_size=size)
    expected = sorted(tuple(map(tuple, encode(*pair))) for pair in PAIRS)
    orders = []
    for _ in range(2):
        batches = list(load)
        assert len(batches) == len(load)
        seen = [row for batch in batches for row in rows(batch)]
        assert sorted(seen) == expected
        orders.append(seen)
        words = sum(len(target) + 1 for _, target in seen)
        assert sum(batch.size for batch in batches) == words
    assert orders[0] != orders[1]


@pytest.mark.parametrize("bucketing", ["none", "length", "tokens"])
@pytest.mark.parametrize("preprocess", ["lazy", "cached", "device"])
def test_a_pass_may_begin_at_any_step_and_reads_nothing_before_it(bucketing, preprocess):
    read = []

    def counted(*pair):
        read.append(pair)
        return encode(*pair)

    load = loader(bucketing=bucketing, preprocess=preprocess, batch_size=40, transform=counted)
    epochs = [[rows(batch) for batch in load] for _ in range(2)]
    load.epoch, load.step = 0, 1
    read.clear()
    rest = [rows(batch) for batch in load]
    assert rest == epochs[0][1:]
    assert len(read) == (sum(map(len, rest)) if preprocess == "lazy" else 0)
    assert [rows(batch) for batch in load] == epochs[1]


@pytest.mark.parametrize("preprocess", ["lazy", "cached", "device"])
def test_workers_share_every_batch(preprocess):
    """Sizes are whole batches' tokens; the last batch has 5 pairs, so the sixth worker is idle."""
    shares = [WHOLE, *(Share(worker, 6) for worker in range(6))]
    for whole, *parts in zip(*(loader(preprocess=preprocess, share=share) for share in shares)):
        assert {part.size for part in parts} == {whole.size}
        busy = [part for part in parts if not part.idle]
        assert len(busy) == min(6, len(rows(whole)))
        assert sorted(row for part in busy for row in rows(part)) == sorted(rows(whole))


@pytest.mark.parametrize("preprocess", ["cached", "device"])
def test_placements_give_the_same_batches(preprocess):
    for mine, theirs in zip(loader(), loader(preprocess=preprocess)):
        assert mine.size == theirs.size
        for one, other in zip(mine.shards[0], theirs.shards[0]):
            np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


def test_tokens_bound_the_batches():
    load = loader(bucketing="tokens", batch_size=40)
    for batch in load:
        assert np.prod(batch.shards[0][1].shape) <= 40


def test_without_shuffling_pairs_come_in_order():
    seen = [row for batch in loader(shuffle=False) for row in rows(batch)]
    assert seen == [tuple(map(tuple, encode(*pair))) for pair in PAIRS]


def test_a_batch_is_split_over_contexts():
    batches = list(loader(contexts=[mx.cpu(0), mx.cpu(1)]))
    assert [len(shard[0]) for shard in batches[0].shards] == [4, 4]
    assert sum(len(rows(batch)) for batch in batches) == len(PAIRS)


@pytest.mark.parametrize(
    ("switches", "contexts"),
    [
        ({"preprocess": "roundtrip"}, 1),
        ({"num_workers": 2}, 1),
        ({"preprocess": "device"}, 2),
        ({"image_dtype": "uint8"}, 1),
    ],
)
def test_what_does_not_go_with_sentences_is_refused(switches, contexts):
    with pytest.raises(PlanError, match="sentences"):
        loader(contexts=[mx.cpu(i) for i in range(contexts)], **switches)


def test_an_empty_data_set_is_refused():
    with pytest.raises(DataError, match="at least one sentence"):
        loader(data=[])


def test_sentences_may_be_in_one_row_with_padding_at_its_end():
    pairs = [([5], [6, 7]), ([8, 9], [])]
    source, target, *lengths, words = PairBatch(VOCABULARY, packed=True)(pairs, source=9, target=9)
    rows = [array.tolist() for array in (source, target, words)]
    rest = [PAD] * (MULTIPLE - 5), [PAD] * (MULTIPLE - 4)
    assert rows == [
        [[5, EOS, 8, 9, EOS, *rest[0]]], [[BOS, 6, 7, BOS, *rest[1]]], [[6, 7, EOS, EOS, *rest[1]]],
    ]  # fmt: skip
    assert [array.tolist() for array in lengths] == [[2, 3], [3, 1]]
    assert {array.dtype for array in (source, target, *lengths, words)} == {np.dtype(np.int32)}


@pytest.mark.parametrize("words", [MULTIPLE - 1, MULTIPLE, MULTIPLE + 1])
def test_lengths_of_rows_repeat(words):
    pairs = [([5] * (words - 3), [6]), ([8], [7])]  # and an end for each sentence
    source, *_ = PairBatch(VOCABULARY, packed=True)(pairs)
    assert source.shape == (1, MULTIPLE if words <= MULTIPLE else 2 * MULTIPLE)


def test_a_single_sentence_is_not_padded():
    source, target, *_ = PairBatch(VOCABULARY, packed=True)([([5], [6, 7])])
    assert (source.tolist(), target.tolist()) == ([[5, EOS]], [[BOS, 6, 7]])


def test_a_loader_gives_the_same_sentences_without_padding():
    plan = Plan(batch_size=40, bucketing="tokens", preprocess="cached")
    both = [
        SentenceLoader(
            gluon.data.SimpleDataset(PAIRS), encode, PairBatch(VOCABULARY, packed), plan,
            [mx.cpu()], True,
        )
        for packed in (False, True)
    ]  # fmt: skip
    for padded, packed in zip(*both):
        assert padded.size == packed.size
        [whole], [row] = ([[a.asnumpy() for a in shard] for shard in batch.shards]
                          for batch in (padded, packed))  # fmt: skip
        lengths = whole[2:4]
        np.testing.assert_array_equal(lengths, row[2:4])
        for place, own in ((0, lengths[0]), (1, lengths[1]), (4, lengths[1])):
            real = np.concatenate([ids[:n] for ids, n in zip(whole[place], own)])
            np.testing.assert_array_equal(row[place][:, : len(real)], real[None])
            assert (row[place][:, len(real) :] == PAD).all()


@pytest.mark.parametrize(
    ("contexts", "preprocess"), [([mx.cpu(0), mx.cpu(1)], "cached"), ([mx.cpu()], "device")]
)
def test_sentences_in_one_row_are_not_divided(contexts, preprocess):
    with pytest.raises(PlanError, match="take one device and preprocess='cached'"):
        SentenceLoader(
            gluon.data.SimpleDataset(PAIRS), encode, PairBatch(VOCABULARY, packed=True),
            Plan(batch_size=8, preprocess=preprocess), contexts, True,
        )  # fmt: skip


def test_lengths_may_be_given():
    arrays = PairBatch(VOCABULARY)([([5], [6, 7])], source=4, target=6)
    assert [array.tolist() for array in arrays] == [
        [[5, EOS, PAD, PAD]], [[BOS, 6, 7, PAD, PAD, PAD]], [2], [3], [[6, 7, EOS, PAD, PAD, PAD]],
    ]  # fmt: skip
    assert all(nd.array(array, dtype=array.dtype).dtype == np.int32 for array in arrays)
