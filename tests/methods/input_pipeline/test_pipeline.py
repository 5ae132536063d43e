import multiprocessing
import time

import mxnet as mx
import numpy as np
import pytest
import toy
from faults import within
from mxnet import gluon, nd

from mxopt import kernels
from mxopt.core.errors import CapacityError, DataError, PlanError
from mxopt.core.plan import Plan, choices
from mxopt.data import PennFudan, ndarray_memory
from mxopt.methods.data_parallel import parallel
from mxopt.methods.input_pipeline import loaders, pipeline
from mxopt.methods.opencv_transforms import resize_and_crop, select
from mxopt.recipes.segmentation.transform import Transform

DATASET = toy.samples(11)
# Those that can be had here: `kernels` need a compiler.
TRANSFORMS = [name for name in choices("transforms") if name != "kernels" or kernels.available()]


def batches(plan, shuffle=True, epochs=1):
    loader = pipeline.make_loader(
        DATASET, toy.flat_transform, plan, parallel.contexts(plan), shuffle
    )
    return [list(loader) for _ in range(epochs)], loader


def together(epoch):
    """Return one epoch's images and labels, in order, as NumPy arrays."""
    shards = [shard for batch in epoch for shard in batch.shards]
    return tuple(np.concatenate([part.asnumpy() for part in parts]) for parts in zip(*shards))


@pytest.mark.parametrize("preprocess", choices("preprocess"))
@pytest.mark.parametrize("kind", choices("loader"))
@pytest.mark.parametrize("workers", [0, 2])
def test_every_placement_and_loader_gives_the_same_batches(preprocess, kind, workers):
    """Images and labels, in the same order, epoch by epoch."""
    expected, _ = batches(Plan(batch_size=4), epochs=2)
    plan = Plan(batch_size=4, preprocess=preprocess, num_workers=workers, loader=kind)
    found, loader = batches(plan, epochs=2)
    assert len(loader) == 3
    for epoch, other in zip(expected, found):
        assert [batch.size for batch in other] == [4, 4, 3]
        for mine, theirs in zip(together(epoch), together(other)):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("preprocess", choices("preprocess"))
@pytest.mark.parametrize("kind", choices("loader"))
@pytest.mark.parametrize(("workers", "devices"), [(0, "cpu:0"), (2, "cpu:0"), (0, "cpu:0-1")])
def test_a_pass_may_begin_at_any_step(preprocess, kind, workers, devices):
    switches = {"preprocess": preprocess, "num_workers": workers, "devices": devices}
    plan = Plan(batch_size=4, loader=kind, **switches)
    (first, second, _), loader = batches(plan, epochs=3)
    for step in range(4):
        loader.epoch, loader.step = 0, step
        # The pass after it is the whole next epoch.
        for expected, found in ((first[step:], list(loader)), (second, list(loader))):
            assert [batch.size for batch in found] == [batch.size for batch in expected]
            if expected:
                for mine, theirs in zip(together(expected), together(found)):
                    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("kind", choices("loader"))
def test_what_comes_before_a_step_is_not_read(kind):
    read = []

    def transform(image, label):
        read.append(label)
        return toy.flat_transform(image, label)

    plan = Plan(batch_size=4, loader=kind)
    loader = pipeline.make_loader(DATASET, transform, plan, [mx.cpu()])
    loader.step = 2
    assert [batch.size for batch in loader] == [3]
    assert len(read) == 3


@pytest.mark.parametrize("shuffle", [True, False])
def test_workers_begin_the_next_epoch_of_a_training_split(shuffle):
    made = multiprocessing.Value("i")

    def transform(image, label):
        with made.get_lock():
            made.value += 1
        return toy.flat_transform(image, label)

    plan = Plan(batch_size=4, num_workers=2, loader="shared_memory", prefetch=2)
    loader = pipeline.make_loader(DATASET, transform, plan, [mx.cpu()], shuffle)
    made.value = 0  # the first sample was looked at
    epochs = [list(loader) for _ in range(2)]
    expected = 2 * 11 + (8 if shuffle else 0)
    within(5, lambda: made.value >= expected)
    time.sleep(0.3)  # so that more would have been made
    assert made.value == expected
    for epoch, other in zip(epochs, batches(Plan(batch_size=4), shuffle, epochs=2)[0]):
        for mine, theirs in zip(together(epoch), together(other)):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("preprocess", choices("preprocess"))
