import os
from pathlib import Path

import pytest

from pipeplan.errors import FormatError, InputError
from pipeplan.files import read_text, replacing, require_folder, require_no_input, write_text


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "zwölf\r\n")
    assert read_text(path, limit=100, what="note") == "zwölf\r\n"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "half \ud800")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_error_of_the_disk_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match=r"cannot write .*a\.txt: no space"), replacing(tmp_path / "a.txt"):
        raise OSError(28, "No space left on device")


def test_a_new_file_has_the_usual_mode(tmp_path):
    usual = tmp_path / "usual"
    usual.touch()
    write_text(tmp_path / "new", "text")
    assert (tmp_path / "new").stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize(
    ("where", "reason"),
    [("missing/a.txt", "there is no folder"), ("folder", "it is a folder"), ("file/a", "no folder")],
)
def test_outputs_without_a_place(tmp_path, where, reason):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=reason):
        require_folder(tmp_path / where)
    with pytest.raises(InputError, match=reason):
        write_text(tmp_path / where, "text")


def test_a_read_only_folder(tmp_path, monkeypatch):
    # Root writes everywhere, so the system's answer is replaced rather than the mode of a folder.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match="is read-only"):
        require_folder(tmp_path / "a.txt")


def test_an_input_is_never_an_output(tmp_path):
    source, link = tmp_path / "a.csv", tmp_path / "b.csv"
    source.touch()
    link.symlink_to(source)
    with pytest.raises(InputError, match="never overwritten"):
        require_no_input([link], [source])
    require_no_input([tmp_path / "c.csv"], [source, tmp_path / "absent.csv"])


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", FormatError, "is empty"),
        (b" \n\n", FormatError, "is empty"),
        (b"\x89PNG\xff", FormatError, "byte 0 is not UTF-8"),
        (b"a\0b", FormatError, "byte 1 is zero"),
        (b"x" * 101, FormatError, "has 101 bytes; more than 100"),
    ],
)
def test_files_that_are_no_text(tmp_path, content, error, message):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(error, match=message):
        read_text(path, limit=100, what="schedule file")


def test_a_large_file_is_refused_without_being_read(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(FormatError, match="1,099,511,627,776 bytes"):
        read_text(path, limit=100, what="config file")


def test_a_file_without_a_size_is_read_up_to_the_limit():
    with pytest.raises(FormatError, match="101 bytes"):
        read_text(Path("/dev/zero"), limit=100, what="config file")


@pytest.mark.parametrize(("name", "reason"), [("absent", "no such file"), (".", "is a directory")])
def test_files_that_cannot_be_read(tmp_path, name, reason):
    with pytest.raises(InputError, match=reason):
        read_text(tmp_path / name, limit=100, what="config file")
