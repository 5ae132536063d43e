"""What students get: notebooks without solutions, and slides that load nothing."""

import re

import nbformat
import pytest

from mxopt.chapter import handout

NOTEBOOKS = [path for folder in handout.FOLDERS for path in sorted(folder.glob("*.ipynb"))]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the copies and the slides, and reveal.js, of which one file is enough."""
    folder = tmp_path_factory.mktemp("handout")
    (folder / "reveal" / "dist").mkdir(parents=True)
    (folder / "reveal" / "dist" / "reveal.js").write_text("// reveal")
    handout.write(folder / "out", reveal=folder / "reveal")
    return folder / "out"


def test_students_copies_lack_the_solutions_only(written):
    for path in NOTEBOOKS:
        whole, copy = nbformat.read(path, 4).cells, nbformat.read(written / path.name, 4).cells
        solutions = [cell for cell in whole if "solution" in cell.metadata.get("tags", [])]
        assert 4 <= len(solutions) <= 6
        kept = [cell.source for cell in whole if cell not in solutions]
        assert [cell.source for cell in copy] == kept


def test_slides_load_nothing_from_the_network(written):
    for path in NOTEBOOKS:
        page = (written / f"{path.stem}.slides.html").read_text()
        addresses = re.findall(r"(?:src|href)\s*=\s*[\"'](https?:[^\"']+)", page)
        assert not [a for a in addresses if not a.startswith("https://github.com")], addresses
        assert not re.findall(r"url\(['\"]?https?:", page)
        assert "reveal.js/dist/reveal" in page
        assert page.count("<section>") > 20
        assert "def seconds(function):\n    nd.waitall()" not in page
    assert (written / "reveal.js" / "dist" / "reveal.js").exists()
