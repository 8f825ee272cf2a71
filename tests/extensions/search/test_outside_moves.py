"""Moves from outside: compiled where they can be, run as Python where not, with the same results."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeplan.extensions.search import ENGINES, search
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.engines.order_annealing import LocalSearch
from pipeplan.extensions.search.moves import MOVES, Move, outside
from pipeplan.foundation.compiling import compiler
from pipeplan.foundation.kernels import Kernel, is_native, library
from pipeplan.model import Placement
from tests.extensions.search import swap_kernel
from tests.extensions.search.problems import problem
from tests.extensions.search.test_evaluate import walked
from tests.extensions.search.test_moves import SWAP
from tests.foundation.kernels.building import compiler_at_hand
from tests.torture.schedules.ways import as_python, run_by

PROBLEM = problem(Placement.v(3), 4, (3.7, 4.1, 2.9, 0.3), limit=2)
TEXT = Path(swap_kernel.__file__).read_text()
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder of compiled moves."""
    if not is_native():
        pytest.skip("kernels run as Python")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    outside._are_compiled.cache_clear()
    yield tmp_path / "cache" / "pipeplan" / "kernels"
    outside._are_compiled.cache_clear()


def moves_of(path: Path, text: str = TEXT) -> Move:
    """A move whose functions a file of this text defines, newly imported."""
    path.write_text(text)
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    sys.modules[path.stem] = module
    exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))
    return Move(name="swap two", weight=5, propose=module.propose, apply=module.apply, undo=module.undo)


def assert_same_walk(move: Move) -> None:
    """An annealing by a move goes the same way as a search runs it and as Python."""
    plain, native = (walked(Encoder(PROBLEM), 60, how=how, moves=(move,)) for how in ("in Python", "as a search"))
    for one, other in zip(plain, native, strict=True):
        assert [array.tobytes() for array in one] == [array.tobytes() for array in other]


def test_a_move_is_compiled_once_into_the_cache_of_the_user(cache):
    compiler_at_hand()
    for _ in range(2):
        assert_same_walk(SWAP)
        outside._are_compiled.cache_clear()
    (file,) = cache.iterdir()
    assert file.stat().st_mode & 0o022 == 0


def test_a_move_in_a_file_of_its_own_uses_what_lies_beside_it_and_is_compiled_anew_after_a_change(cache, tmp_path):
    compiler_at_hand()
    (tmp_path / "beside.py").write_text("NEXT = 1\n\n\ndef after(place: int) -> int:\n    return place + NEXT\n")
    sys.path.insert(0, str(tmp_path))
    try:
        text = TEXT.replace("place + 1", "after(place)").replace(
            "from pipeplan.model", "from beside import after\nfrom pipeplan.model"
        )
        assert text.count("after(place)") == 4
        assert_same_walk(moves_of(tmp_path / "own_kernel.py", text))
        assert len(list(cache.iterdir())) == 1
        # Another move: it swaps nothing at even places.
        changed = text.replace("if after(place) >=", "if place % 2 == 0 or after(place) >=")
        assert_same_walk(moves_of(tmp_path / "own_kernel.py", changed))
        assert len(list(cache.iterdir())) == 2
    finally:
        sys.path.remove(str(tmp_path))
        for name in ("beside", "own_kernel"):
            sys.modules.pop(name, None)


def defined_within() -> Move:
    def apply(problem: Any, decisions: Any, change: Any) -> bool:
        return swap_kernel.apply(problem, decisions, change)

    return replace(SWAP, apply=apply)


def without_a_file(path: Path) -> Move:
    names: dict[str, Any] = {"__name__": "notebook"}
    exec(compile(TEXT, "<cell>", "exec", dont_inherit=True), names)
    return Move(name="swap two", weight=5, propose=names["propose"], apply=names["apply"], undo=names["undo"])


def changed_since(path: Path) -> Move:
    move = moves_of(path)
    path.write_text(TEXT.replace("place + 1", "place + 2"))
    return move