@pytest.mark.parametrize("devices", ["cpu:0", "cpu:0-3"])
def test_every_sample_is_visited_once_an_epoch(preprocess, devices):
    plan = Plan(batch_size=4, preprocess=preprocess, devices=devices)
    epochs, _ = batches(plan, epochs=2)
    images = np.stack([toy.flat_transform(*sample)[0].asnumpy() for sample in DATASET])
    orders = []
    for epoch in epochs:
        found = together(epoch)[0]
        order = [int(np.flatnonzero((images == image).all(axis=(1, 2, 3)))[0]) for image in found]
        assert sorted(order) == list(range(11))
        orders.append(order)
    assert orders[0] != orders[1]


def test_device_resident_samples_are_spread_and_never_copied():
    plan = Plan(batch_size=8, preprocess="device", devices="cpu:0-3")
    [epoch], loader = batches(plan)
    contexts = parallel.contexts(plan)
    assert [len(arrays[0]) for arrays in loader._resident] == [3, 3, 3, 2]
    for arrays, context in zip(loader._resident, contexts):
        assert all(array.context == context for array in arrays)
    assert [shard[1].context for shard in epoch[0].shards] == contexts


@pytest.mark.quick(4)
@pytest.mark.parametrize("preprocess", choices("preprocess"))
@pytest.mark.parametrize(("workers", "devices"), [(2, "cpu:0"), (5, "cpu:0"), (2, "cpu:0-1")])
def test_workers_share_every_batch(preprocess, workers, devices):
    """Together they have the rows of one process, batch by batch; who has none holds another's."""
    plan = Plan(batch_size=4, preprocess=preprocess, devices=devices)
    contexts = parallel.contexts(plan)
    shares = [parallel.Share(worker, workers) for worker in range(workers)]

    def images(batches):
        return sorted(image.tobytes() for image in together(batches)[0])

    loaders = [
        pipeline.make_loader(DATASET, toy.flat_transform, plan, contexts, share=share)
        for share in [parallel.WHOLE, *shares]
    ]
    for whole, *parts in zip(*loaders):
        assert {part.size for part in parts} == {whole.size}
        busy = [part for part in parts if not part.idle]
        assert len(busy) == min(workers, whole.size)
        assert images(busy) == images([whole])
        for part in parts:
            assert not part.idle or sum(len(shard[0]) for shard in part.shards) == 1


@pytest.mark.parametrize("preprocess", choices("preprocess"))
def test_without_shuffle_the_order_is_the_data_sets(preprocess):
    [epoch], _ = batches(Plan(batch_size=4, preprocess=preprocess), shuffle=False)
    labels = together(epoch)[1].ravel()
    np.testing.assert_array_equal(labels, [int(label.asscalar()) for _, label in DATASET])


def test_the_seed_decides_the_order():
    def first(seed):
        return together(batches(Plan(batch_size=11, seed=seed))[0][0])[0]

    np.testing.assert_array_equal(first(1), first(1))
    assert (first(1) != first(2)).any()


@pytest.mark.parametrize("preprocess", choices("preprocess"))
@pytest.mark.parametrize("kind", choices("loader"))
def test_labels_may_be_plain_numbers(preprocess, kind):
    """``gluon.data.ArrayDataset`` gives them so."""
    dataset = gluon.data.ArrayDataset(nd.arange(10).reshape((5, 2)), nd.arange(5))
    plan = Plan(batch_size=2, preprocess=preprocess, loader=kind)
    loader = pipeline.make_loader(dataset, lambda *sample: sample, plan, [mx.cpu()], False)
    labels = together(list(loader))[1]
    np.testing.assert_array_equal(labels, range(5))


def photographs(count=11):
    """Return images and masks of one size, uint8."""
    random = np.random.RandomState(0)
    images = random.randint(0, 256, (count, 24, 40, 3))
    masks = random.randint(0, 5, (count, 24, 40, 1))
    return gluon.data.ArrayDataset(nd.array(images, dtype="uint8"), nd.array(masks, dtype="uint8"))


WAYS = [
    {"transforms": transforms, "loader": kind, "num_workers": workers}
    for transforms in TRANSFORMS
    for kind in choices("loader")
    for workers in (0, 2)
]


