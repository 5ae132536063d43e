from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mxopt.data import read_annotation, streets
from mxopt.data.download import missing_files
from mxopt.data.images import read_colour, read_grey

STREETS = Path(__file__).parents[2] / "data" / "streets"


@pytest.mark.parametrize("name", ["Street00001", "Street00017", "Street00048"])
def test_the_committed_scenes_are_what_the_code_draws(name):
    image, people, doings = streets.scene(name)
    assert (read_colour(STREETS / "PNGImages" / f"{name}.png") == image).all()
    assert (read_grey(STREETS / "PedMasks" / f"{name}_mask.png") == people).all()
    annotation = read_annotation(STREETS / "Annotation" / f"{name}.txt")
    assert [person.label for person in annotation.pedestrians] == doings


def test_the_committed_stand_in_is_whole_and_small():
    assert missing_files(STREETS, streets.file_names()) == []
    files = [path for path in STREETS.rglob("*") if path.is_file()]
    assert len(files) == len(streets.file_names())
    assert sum(path.stat().st_size for path in files) < 3_000_000


def test_every_scene_has_people_and_more_street_than_people():
    for name in streets.scene_names():
        people = read_grey(STREETS / "PedMasks" / f"{name}_mask.png")
        assert 0.01 < (people > 0).mean() < 0.5, name
        assert set(np.unique(people)) == set(range(people.max() + 1)), name


def test_colour_alone_does_not_give_the_people_away():
    colours, people = [], []
    for name in streets.scene_names():
        colours.append(read_colour(STREETS / "PNGImages" / f"{name}.png")[::4, ::4].reshape(-1, 3))
        people.append(read_grey(STREETS / "PedMasks" / f"{name}_mask.png")[::4, ::4].ravel() > 0)
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
    monkeypatch.setattr(streets, "COUNT", 2)
    streets.generate(tmp_path)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert written == set(streets.file_names())
    with Image.open(tmp_path / "PedMasks" / "Street00002_mask.png") as mask:
        assert mask.mode == "L"
