"""The file that keeps what is finished."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeplan.foundation.errors import FormatError, InputError
from pipeplan.foundation.sweeps import Finished, SweepTask, sweep
from tests.foundation.sweeps.work import Square, even_only, square

ASKED = {"model": {"name": "llama", "layers": 80}, "sequence": 8192}
TASKS = [SweepTask(str(number), number) for number in range(1, 30)]


def run(path: Path, asked: dict[str, Any] = ASKED) -> list[bool]:
    return [result.stored for result in sweep(square, TASKS, answer=Square, asked=asked, store=path)]


def test_what_is_stored_is_not_done_again_and_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "sweep.db"
    first = list(sweep(square, TASKS, answer=Square, asked=ASKED, store=path))
    again = list(sweep(square, TASKS, answer=Square, asked=ASKED, store=path))
    assert (
        [result.answer for result in again]
        == [result.answer for result in first]
        == [square(task.payload) for task in TASKS]
    )
    assert all(result.stored for result in again)
    assert [file.name for file in tmp_path.iterdir()] == ["sweep.db"], "nothing lies beside it"


def test_what_was_refused_is_stored_and_what_failed_is_tried_again(tmp_path: Path) -> None:
    numbers = [SweepTask(str(number), number) for number in range(6)]
    first, again = (list(sweep(even_only, numbers, answer=int, asked={}, store=tmp_path / "s")) for _ in range(2))
    assert [result.failure for result in again] == [result.failure for result in first]
    assert [result.key for result in again if not result.stored] == ["4"]


def test_the_store_of_another_sweep_is_refused_by_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "sweep.db"
    run(path)
    other = {"model": {"name": "llama", "layers": 126}, "sequence": 8192, "vocabulary": "x" * 99}
    with pytest.raises(InputError) as error:
        run(path, other)
    assert error.value.field == "store"
    assert f"{path} holds another sweep: model.layers is 80 there and 126 here, vocabulary is absent there" in str(
        error.value
    )
    assert "name another file, or remove it" in str(error.value)
    assert all(run(path))


def test_the_store_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "s")
    monkeypatch.setattr("pipeplan.foundation.sweeps.store.version", lambda: "99.0")
    with pytest.raises(InputError, match=r'pipeplan is ".*" there and "99.0" here'):
        run(tmp_path / "s")


def text(path: Path) -> None:
    path.write_text("not a database\n" * 1000)


def other_database(path: Path) -> None:
    file = sqlite3.connect(path)
    file.execute("CREATE TABLE finished (x)")
    file.commit()
    file.close()


def cut_off(path: Path) -> None:
    run(path)
    path.write_bytes(path.read_bytes()[:5000])


def edited(path: Path, *statements: str) -> None:
    """Write a store, and change it with SQL."""
    run(path)
    file = sqlite3.connect(path)
    for statement in statements:
        file.execute(statement)
    file.commit()
    file.close()


def later_layout(path: Path) -> None:
    edited(path, "PRAGMA user_version = 2")


def half_a_question(path: Path) -> None:
    edited(path, "UPDATE sweep SET asked = substr(asked, 1, 9)")


def half_an_answer(path: Path) -> None:
    edited(path, "UPDATE finished SET answer = substr(answer, 1, 3) WHERE key = '3'")


@pytest.mark.parametrize("make", [text, other_database, cut_off, later_layout, half_a_question])
def test_a_file_that_is_no_store_is_refused_and_stays(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "s"
    make(path)
    before = path.read_bytes()
    with pytest.raises(FormatError) as error:
        run(path)
    assert str(path) in str(error.value)
    assert "name another file" in str(error.value)
    assert path.read_bytes() == before


def test_a_stored_answer_that_is_damaged_is_told(tmp_path: Path) -> None:
    half_an_answer(tmp_path / "s")
    with pytest.raises(FormatError, match=r"the store is damaged .*; name another file"):
        run(tmp_path / "s")


def test_places_where_no_store_can_be(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path, "is not a file; name another"),
        (Path("/dev/null"), "is not a file; name another"),
        (tmp_path / "none" / "s", "there is no folder"),
    ):
        with pytest.raises(InputError, match=reason):
            run(path)


def test_two_sweeps_do_not_share_a_store(tmp_path: Path) -> None:
    path = tmp_path / "s"
    first = sweep(square, TASKS, answer=Square, asked=ASKED, store=path)
    next(first)
    with pytest.raises(InputError, match=f"the store {path} is in use; wait for that to end"):
        run(path)
    elsewhere = subprocess.run(
        [sys.executable, "-c", f"from tests.foundation.sweeps.test_store import run, Path; run(Path({str(path)!r}))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"the store {path} is in use" in elsewhere.stderr
    if Path("/proc/locks").exists():
        assert f"is in use by process {os.getpid()};" in elsewhere.stderr
    assert len([*first]) == len(TASKS) - 1, "the first one goes on"
    assert all(run(path))


def test_a_full_disk_ends_the_sweep_with_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite says of a database that may not grow what it says on a full disk."""
    path = tmp_path / "s"
    connect = sqlite3.connect

    def small(*arguments: Any, **options: Any) -> sqlite3.Connection:
        file: sqlite3.Connection = connect(*arguments, **options)
        file.execute("PRAGMA max_page_count = 10")
        return file

    large = [SweepTask(str(number), "x" * 1000) for number in range(100)]
    seen: list[Finished[str]] = []
    with monkeypatch.context() as patch:
        patch.setattr("pipeplan.foundation.sweeps.store.sqlite3.connect", small)
        with pytest.raises(InputError, match=r"no space left for the store .*; its contents are kept") as error:
            seen.extend(sweep(str, large, answer=str, asked={}, store=path))
    assert error.value.field == "store"
    assert [result.answer for result in seen] == ["x" * 1000] * len(seen)
    again = list(sweep(str, large, answer=str, asked={}, store=path))
    assert [result.key for result in again if result.stored] == [result.key for result in seen]
    assert 0 < len(seen) < len(again) == 100
