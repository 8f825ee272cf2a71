import os
import stat
import threading
from pathlib import Path

import pytest

from pipeplan.foundation import files
from pipeplan.foundation.errors import FormatError, InputError
from pipeplan.foundation.files import (
    files_below,
    is_stream,
    read_text,
    require_apart,
    require_writable,
    write_text,
)


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
        require_writable(tmp_path / where)
    with pytest.raises(InputError, match=reason):
        write_text(tmp_path / where, "text")


def test_an_existing_file_keeps_its_mode(tmp_path):
    path = tmp_path / "a.txt"
    path.touch()
    path.chmod(0o640)
    write_text(path, "text")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_an_existing_file_keeps_its_owner(tmp_path):
    path = tmp_path / "a.txt"
    path.touch()
    os.chown(path, 12345, 23456)
    write_text(path, "text")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_file_is_replaced(tmp_path, there):
    target, link = tmp_path / "folder" / "a.txt", tmp_path / "b.txt"
    target.parent.mkdir()
    link.symlink_to("folder/a.txt")
    if there:
        target.write_text("old")
        target.chmod(0o600)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert os.listdir(target.parent) == ["a.txt"]
    assert not there or stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_pipe_is_written_into(tmp_path):
    path, read = tmp_path / "a.txt", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    assert is_stream(path)
    write_text(path, "text")
    reader.join(10)
    assert read == ["text"]
    assert path.is_fifo()
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_open_file_is_written_where_it_stands(tmp_path):
    path = tmp_path / "a.txt"
    with path.open("w") as file:
        for text in ("before ", "after"):
            file.write(text)
            file.flush()
            write_text(Path(f"/dev/fd/{file.fileno()}"), "between ")
        assert os.fstat(file.fileno()).st_ino == path.stat().st_ino
    assert path.read_text() == "before between afterbetween "


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "folder" / "a.csv"
    path.parent.mkdir()
    path.write_text("text")
    return path


def test_an_input_is_never_an_output(tmp_path, source):
    (tmp_path / "link.csv").symlink_to(source)
    (tmp_path / "hard.csv").hardlink_to(source)
    (tmp_path / "linked").symlink_to(source.parent)
    with source.open() as file:
        same = [source, "folder/a.csv", "folder/../folder/a.csv", "link.csv", "hard.csv", "linked/a.csv"]
        for name in (*same, f"/dev/fd/{file.fileno()}"):
            for inputs in ([source], [tmp_path / "link.csv"], [source.parent]):
                with pytest.raises(InputError, match="never overwritten"):
                    require_apart([Path(name)], inputs)
    require_apart([tmp_path / "c.csv", source.parent / "b.csv"], [source, source.parent, tmp_path / "absent.csv"])


def test_no_file_is_two_outputs(tmp_path, source):
    (tmp_path / "link.csv").symlink_to(source)
    (tmp_path / "dangling.csv").symlink_to("new.csv")
    for one, other in (("folder/a.csv", "link.csv"), ("new.csv", "./new.csv"), ("new.csv", "dangling.csv")):
        with pytest.raises(InputError, match=f"{one} and .* are the same file"):
            require_apart([Path(one), tmp_path / other], [])
    with pytest.raises(InputError, match=r"new\.csv is given twice"):
        require_apart([Path("new.csv"), Path("new.csv")], [])


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", FormatError, "is empty"),
        (b" \n\n", FormatError, "is empty"),
        (b"\x89PNG\xff", FormatError, "not text: it is a PNG image"),
        (b"\xff\x00a", FormatError, "byte 0 is not UTF-8"),
        (b"a\0b", FormatError, "byte 1 is zero"),
        (b"x" * 101, FormatError, "has 101 bytes; a .* has at most 100"),
    ],
)
def test_files_that_are_no_text(tmp_path, content, error, message):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(error, match=message):
        read_text(path, limit=100, what="schedule file")


def test_a_folder_that_is_read_is_no_disk(tmp_path, monkeypatch):
    for name in ("a/b/c", "d"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "x.json").touch()
    (tmp_path / "d" / "round").symlink_to(tmp_path)
    assert sorted(path.name for path in files_below(tmp_path)) == ["x.json", "x.json"]
    assert files_below(tmp_path / "missing") == []
    monkeypatch.setattr(files, "_MOST_BELOW", 1)
    with pytest.raises(InputError, match="holds more than 1 files: name the folder of one run"):
        require_apart([tmp_path / "out.json"], [tmp_path])
