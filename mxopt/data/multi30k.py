"""Multi30k as a Gluon data set: captions of photographs, English and German.

    >>> train = Multi30k("train")                # doctest: +SKIP
    >>> len(train), train.location.kind          # doctest: +SKIP
    (29000, 'real')

Task 1 of the WMT16 multimodal shared task: 29,000 pairs for training, 1,014 for validation, and the
1,000 of ``test_2016_flickr`` for the test. If it is unavailable, 4,000 short pairs of Tatoeba take
its place (3,600, 200 and 200, see ``data/README.md``); ``train.location.kind`` says which it is.
"""

from __future__ import annotations

from pathlib import Path

from mxopt.data.parallel_text import ParallelText, find_files, known_split
from mxopt.data.sources import given_folder, locate

_FILES = {"train": "train", "validation": "val", "test": "test_2016_flickr"}


class Multi30k(ParallelText):
    """One split of Multi30k or of its stand-in: sample i is (English, German), two strings.

    Args:
        split: ``train``, ``validation`` or ``test``.
        root: a folder with the published files; ``None`` takes the one found by
            :func:`mxopt.data.locate`.

    Attributes:
        location: where the files were found.

    Raises:
        DataError: there is no such split, or as for
            :class:`~mxopt.data.parallel_text.ParallelText`.
    """

    def __init__(self, split: str, root: str | Path | None = None):
        stem = known_split(split, _FILES)
        self.location = locate("multi30k") if root is None else given_folder("multi30k", root)
        folder = self.location.path
        if self.location.kind == "stand-in":
            files = find_files(folder, split, "en", "de")
        else:
            files = folder / f"{stem}.en.gz", folder / f"{stem}.de.gz"
        super().__init__(*files)