UNCOMPILED = {
    "no annotations": (
        lambda path: moves_of(path, TEXT.replace("change: Change)", "change)")),
        "own_kernel.py:12: missing annotation: write int",
    ),
    "another type": (
        lambda path: moves_of(path, TEXT.replace("place: int", "place: float").replace("] = place", "] = int(place)")),
        "own_kernel.py:7: place is annotated with float: expected int",
    ),
    "another result": (
        lambda path: moves_of(path, TEXT.replace("-> bool", "-> int").replace("False", "0").replace("True", "1")),
        "own_kernel.py:12: return is annotated with int: expected bool",
    ),
    "a record of its own": (
        lambda path: moves_of(path, TEXT.replace("import Change, ", "import ").replace(
            "\n\ndef propose", "\nfrom typing import NamedTuple\n\nclass Change(NamedTuple):\n    terms: Ints\n\ndef propose"
        )),
        "change is annotated with own_kernel.Change: expected pipeplan.extensions.search.kernels.arrays.Change",
    ),
    "what C has not": (
        lambda path: moves_of(path, TEXT.replace("return True", "return bool(sorted([place]))")),
        "own_kernel.py:19: sorted is not a kernel function",
    ),
    "in a function": (lambda _: defined_within(), "is not what this file defines: define it with def at the top level"),
    "no function": (
        lambda _: replace(SWAP, apply=partial(swap_kernel.apply)),
        "cannot be read from a file: define it with def at the top level of a file",
    ),
    "in a notebook": (without_a_file, "cannot be read from a file: define it with def at the top level of a file"),
    "changed since": (changed_since, "and start Python again after a change"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNCOMPILED)
def test_a_move_that_cannot_be_compiled_runs_as_python_and_a_warning_says_why(case, tmp_path):
    make, message = UNCOMPILED[case]
    move = make(tmp_path / "own_kernel.py")
    with pytest.warns(RuntimeWarning) as caught:
        assert_same_walk(move)
    (warning,) = [str(each.message) for each in caught]
    assert warning.startswith(f"annealings by these moves run as Python, many times slower: {move.name}; ")
    assert message in warning
    assert not isinstance(outside.run_with(Kernel(swap_kernel.undo), (move,)).entry, library.NativeEntry)


def test_a_function_with_another_parameter_is_not_called_by_machine_code(tmp_path):
    move = moves_of(tmp_path / "own_kernel.py", TEXT.replace("random: Ints)", "random: Ints, more: int)"))
    with pytest.warns(RuntimeWarning, match=r"own_kernel\.py:7: propose has 7 parameters: expected 6"):
        assert not outside._are_compiled((move,))


def without_compilers(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compiler, "_zig_folder", lambda: "")


def failing(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    monkeypatch.setenv("CC", "false")


def without_a_cache(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "file"))


def open_to_others(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "cache" / "pipeplan" / "kernels").mkdir(parents=True)
    (folder / "cache" / "pipeplan" / "kernels").chmod(0o777)


@pytest.mark.skipif(os.name != "posix", reason="programs and modes of POSIX systems")
@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (without_compilers, "no C compiler"),
        (failing, "false"),
        (without_a_cache, "file"),
        (open_to_others, "belongs to another user, or others can write to it: delete it"),
    ],
)
def test_without_a_compiler_or_a_cache_moves_run_as_python(prepare, message, monkeypatch, tmp_path):
    prepare(monkeypatch, tmp_path)
    with pytest.warns(RuntimeWarning, match=f"these moves run as Python.*: swap neighbours; .*{message}"):
        assert_same_walk(SWAP)


def test_two_processes_may_compile_a_move_at_once(cache):
    compiler_at_hand()
    code = "from tests.extensions.search.test_outside_moves import *; assert_same_walk(SWAP)"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        for _ in range(2)
    ]
    assert [process.wait() for process in running] == [0, 0]
    assert len(list(cache.iterdir())) == 1


def test_a_move_takes_part_in_searches_with_any_number_of_threads_and_as_python():
    compiler_at_hand()
    engines = (*ENGINES[:3], LocalSearch(moves=(*MOVES, SWAP)))

    def found(workers: int) -> tuple[float, str]:
        result = search(PROBLEM, evaluations=600, engines=engines, workers=workers)
        return result.value, str(list(map(str, result.schedule)))

    alone = found(1)
    outside._are_compiled.cache_clear()
    assert found(4) == alone
    with run_by(as_python):
        assert found(2) == alone


def test_threads_that_cannot_compile_a_move_warn_once(monkeypatch):
    monkeypatch.setenv("CC", "false")
    with pytest.warns(RuntimeWarning) as caught:
        search(PROBLEM, evaluations=400, engines=(*ENGINES[:3], LocalSearch(moves=(*MOVES, SWAP))), workers=4)
    assert len(caught) == 1


def test_moves_of_the_package_need_no_compiler(monkeypatch, cache):
    monkeypatch.setenv("CC", "false")
    assert np.isfinite(search(PROBLEM, evaluations=100).value)
    assert not cache.exists()
