"""What an earlier build made is used until something that it is made of changes."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from docs.build import executed, kept


@dataclass
class Build:
    """A part of the site that is made of a file and a folder, and counts how often it is made."""

    source: Path
    folder: Path
    kept: Path
    times: int = 0

    def __call__(self):
        """Return the part's pages and pictures by their names."""
        return dict(kept.contents(kept.Part("a part", self._made, (self.source, self.folder)), self.kept))

    def _made(self):
        self.times += 1
        yield "page.md", f"made {self.times} times"
        yield "picture.svg", b"<svg/>"


@pytest.fixture
def made(tmp_path):
    """Return a build of a part, with its file and folder."""
    source, folder = tmp_path / "a.py", tmp_path / "package"
    folder.mkdir()
    source.write_text("1")
    (folder / "b.py").write_text("2")
    return Build(source, folder, tmp_path / "kept")


def test_a_second_build_makes_nothing_anew(made):
    first = {**made()}
    assert made() == first == {"page.md": b"made 1 times", "picture.svg": b"<svg/>"}
    assert made.times == 1


@pytest.mark.parametrize("change", ["file", "folder", "name", "new"])
def test_a_changed_source_makes_it_anew(change, made):
    made()
    if change == "file":
        made.source.write_text("3")
    elif change == "folder":
        (made.folder / "b.py").write_text("3")
    elif change == "name":
        (made.folder / "b.py").rename(made.folder / "c.py")
    else:
        (made.folder / "data.json").write_text("{}")
    assert made()["page.md"] == b"made 2 times"
    assert len(list(made.kept.iterdir())) == 1


def test_what_python_compiled_changes_nothing(made):
    made()
    (made.folder / "__pycache__").mkdir()
    (made.folder / "__pycache__" / "b.pyc").write_text("4")
    made()
    assert made.times == 1


def test_a_part_that_fails_is_not_kept(tmp_path):
    def make():
        yield "page.md", "half"
        raise ValueError("the other half is missing")

    (source := tmp_path / "a.py").write_text("1")
    part = kept.Part("a part", make, (source,))
    for _ in range(2):
        with pytest.raises(ValueError, match="half is missing"):
            dict(kept.contents(part, tmp_path / "kept"))


def test_prose_runs_no_command_anew_but_a_changed_block_and_package_do(tmp_path, monkeypatch):
    page = tmp_path / "first.md"
    page.write_text("Text.\n\n```console\n$ echo 1\n1\n```\n")
    source = tmp_path / "source.py"
    source.write_text("1")
    monkeypatch.setattr(executed, "EVERYTHING", (source,))
    first = executed._kept(page)
    page.write_text("Other text.\n\n```console\n$ echo 1\n1\n```\n")
    assert executed._kept(page) == first
    page.write_text("Other text.\n\n```console\n$ echo 2\n1\n```\n")
    assert executed._kept(page) != first
    page.write_text("Text.\n\n```console\n$ echo 1\n1\n```\n")
    source.write_text("2")
    assert executed._kept(page) != first
