"""Kernels: one source, two ways to run it, and a cache on disk that is never worth a failure."""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from pipeplan.foundation.numba_internals import _warn_once

from pipeplan.foundation import numba_internals
from pipeplan.foundation.kernels import Kernel, compile_loop, compiled_at_once, dispatcher, inlined
from pipeplan.model import Floats, Ints

UNIT = 1


def twice(value: int) -> int:
    return 2 * value


def thrice(value: int) -> int:
    return 3 * value


def fill(count, numbers):
    for index in range(count):
        numbers[index] = twice(index)


def count_up(numbers):
    for index in range(len(numbers)):
        numbers[index] += UNIT


def abs_of(value: int) -> int:
    return abs(value)


@inlined
def add_five(value: int) -> int:
    return value + 5


def fill_inlined(count, numbers):
    for index in range(count):
        numbers[index] = add_five(index)


def filling_by(change, first):
    def fill_changed(numbers):
        for index in range(len(numbers)):
            numbers[index] = change(first + index)

    return fill_changed


def choosing(functions):
    choose = dispatcher(functions)

    def choose_each(numbers):
        for index in range(len(numbers)):
            numbers[index] = choose(index, 10)

    return choose_each


def take_first(pair, numbers):
    numbers[0] = pair.first[0]


def test_on_lists_and_compiled_it_gives_the_same():
    kernel = Kernel(fill, compile_after=10)
    for _ in range(2):
        numbers = np.zeros(5, np.int64)
        kernel((5,), (numbers,), work=5)
        assert numbers.tolist() == [0, 2, 4, 6, 8]
    assert kernel.evaluations == 10


def test_what_is_cached_under_a_name_is_no_longer_used_when_something_that_it_calls_has_changed():
    changed = FunctionType(fill.__code__, fill.__globals__ | {"twice": thrice}, "fill")
    names = [vars(compile_loop(function))["__qualname__"] for function in (fill, changed)]
    assert names[0] != names[1]
    assert all(name.startswith("fill-") for name in names)
    numbers = np.zeros(3, np.int64)
    compile_loop(changed)(3, numbers)
    assert numbers.tolist() == [0, 3, 6]


def test_nor_when_a_constant_has():
    changed = FunctionType(count_up.__code__, count_up.__globals__ | {"UNIT": 5}, "count_up")
    numbers = np.zeros(2, np.int64)
    for function in (count_up, changed):
        compile_loop(function)(numbers)
    assert numbers.tolist() == [6, 6]


def test_an_inlined_function_gives_the_same():
    numbers = np.zeros(3, np.int64)
    compile_loop(fill_inlined)(3, numbers)
    assert numbers.tolist() == [5, 6, 7]
    assert add_five(1) == 6


def test_a_loop_may_call_functions_and_use_numbers_of_the_function_around_it():
    loops = [filling_by(twice, 0), filling_by(thrice, 0), filling_by(twice, 1)]
    for loop, expected in zip(loops, [[0, 2], [0, 3], [2, 4]], strict=True):
        plain, compiled = [0, 0], np.zeros(2, np.int64)
        loop(plain)
        compile_loop(loop)(compiled)
        assert plain == compiled.tolist() == expected


def test_a_dispatcher_calls_the_function_that_it_is_told():
    loop = choosing([twice, thrice, abs_of])
    plain, compiled = [0, 0, 0], np.zeros(3, np.int64)
    loop(plain)
    compile_loop(loop)(compiled)
    assert plain == compiled.tolist() == [20, 30, 10]


class Limits(NamedTuple):
    most: float
    step: int
    none: tuple[()]


class Rules(NamedTuple):
    steps: Floats
    limits: Limits


class Ledger(NamedTuple):
    entries: Floats
    counts: Ints


def add_up(rules: Rules, ledger: Ledger, place: int) -> None:
    ledger.counts[0] += rules.limits.step
    ledger.entries[place] = min(ledger.entries[place] + rules.steps[place], rules.limits.most)


def add_everywhere(rows, rules, ledger):
    for place in rows:
        add_up(rules, ledger, place)
    return rules.limits.most


def add_to(ledger: Ledger, compile_after: int) -> float:
    rules = Rules(np.array([2.0, 1.0]), Limits(7.0, 2, ()))
    most: float = Kernel(add_everywhere, compile_after)((np.array([0, 1, 1]), rules), (ledger,), work=1)
    return most


def test_tuples_reach_compiled_functions_as_they_are():
    answers = []
    for compile_after in (0, 1_000_000):
        ledger = Ledger(np.array([1.0, 5.5]), np.zeros(3, np.int64))
        answers.append((add_to(ledger, compile_after), ledger.entries.tolist(), ledger.counts.tolist()))
    assert answers[0] == answers[1] == (7.0, [3.0, 7.0], [6, 0, 0])