@pytest.mark.parametrize("how", WAYS[1:], ids=lambda how: "-".join(map(str, how.values())))
@pytest.mark.parametrize("preprocess", choices("preprocess"))
@pytest.mark.parametrize("pixels", choices("image_dtype"))
def test_every_transform_and_loader_gives_the_same_numbers(how, preprocess, pixels):
    """Bitwise, shuffled, from any step on, on two contexts, in one process and in shares of two."""
    plan = Plan(batch_size=4, devices="cpu:0-1")
    contexts = parallel.contexts(plan)
    for share in (parallel.WHOLE, parallel.Share(1, 2)):
        passes = []
        for switches in ({}, {**how, "image_dtype": pixels}):
            one = plan.replace(preprocess=preprocess, **switches)
            transform = select(Transform(16), one)
            loader = pipeline.make_loader(photographs(), transform, one, contexts, share=share)
            found = list(loader)
            loader.epoch, loader.step = 1, 2
            passes.append(found + list(loader))
        assert len(passes[0]) == 4
        for mine, theirs in zip(*passes, strict=True):
            assert (mine.size, mine.idle) == (theirs.size, theirs.idle)
            for shard, other in zip(mine.shards, theirs.shards, strict=True):
                for one, another in zip(shard, other, strict=True):
                    assert (one.dtype, one.context) == (another.dtype, another.context)
                    np.testing.assert_array_equal(one.asnumpy(), another.asnumpy())


@pytest.mark.parametrize("preprocess", ["lazy", "cached", "roundtrip"])
@pytest.mark.parametrize("workers", [0, 1])
def test_gluon_makes_the_batches_unless_the_plan_says_otherwise(monkeypatch, preprocess, workers):
    def refuse(*arguments):
        raise RuntimeError("not Gluon's")

    for home, name in (
        (loaders.host, "batchify"), (loaders.workers, "Workers"), (pipeline, "TakeRows"),
    ):  # fmt: skip
        monkeypatch.setattr(home, name, refuse)
    plan = Plan(batch_size=4, preprocess=preprocess, num_workers=workers)
    batches(plan)
    with pytest.raises(RuntimeError, match="not Gluon's"):
        batches(plan.replace(loader="shared_memory"))


def test_a_gpu_s_operators_finish_a_batch_as_the_host_does(monkeypatch):
    random = np.random.RandomState(0)
    images = nd.array(random.randint(0, 256, (3, 16, 16, 3)), dtype="uint8")
    masks = nd.array(random.randint(0, 5, (3, 16, 16)), dtype="uint8")
    transform = Transform(16).opencv()
    mine = transform.expand(images, masks)
    monkeypatch.setattr(ndarray_memory, "on_host", lambda array: False)
    for found, expected in zip(mine, transform.expand(images, masks)):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())


@pytest.mark.parametrize("preprocess", ["cached", "device", "roundtrip"])
def test_small_pixels_take_a_quarter_of_what_is_kept(monkeypatch, preprocess):
    kept = {}
    for pixels in choices("image_dtype"):
        plan = Plan(preprocess=preprocess, image_dtype=pixels)
        found = pipeline.preprocess

        def keep(*arguments, found=found, pixels=pixels):
            resident = found(*arguments)
            kept[pixels] = sum(a.size * np.dtype(a.dtype).itemsize for [*r] in resident for a in r)
            return resident

        monkeypatch.setattr(pipeline, "preprocess", keep)
        pipeline.make_loader(photographs(), Transform(16), plan, [mx.cpu()])
        monkeypatch.setattr(pipeline, "preprocess", found)
    assert kept["float32"] == 4 * kept["uint8"] == 4 * 11 * 16 * 16 * 4


def test_a_transform_in_one_piece_cannot_keep_pixels_small():
    with pytest.raises(PlanError, match="flat_transform has none: take image_dtype='float32'"):
        batches(Plan(image_dtype="uint8"))


def test_memory_needed_counts_inputs_and_labels():
    # float32 (1, 4, 4) and int32 (1,), eleven times
    assert pipeline.memory_needed(DATASET, toy.flat_transform) == 11 * (16 * 4 + 4)


