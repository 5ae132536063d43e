"""Records say which code made them."""

import subprocess

from mxopt.core import source


def test_the_hash_changes_with_names_and_contents(tmp_path):
    def hashed(files):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return source.source_hash(folder)

    plain = {"__init__.py": "", "a/b.py": "x = 1\n"}
    assert hashed(plain) == hashed(plain) == hashed({**plain, "notes.md": "not code"})
    others = [{**plain, "a/b.py": "x = 2\n"}, {**plain, "a/c.py": ""}, {"a/b.py": "x = 1\n"}]
    assert len({hashed(files) for files in [plain, *others]}) == 4


def test_the_commit_is_named_and_so_are_changes_that_it_does_not_hold(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert source.commit(package) == ""
    source.commit.cache_clear()

    def git(*arguments):
        identity = ("-c", "user.name=n", "-c", "user.email=e@e")
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "--quiet")
    assert source.commit(package) == ""  # a checkout, but the package is not part of it
    source.commit.cache_clear()
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    assert source.commit(package) == git("rev-parse", "HEAD")
    source.commit.cache_clear()
    (package / "__init__.py").write_text("x = 1\n")
    assert source.commit(package) == git("rev-parse", "HEAD") + "+changes"
    source.commit.cache_clear()
