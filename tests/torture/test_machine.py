"""The suites of the machine find what is planted: a file cut off, a link replaced, what is left behind, a damaged store."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.torture.judging import Ran
from tests.torture.machine.around import Around, masked, require_whole_store
from tests.torture.machine.conditions import Conditions, Fault
from tests.torture.machine.errands import Errand, Undisturbed, answer_of, told
from tests.torture.machine.small_disk import small_disk, why_none
from tests.torture.suite import Found

ERRAND = Errand(("simulate", "-o", "a.json"), ("a.json",), inputs={"in.json": "{}"}, store="kept.db")
WHOLE = '{"makespan": 3, "seconds": 0.5}'
KNOWN = Undisturbed(Ran((), 0, b"", b"", 0.1), "", {"a.json": told("a.json", WHOLE.encode())}, 1)


def laid_out(folder: Path, place: str) -> Around:
    """A folder in which something stands in the output's place: the first seed that puts it there."""
    for seed in range(100):
        around = Around.laid_out(Random(seed), ERRAND, folder / str(seed))
        if around.places["a.json"] == place:
            return around
    raise AssertionError(place)


@pytest.mark.parametrize("place", ["none", "file", "link", "dangling link", "hard link"])
def test_an_output_may_be_as_before_or_whole(tmp_path, place):
    around = laid_out(tmp_path, place)
    assert around.judge(KNOWN, ended_well=False) == "none"
    with pytest.raises(Found, match=r"a\.json is not written, and the command ended well"):
        around.judge(KNOWN, ended_well=True)
    path = around.folder / "a.json"
    mode = path.stat().st_mode if path.exists() else 0o644
    if place == "hard link":
        path.unlink()
    path.write_text(WHOLE.replace("0.5", "0.7"))
    path.chmod(mode)
    assert around.judge(KNOWN, ended_well=True) == "all"
    assert around.left_over(store=False) == []


def cut(path: Path) -> None:
    path.write_text(WHOLE[:-4])


def other(path: Path) -> None:
    path.write_text(WHOLE.replace("3", "4"))


def open_to_all(path: Path) -> None:
    path.write_text(WHOLE)
    path.chmod(0o666)


@pytest.mark.parametrize(
    ("place", "harm", "message"),
    [
        ("none", cut, "neither whole nor as before"),
        ("none", other, "neither whole nor as before"),
        ("file", cut, "neither whole nor as before"),
        ("file", open_to_all, "had the mode 640, and has 666"),
        ("file", Path.unlink, "was a file, and is gone"),
        ("link", lambda path: (path.unlink(), path.write_text(WHOLE)), "was a link, and is none any more"),
        ("hard link", cut, "the other name of a.json was written over"),
    ],
)
def test_what_is_neither_is_found(tmp_path, place, harm, message):
    around = laid_out(tmp_path, place)
    harm(around.folder / "a.json")
    with pytest.raises(Found, match=message):
        around.judge(KNOWN, ended_well=False)


def test_what_is_left_is_found_and_told_alike(tmp_path):
    around = laid_out(tmp_path, "none")
    for name in (".pipeplan-1-2-x.json", "tmpab12cd34", "kept.db-wal"):
        (around.folder / name).touch()
    assert around.left_over(store=True) == [".pipeplan-1-2-x.json", "tmpab12cd34"]
    assert masked(around.left_over(store=False)) == "a temporary file, kept.db-wal"


def test_a_damaged_store_is_found(tmp_path):
    store = tmp_path / "kept.db"
    with sqlite3.connect(store) as file:
        file.execute("CREATE TABLE kept (name TEXT)")
        file.executemany("INSERT INTO kept VALUES (?)", [("x" * 500,)] * 50)
    file.close()
    require_whole_store(store, tmp_path / "spare")
    with store.open("r+b") as damaged:
        damaged.seek(4096)
        damaged.write(b"\xff" * 4096)
    with pytest.raises(Found, match="damaged"):
        require_whole_store(store, tmp_path / "other")


def test_an_answer_that_is_cut_off_is_found():
    with pytest.raises(Found, match="its answer is cut off after 9 bytes"):
        answer_of(Errand(("simulate", "--json")), b'{"makespa')


_TOUCHES = """
import json, sys
from tests.torture.machine.conditions import prepare
prepare(json.loads(sys.argv[1]))
for name in "abc":
    open(name, "w").close()
"""


@pytest.mark.parametrize(
    ("fault", "code", "made"),
    [
        ({"at": 1, "signal": signal.SIGKILL}, -signal.SIGKILL, ["a"]),
        ({"at": 2, "error": 28}, 1, ["a", "b"]),
        ({"at": 7, "signal": signal.SIGKILL}, 0, ["a", "b", "c"]),
    ],
)
def test_a_fault_happens_at_the_time_that_it_is_said_to(tmp_path, fault, code, made):
    asked = json.dumps(Conditions(watched=str(tmp_path), fault=Fault(**fault)).asked()[1])
    around = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", _TOUCHES, asked], cwd=tmp_path, env=around, check=False, stderr=-1)
    assert ended.returncode == code
    assert sorted(os.listdir(tmp_path)) == made


def test_a_small_disk_is_full_when_it_is_filled_and_gone_with_its_process(tmp_path):
    if (why := why_none(tmp_path / "none")) is not None:
        pytest.skip(why)
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, 1 << 18) as disk:
        disk.fill(8192)
        with pytest.raises(OSError, match="No space left"):
            (disk.here / "x").write_bytes(bytes(16384))
        disk.empty()
        (disk.here / "x").write_bytes(bytes(16384))
        assert os.listdir(folder) == []
    assert os.listdir(folder) == []


def test_each_statement_of_a_store_is_a_moment(tmp_path):
    counted = tmp_path.with_suffix(".counted")
    code = f"""
from tests.torture.machine.conditions import Conditions, Fault, prepare
place, asked = Conditions(watched={str(tmp_path)!r}, fault=Fault(at=3, signal=9), counted={str(counted)!r}).asked()
prepare(asked)
import sqlite3
with sqlite3.connect({str(tmp_path / "kept.db")!r}, isolation_level=None) as file:
    file.execute("CREATE TABLE kept (number)")
    for number in range(9):
        file.execute("INSERT INTO kept VALUES (?)", (number,))
"""
    around = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=around, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert counted.read_text() == "4"
    with sqlite3.connect(tmp_path / "kept.db") as file:
        assert file.execute("SELECT count(*) FROM kept").fetchone() == (1,)
