"""The wrong orders of shuffling, batching and caching, counted by hand."""

from mxopt.chapter import orders


def test_batches_that_are_shuffled_as_they_are_keep_their_neighbours():
    assert orders.neighbours(batched_first=True) == 49
    assert orders.neighbours(batched_first=True, samples=100, batch=5, epochs=3) == 4
    # Each epoch draws 49 others of 999: after ten, 999 (1 - (950 / 999)^10) = 395 are expected.
    assert 330 < orders.neighbours(batched_first=False) < 460


def test_what_is_cached_after_augmentation_is_the_same_in_every_epoch():
    assert orders.views(cached_after=True) == 1
    assert orders.views(cached_after=False) == 10
