"""Files in the layout of the zoos' folder: the chapter's networks, with random weights."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from unittest import mock

import gluonnlp
import mxnet as mx

from mxopt.data import sources

NETWORK = "deeplab_resnet101_coco"
PAIRS = 60


def make(home: Path, cache: Path, size: int) -> None:
    """Write weights, vocabularies and text as GluonCV, GluonNLP and :mod:`mxopt.data.wmt` do.

    Args:
        home: becomes ``MXNET_HOME``.
        cache: becomes ``MXOPT_CACHE``.
        size: side of the images in pixels.
    """
    models = home / "models"
    models.mkdir(parents=True)
    words = _text(cache / "wmt2016-bpe")
    weights = {NETWORK: _segmenter(models, size)}
    weights["transformer_en_de_512_WMT2014"] = _translator(models, words)
    text = words.to_json().encode()
    vocabularies = {
        name: _named(models, name, ".vocab", text) for name in ("WMT2014_src", "WMT2014_tgt")
    }
    hashes = {"weights": weights, "vocabularies": vocabularies}
    (models / "made.json").write_text(json.dumps(hashes))


def _named(folder: Path, name: str, ending: str, content: bytes) -> str:
    found = hashlib.sha1(content).hexdigest()
    (folder / f"{name}-{found[:8]}{ending}").write_bytes(content)
    return found


def _renamed(path: Path, name: str) -> str:
    found = hashlib.sha1(path.read_bytes()).hexdigest()
    path.rename(path.with_name(f"{name}-{found[:8]}.params"))
    return found


def _segmenter(models: Path, size: int) -> str:
    from gluoncv import model_zoo

    mx.random.seed(1)
    net = model_zoo.get_model(NETWORK, pretrained_base=False, crop_size=size)
    net.initialize(mx.init.Xavier())
    net.aux = True  # so that all of its weights have a shape
    net(mx.nd.zeros((1, 3, size, size)))
    net.save_parameters(str(models / "new.params"))
    return _renamed(models / "new.params", NETWORK)


def _translator(models: Path, words: gluonnlp.Vocab) -> str:
    with mock.patch("gluonnlp.model.transformer._load_vocab", return_value=words):
        model, _, _ = gluonnlp.model.transformer_en_de_512(dataset_name="WMT2014")
    model.initialize(mx.init.Xavier())
    ids = mx.nd.ones((1, 4))
    model(ids, ids, mx.nd.array([4]), mx.nd.array([4]))
    model.save_parameters(str(models / "new.params"))
    return _renamed(models / "new.params", "transformer_en_de_512_WMT2014")


def _text(folder: Path) -> gluonnlp.Vocab:
    """Write the splits, and return the vocabulary of their words."""
    from mxopt.data import Multi30k

    found = sources.stand_in("multi30k")
    pairs = list(Multi30k("train", found.path))[: 3 * PAIRS]
    folder.mkdir(parents=True)
    for number, split in enumerate(("train", "validation", "test")):
        own = pairs[number * PAIRS : (number + 1) * PAIRS]
        for side, ending in enumerate(("en", "de")):
            lines = "".join(pair[side] + "\n" for pair in own)
            (folder / f"{split}.{ending}").write_text(lines, encoding="utf-8")
    every = [word for pair in pairs for text in pair for word in text.split()]
    return gluonnlp.Vocab(gluonnlp.data.count_tokens(every))
