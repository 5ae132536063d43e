"""What students get: notebooks without solutions, and slides that load nothing."""

import re

import nbformat

from mxopt.chapter import handout

NOTEBOOKS = [path for folder in handout.FOLDERS for path in sorted(folder.glob("*.ipynb"))]


def test_students_copies_lack_the_solutions_only(tmp_path):
    handout.write(tmp_path)
    for path in NOTEBOOKS:
        whole, copy = nbformat.read(path, 4).cells, nbformat.read(tmp_path / path.name, 4).cells
        solutions = [cell for cell in whole if "solution" in cell.metadata.get("tags", [])]
        assert 4 <= len(solutions) <= 6
        kept = [cell.source for cell in whole if cell not in solutions]
        assert [cell.source for cell in copy] == kept


def test_slides_load_nothing_from_the_network(tmp_path):
    reveal = tmp_path / "reveal"
    (reveal / "dist").mkdir(parents=True)
    (reveal / "dist" / "reveal.js").write_text("// reveal")
    handout.write(tmp_path / "out", reveal=reveal)
    for path in NOTEBOOKS:
        page = (tmp_path / "out" / f"{path.stem}.slides.html").read_text()
        addresses = re.findall(r"(?:src|href)\s*=\s*[\"'](https?:[^\"']+)", page)
        assert not [a for a in addresses if not a.startswith("https://github.com")], addresses
        assert not re.findall(r"url\(['\"]?https?:", page)
        assert "reveal.js/dist/reveal" in page
        assert page.count("<section>") > 20
        assert "def seconds(function):\n    nd.waitall()" not in page
    assert (tmp_path / "out" / "reveal.js" / "dist" / "reveal.js").exists()
