import os

import draw_streets
import numpy as np
import pytest
from packing import pack
from PIL import Image

from mxopt.data import read_annotation
from mxopt.data.images import read_colour, read_grey
from mxopt.data.sources import STAND_INS


@pytest.mark.parametrize("name", ["Street00001", "Street00017", "Street00048"])
def test_the_shipped_scenes_are_what_the_code_draws(name, streets):
    image, people, doings = draw_streets.scene(name)
    assert (read_colour(streets / "PNGImages" / f"{name}.png") == image).all()
    assert (read_grey(streets / "PedMasks" / f"{name}_mask.png") == people).all()
    annotation = read_annotation(streets / "Annotation" / f"{name}.txt")
    assert [person.label for person in annotation.pedestrians] == doings


def test_the_shipped_archive_is_whole_and_small(streets):
    files = {path.relative_to(streets).as_posix() for path in streets.rglob("*") if path.is_file()}
    assert files == set(draw_streets.file_names())
    assert (STAND_INS / "streets.zip").stat().st_size < 3_000_000


def test_an_archive_depends_on_names_and_content_alone(tmp_path):
    for folder, names in (("first", "ab"), ("second", "ba")):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text(name)
    os.utime(tmp_path / "second" / "a", (10**9, 10**9))
    (tmp_path / "second" / "a").chmod(0o600)
    for folder in ("first", "second"):
        pack(tmp_path / folder, tmp_path / f"{folder}.zip")
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()


def test_every_scene_has_people_and_more_street_than_people(streets):
    for name in draw_streets.scene_names():
        people = read_grey(streets / "PedMasks" / f"{name}_mask.png")
        assert 0.01 < (people > 0).mean() < 0.5, name
        assert set(np.unique(people)) == set(range(people.max() + 1)), name


def test_colour_alone_does_not_give_the_people_away(streets):
    colours, people = [], []
    for name in draw_streets.scene_names():
        colours.append(read_colour(streets / "PNGImages" / f"{name}.png")[::4, ::4].reshape(-1, 3))
        people.append(read_grey(streets / "PedMasks" / f"{name}_mask.png")[::4, ::4].ravel() > 0)
    colours, people = np.concatenate(colours) // 32, np.concatenate(people)
    # The best rule there can be on 8 levels of each channel, allowed to see the very answers it is
    # judged by: rank the 512 colours by how often they are people, take the best cut-off.
    cell = colours.astype(int) @ [64, 8, 1]
    persons, everything = (np.bincount(cell, weight, 512) for weight in (people, None))
    best_first = np.argsort(-persons / np.maximum(everything, 1))
    found, taken = np.cumsum(persons[best_first]), np.cumsum(everything[best_first])
    iou = (found / (taken + people.sum() - found)).max()
    assert 0.15 < iou < 0.3


def test_generate_writes_the_layout_that_is_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(draw_streets, "COUNT", 2)
    draw_streets.generate(tmp_path)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert written == set(draw_streets.file_names())
    with Image.open(tmp_path / "PedMasks" / "Street00002_mask.png") as mask:
        assert mask.mode == "L"
