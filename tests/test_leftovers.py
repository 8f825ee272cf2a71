"""What dead processes have left is removed; what is anybody else's stays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeplan import leftovers
from pipeplan.errors import InputError
from pipeplan.files import replacing, temporary_folder, write_text
from pipeplan.leftovers import clear_leftovers, name_of_ours

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process started")

DIES = "import os; from pipeplan.leftovers import name_of_ours; print(name_of_ours(hidden=True, ending='.png'))"


@pytest.fixture(scope="module")
def dead() -> str:
    """The name of a temporary file whose process has ended."""
    return subprocess.run([sys.executable, "-c", DIES], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(autouse=True)
def _anew():
    leftovers._clear_once.cache_clear()
    yield
    leftovers._clear_once.cache_clear()


def changed(name: str, part: int, text: str) -> str:
    """The name with another machine, process, start or random part."""
    parts = name.split("-")
    parts[part] = text
    return "-".join(parts)


def test_files_and_folders_of_the_dead_are_removed(tmp_path, dead):
    again = changed(
        changed(dead, 2, str(os.getpid())), 3, "1"
    )  # a number that is used again: ours, by an older process
    for name in (dead, again, dead.removesuffix(".png"), dead.removeprefix(".")):
        (tmp_path / name).write_text("half of it")
    run = tmp_path / changed(dead.removeprefix(".").removesuffix(".png"), 4, "0123abcd")
    (run / "deep").mkdir(parents=True)
    (run / "deep/task.pickle").write_text("")
    (tmp_path / "mine.png").write_text("mine")
    clear_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.png"]


def test_what_is_not_plainly_left_by_a_dead_process_stays(tmp_path, dead, monkeypatch):
    kept = [
        name_of_ours(hidden=True, ending=".png"),
        changed(dead, 1, "0" * 12),
        changed(dead, 1, "0123456789ab"),
        changed(dead, 2, "1" * 11),
        changed(dead, 4, "0123"),
        f"x{dead}",
        dead.replace("pipeplan", "pipeplans"),
        ".pipeplan-abcdefgh.png",
        "pipeplan-torture-abcdefgh",
    ]
    for name in kept:
        (tmp_path / name).write_text("")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/kept").write_text("")
    (tmp_path / dead).symlink_to("elsewhere")
    clear_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, dead, "elsewhere"])
    assert (tmp_path / "elsewhere/kept").exists()
    (tmp_path / dead).unlink()
    (tmp_path / dead).write_text("")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    leftovers._clear_once.cache_clear()
    clear_leftovers(tmp_path)
    assert (tmp_path / dead).exists()


def test_a_link_inside_a_folder_that_is_left_is_not_followed(tmp_path, dead):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/kept").write_text("")
    left = tmp_path / "work" / dead.removesuffix(".png")
    left.mkdir(parents=True)
    (left / "link").symlink_to(tmp_path / "mine")
    clear_leftovers(tmp_path / "work")
    assert not left.exists()
    assert (tmp_path / "mine/kept").exists()


def test_nothing_is_removed_where_the_system_does_not_tell(tmp_path, dead, monkeypatch):
    (tmp_path / dead).write_text("")
    monkeypatch.setattr(leftovers, "_PROCESSES", tmp_path / "no-proc")
    leftovers._machine.cache_clear()
    clear_leftovers(tmp_path)
    assert name_of_ours(hidden=True).startswith(f".pipeplan-{'0' * 12}-")
    leftovers._machine.cache_clear()
    assert (tmp_path / dead).exists()


def test_a_large_folder_is_not_walked(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "MOST_LOOKED_AT", 10)
    looked: list[str] = []
    monkeypatch.setattr(leftovers, "_is_left", looked.append)
    for place in range(50):
        (tmp_path / f"pipeplan-{place}").touch()
    clear_leftovers(tmp_path)
    assert len(looked) == 10
    clear_leftovers(tmp_path)
    assert len(looked) == 10


def test_a_process_that_ended_and_was_not_looked_at_is_dead(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", DIES], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    (tmp_path / child.stdout.read().strip()).write_text("")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    clear_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []
    child.communicate()


def test_whoever_writes_removes_what_was_left(tmp_path, dead, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    for folder in (tmp_path, tmp_path / "temporary"):
        (folder / dead).write_text("")
    write_text(tmp_path / "a.csv", "0F0")
    with temporary_folder() as folder:
        assert list(folder.iterdir()) == []
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "deep").mkdir()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.csv", "temporary"]


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, OSError])
def test_nothing_stays_of_what_is_ended(tmp_path, end, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def work(context):
        with context as place:
            assert place.exists()
            raise end

    for context in (replacing(tmp_path / ("a." + "x" * 240)), temporary_folder()):
        with pytest.raises((end, InputError)):
            work(context)
    assert list(tmp_path.iterdir()) == []


def test_without_a_place_for_temporary_files_there_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(InputError, match="set TMPDIR"), temporary_folder():
        pass
    monkeypatch.setattr("tempfile.gettempdir", lambda: os.listdir(tmp_path / "absent"))
    with pytest.raises(InputError, match="set TMPDIR"), temporary_folder():
        pass
    assert not Path(tmp_path, "absent").exists()