def test_a_tuple_of_an_array_with_gaps_is_refused():
    with pytest.raises(ValueError, match=r"Ledger\.entries must be one contiguous row"):
        add_to(Ledger(np.zeros(4)[::2], np.zeros(1, np.int64)), 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where compiled kernels are kept."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    _warn_once.cache_clear()
    return tmp_path


def found_on_disk(function=count_up, *, arguments=()) -> bool:
    """Whether a new process's kernel of this function would be found; it is run, and kept where it can be."""
    compiled: Any = compile_loop(FunctionType(function.__code__, function.__globals__, function.__name__))
    numbers = np.zeros(3, np.int64)
    compiled(*arguments, numbers)
    assert numbers[0] == 1
    return bool(compiled.stats.cache_hits)


def test_what_was_compiled_is_found_again(folder):
    assert [found_on_disk() for _ in range(3)] == [False, True, True]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:20],
        lambda content: content[:1500] + bytes(255 - byte for byte in content[1500:1600]) + content[1600:],
    ],
    ids=["cut in the checksum", "changed in the middle"],
)
def test_what_is_broken_is_replaced(folder, damage):
    found_on_disk()
    (file,) = folder.glob("*/*count_up*")
    file.write_bytes(damage(file.read_bytes()))
    assert [found_on_disk(), found_on_disk()] == [False, True]
    assert len(list(folder.glob("*/*"))) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no owners of files here")
def test_what_others_can_write_is_not_loaded(folder):
    """It is code: whoever writes it says what runs. A user without a mask of modes keeps kernels all the same."""
    mask = os.umask(0)
    try:
        assert [found_on_disk(), found_on_disk()] == [False, True]
    finally:
        os.umask(mask)
    (file,) = folder.glob("*/*count_up*")
    file.chmod(0o666)
    assert [found_on_disk(), found_on_disk()] == [False, True]
    if os.geteuid() == 0:
        os.chown(file, 12345, -1)
        assert [found_on_disk(), found_on_disk()] == [False, True]


def test_where_nothing_can_be_kept_kernels_run_and_one_sentence_says_so(folder, caplog):
    for name in ("one", "other"):
        nowhere = count_up.__code__.replace(co_filename="/nowhere/at/all.py", co_name=name)
        numbers = np.zeros(2, np.int64)
        compile_loop(FunctionType(nowhere, count_up.__globals__))(numbers)
        assert numbers.tolist() == [1, 1]
    assert caplog.messages == [
        "compiled kernels cannot be stored (no writable folder for them), so every process compiles them again; "
        "set NUMBA_CACHE_DIR to a writable folder"
    ]


@pytest.mark.slow
def test_what_was_kept_is_compiled_anew_where_the_class_of_an_argument_has_moved(folder):
    code = """if True:
        import sys, numpy as np
        from importlib import import_module
        from pipeplan.foundation.kernels import compile_loop
        from tests.test_kernels import take_first
        pair = import_module(sys.argv[1]).Pair(first=np.array([7]), second=np.array([8]))
        numbers = np.zeros(1, np.int64)
        compiled = compile_loop(take_first)
        compiled(pair, numbers)
        print(numbers[0], sum(compiled.stats.cache_hits.values()))
    """
    path = os.pathsep.join([str(folder), *sys.path])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kept"), "PYTHONPATH": path}

    def run(module: str) -> str:
        shell = [sys.executable, "-c", code, module]
        return subprocess.run(shell, stdout=subprocess.PIPE, text=True, env=environment, check=True).stdout.strip()

    (folder / "here.py").write_text("from collections import namedtuple\nPair = namedtuple('Pair', 'first second')\n")
    assert [run("here"), run("here")] == ["7 0", "7 1"]
    (folder / "here.py").rename(folder / "there.py")
    assert run("there") == "7 0"


def test_threads_that_ask_for_one_function_get_the_same():
    function = FunctionType(count_up.__code__, count_up.__globals__, "count_up")
    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(id, pool.map(compile_loop, [function] * 64)))) == 1


def test_only_one_module_relies_on_numba_beyond_its_documented_api():
    internal = re.compile(r"^\s*(?:from|import) (?:numba\.(?:core|np)|llvmlite)", re.MULTILINE)
    source = Path(numba_internals.__file__).parent
    assert [path.name for path in source.rglob("*.py") if internal.search(path.read_text())] == ["numba_internals.py"]


def test_a_folder_that_cannot_be_written_is_read(folder, monkeypatch):
    """As one that belongs to the image of a container."""
    found_on_disk()

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    for function in ("TemporaryFile", "mkstemp"):
        monkeypatch.setattr(tempfile, function, refused)
    assert found_on_disk()


def test_in_the_block_of_an_eager_compilation_the_first_call_compiles(folder):
    numbers = np.zeros(2, np.int64)
    kernel = Kernel(FunctionType(fill.__code__, fill.__globals__, "fill"))
    kernel((1,), (numbers,), work=1)
    assert not kernel.is_compiled
    with compiled_at_once() as compiled:
        kernel((2,), (numbers,), work=1)
        kernel((2,), (numbers,), work=1)
    assert kernel.is_compiled
    assert numbers.tolist() == [0, 2]
    assert [name for name, _ in compiled] == ["fill"]
    assert compiled[0][1] is not None
    assert Path(compiled[0][1]).is_relative_to(folder)
    later = Kernel(fill)
    later((1,), (numbers,), work=1)
    assert not later.is_compiled