@pytest.mark.parametrize("preprocess", ["cached", "device", "roundtrip"])
def test_what_does_not_fit_is_refused_before_it_is_made(monkeypatch, preprocess):
    monkeypatch.setattr(pipeline.machine, "memory_available", lambda: 100)
    monkeypatch.setattr(pipeline, "preprocess", lambda *a: pytest.fail("it was made"))
    with pytest.raises(CapacityError, match=f"preprocess='{preprocess}' would keep .* MiB"):
        batches(Plan(preprocess=preprocess))


def test_samples_of_different_shape_cannot_be_kept():
    dataset = gluon.data.SimpleDataset([(nd.ones((size,)),) for size in (2, 3)])
    with pytest.raises(DataError, match="sample 1 has shape"):
        pipeline.preprocess(dataset, lambda array: (array,), [mx.cpu()])


def test_an_empty_data_set_is_refused():
    empty = gluon.data.SimpleDataset([])
    with pytest.raises(DataError, match="empty"):
        pipeline.make_loader(empty, toy.flat_transform, Plan(), [mx.cpu()])


def test_fewer_samples_in_a_batch_than_devices_is_refused_where_they_cannot_be_split():
    with pytest.raises(PlanError, match="batch_size=3"):
        batches(Plan(batch_size=3, preprocess="device", devices="cpu:0-3"))


@pytest.mark.parametrize("image_dtype", choices("image_dtype"))
@pytest.mark.parametrize("transforms", TRANSFORMS)
@pytest.mark.parametrize("kind", choices("loader"))
def test_samples_stay_numpy_arrays_where_all_that_follows_takes_them(
    streets, monkeypatch, kind, transforms, image_dtype
):
    """With the shared memory loader and OpenCV; every batch is the one that Gluon alone makes."""
    seen = set()

    def note(image, *given, **options):
        seen.add(type(image))
        return resize_and_crop(image, *given, **options)

    monkeypatch.setattr("mxopt.methods.opencv_transforms.arrays.resize_and_crop", note)
    plan = Plan(batch_size=2, transforms=transforms, loader=kind, image_dtype=image_dtype)
    made = []
    for chosen in (Plan(batch_size=2), plan, plan.replace(num_workers=2)):
        data, transform = PennFudan("validation", streets), select(Transform(32), chosen)
        loader = pipeline.make_loader(data, transform, chosen, [mx.cpu()])
        made.append(together(list(loader)))
    expected = set() if transforms == "gluon" else {nd.NDArray}
    assert seen == ({np.ndarray} if kind == "shared_memory" and expected else expected)
    for others in made[1:]:
        for mine, other in zip(made[0], others):
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("transforms", TRANSFORMS)
@pytest.mark.parametrize("devices", ["cpu:0", "cpu:0-1"])
@pytest.mark.parametrize("image_dtype", choices("image_dtype"))
def test_workers_memory_is_copied_unless_the_rest_of_the_transform_reads_it_at_once(
    streets, monkeypatch, transforms, devices, image_dtype
):
    """OpenCV's and the kernels' do, on the one CPU that is the host; their results are its own."""
    copies = []
    copied = ndarray_memory.copied
    monkeypatch.setattr(ndarray_memory, "copied", lambda *a: copies.append(1) or copied(*a))
    plan = Plan(
        batch_size=2, num_workers=2, loader="shared_memory", transforms=transforms,
        image_dtype=image_dtype, devices=devices,
    )  # fmt: skip
    data, contexts = PennFudan("train", streets), parallel.contexts(plan)
    loader = pipeline.make_loader(data, select(Transform(32), plan), plan, contexts)
    copies.clear()  # the first sample was looked at
    epochs = [list(loader) for _ in range(2)]
    for batch in epochs[0] + epochs[1]:
        for shard, context in zip(batch.shards, contexts):
            assert [part.context for part in shard] == [context] * 2
    at_once = transforms != "gluon" and image_dtype == "uint8" and devices == "cpu:0"
    assert len(copies) == (0 if at_once else 2 * 2 * len(loader))
    plain = Plan(batch_size=2, devices=devices)
    alone = pipeline.make_loader(data, Transform(32), plain, contexts)
    for epoch in epochs:
        for mine, other in zip(together(epoch), together(list(alone))):
            np.testing.assert_array_equal(mine, other)
