"""The known data sets: folders, file names, SHA-256 hashes and addresses.

This module opens no file and no connection. Every address is https; where the publisher has a
version history, the address names a commit, so that the file keeps its hash.

Two kinds of entry:

- *files*, each with its own address and its own SHA-256;
- one *archive*, unpacked after download, whose content is checked as a tree.
"""

from __future__ import annotations

from dataclasses import dataclass

from mxopt.core.errors import DataError


@dataclass(frozen=True)
class RemoteFile:
    """One published file.

    Attributes:
        name: in the data set's folder.
        sha256: in hexadecimal.
        url: its address.
    """

    name: str
    sha256: str
    url: str


@dataclass(frozen=True)
class Archive:
    """A zip file that contains the data set's folder.

    Attributes:
        urls: its addresses, tried in order.
        members: names of its files, relative to the data set's folder.
        tree_sha256: one SHA-256 over the sorted names and hashes of ``members`` (see
            :func:`mxopt.data.hashes.tree_sha256`).
        sha256: of the zip file itself; ``None`` if none is published, then only ``tree_sha256`` is
            checked.
    """

    urls: tuple[str, ...]
    members: tuple[str, ...]
    tree_sha256: str
    sha256: str | None = None


@dataclass(frozen=True)
class Source:
    """One data set.

    Attributes:
        name: by which it is located.
        title: what it contains, for messages.
        folder: name of its sub-folder under ``MXOPT_DATA`` and in the cache.
        required: names of files, relative to that folder, without which it is incomplete.
        files: published files, unless it is published as an archive.
        archive: published archive, if any.
        stand_in: name of an archive in ``mxopt/data/stand_ins``, without ``.zip``; ``None`` if
            there is no stand-in.
    """

    name: str
    title: str
    folder: str
    required: tuple[str, ...]
    files: tuple[RemoteFile, ...] = ()
    archive: Archive | None = None
    stand_in: str | None = None

    @property
    def urls(self) -> tuple[str, ...]:
        """All addresses of this data set."""
        return self.archive.urls if self.archive else tuple(file.url for file in self.files)


def _from_files(
    name: str,
    title: str,
    folder: str,
    base: str,
    hashes: dict[str, str],
    stand_in: str | None = None,
) -> Source:
    files = tuple(RemoteFile(file, sha256, base + file) for file, sha256 in hashes.items())
    return Source(name, title, folder, required=tuple(hashes), files=files, stand_in=stand_in)


_PENN_FUDAN_NAMES = tuple(
    [f"FudanPed{number:05d}" for number in range(1, 75)]
    + [f"PennPed{number:05d}" for number in range(1, 97)]
)
_PENN_FUDAN_PIXELS = tuple(f"PNGImages/{name}.png" for name in _PENN_FUDAN_NAMES) + tuple(
    f"PedMasks/{name}_mask.png" for name in _PENN_FUDAN_NAMES
)

PENN_FUDAN = Source(
    name="penn-fudan",
    title="Penn-Fudan pedestrians (170 images with masks)",
    folder="PennFudanPed",
    required=_PENN_FUDAN_PIXELS,
    archive=Archive(
        # The authors' page, then the Internet Archive's unaltered copy of the same file.
        urls=(
            "https://www.cis.upenn.edu/~jshi/ped_html/PennFudanPed.zip",
            "https://web.archive.org/web/2023id_/"
            "https://www.cis.upenn.edu/~jshi/ped_html/PennFudanPed.zip",
        ),
        members=_PENN_FUDAN_PIXELS + tuple(f"Annotation/{name}.txt" for name in _PENN_FUDAN_NAMES),
        # The authors publish no hash of the zip file, and packing the same files again would change
        # it. So the unpacked files are hashed instead.
        tree_sha256="83fd9b504a1700b32343c7efaee5c7dec4a211fe141cfbc776b428149678dc2e",
    ),
    stand_in="streets",
)

FASHION_MNIST = _from_files(
    "fashion-mnist",
    "Fashion-MNIST (70,000 garments, 28 x 28)",
    "fashion-mnist",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/"
    "b2617bb6d3ffa2e429640350f613e3291e10b141/data/fashion/",
    {
        "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed27"
        "1626dd12800ba2636569512369268a84",
        "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc"
        "97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a4"
        "84bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3c"
        "d6d1c2608764d35dfb1850b086bf8dd5",
    },
    stand_in="garments",
)

MULTI30K = _from_files(
    "multi30k",
    "Multi30k task 1, English and German (29,000 / 1,014 / 1,000 pairs)",
    "multi30k",
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/",
    {
        "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
        "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
        "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
        "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
        "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf"
        "5c4413c5befc793cc629934359d532d9",
        "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15"
        "005fc42a07a6e55ca6c52b6ababb8cc8",
    },
    stand_in="tatoeba",
)

DEEPLAB_MOBILENETV2 = _from_files(
    "deeplab-mobilenetv2",
    "DeepLabv3-MobileNetV2 weights, Pascal VOC, quantised (Apache-2.0)",
    "weights",
    "https://raw.githubusercontent.com/google-coral/test_data/"
    "104342d2d3480b3e66203073dac24f4e2dbb4c41/",
    {
        "deeplabv3_mnv2_pascal_quant.tflite": "350af47fd346ea6d74b58833a351f583"
        "ba860e9806ec5bd292ff8d8f1f249398",
    },
)

SOURCES = {
    source.name: source for source in (PENN_FUDAN, FASHION_MNIST, MULTI30K, DEEPLAB_MOBILENETV2)
}


def source(name: str) -> Source:
    """Return the registry's entry with this name.

    Args:
        name: of the data set.

    Raises:
        DataError: there is no such data set; the message lists the names.
    """
    try:
        return SOURCES[name]
    except KeyError:
        known = ", ".join(SOURCES)
        raise DataError(f"There is no data set called {name!r}; there are: {known}.") from None
