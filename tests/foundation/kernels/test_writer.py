"""What the writer accepts gives the same as C and as Python; everything else it refuses with file, line and remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeplan.foundation.compiling.writer import KernelError, write
from pipeplan.foundation.kernels import Kernel
from pipeplan.foundation.kernels.functions import compile_functions
from pipeplan.foundation.kernels.library import NativeEntry
from tests.foundation.kernels import building, random_programs
from tests.foundation.kernels.constructs import constructs_kernel, outside
from tests.foundation.kernels.constructs.records import Change, Changes, Inner, Rows

FOLDER = Path(constructs_kernel.__file__).parent

CONSTRUCTS: dict[str, Callable[..., Any]] = {
    name: function
    for name, function in vars(constructs_kernel).items()
    if isinstance(function, FunctionType) and function.__code__.co_varnames[:3] == ("n", "x", "flag")
}
"""The functions that all take the same."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, NativeEntry]:
    """The constructs as C, by their names."""
    functions = [*CONSTRUCTS.values(), constructs_kernel.functions_of_a_row]
    return building.entries(tmp_path_factory.mktemp("constructs"), sorted(FOLDER.glob("*.py")), functions)


INTS = st.integers(-40, 40)
FLOATS = st.floats(-1e6, 1e6) | st.sampled_from((0.0, -0.0, 1.0, 2.0, -3.0))


def rows_of(items: st.SearchStrategy[Any], dtype: str) -> st.SearchStrategy[Any]:
    return st.lists(items, min_size=1, max_size=5).map(lambda values: np.array(values, dtype))


INT_ROWS, FLOAT_ROWS = rows_of(INTS, "i8"), rows_of(FLOATS, "f8")
NARROW_ROWS, FLAG_ROWS = rows_of(st.integers(-(2**15), 2**15), "i4"), rows_of(st.booleans(), "b1")
RECORDS = st.builds(
    Rows, INT_ROWS, st.builds(Inner, INT_ROWS, FLOAT_ROWS, INTS), FLOAT_ROWS, NARROW_ROWS, FLAG_ROWS,
    INTS, FLOATS, st.booleans(),
)  # fmt: skip


def result_of(run: Callable[..., Any], inputs: Any, outputs: Any) -> tuple[bytes, ...]:
    """The bytes of what a function returns, and of what it has written."""
    written = [output.copy() for output in outputs]
    answer = run(inputs, written)
    # A sum of ints and floats may be an int in Python; as C it is a float.
    returned = b"" if answer is None else (np.float64(answer) + 0.0).tobytes()
    return returned, *(output.tobytes() for output in written)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(INTS, FLOATS, st.booleans(), RECORDS, INT_ROWS, FLOAT_ROWS, NARROW_ROWS, FLAG_ROWS)
def test_constructs_give_the_same_as_in_python(compiled, n, x, flag, rows, ints, floats, small, flags):
    inputs, outputs = (n, x, flag, rows), (ints, floats, small, flags)
    for name, function in CONSTRUCTS.items():
        expected = result_of(Kernel(function, native=False), inputs, outputs)
        assert result_of(compiled[name], inputs, outputs) == expected, name


def test_functions_of_a_row_are_called(compiled, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plain, native = np.array([7]), np.array([7])
    changes = [outside.add, outside.subtract, outside.add]
    expected = constructs_kernel.functions_of_a_row(Changes(changes), plain)
    compile_functions([(change, Change) for change in changes])
    assert compiled["functions_of_a_row"]((Changes(changes),), (native,)) == expected
    assert plain.tolist() == native.tolist()


def test_random_programs_give_the_same(tmp_path):
    functions, path = random_programs.write(tmp_path, number=40)
    command = building.compiler_at_hand()
    lines = [f"from random_kernel import {name}\nKernel({name})\n" for name in functions]
    (tmp_path / "users.py").write_text("".join(lines))
    compiled = building.entries_of(write(tmp_path), tmp_path, command, list(functions.values()))
    generator = np.random.default_rng(1)
    for name, function in functions.items():
        for _ in range(10):
            inputs = (int(generator.integers(-9, 9)), float(generator.normal()))
            outputs = (generator.integers(-9, 9, 4), generator.normal(size=4))
            expected = result_of(Kernel(function, native=False), inputs, outputs)
            assert result_of(compiled[name], inputs, outputs) == expected, path.read_text().split("\n\n\n")[
                int(name[1:])
            ]


HEAD = """\
from collections.abc import Callable, Sequence
from typing import NamedTuple

from others import Pair as Others, somewhere
from pipeplan.model import Bools, Floats, Ints, Ints32

LIST = [1, 2]
NAME = "F"
LAST = -1
SUM = 1 + 2
HUGE = 1_000_000_000_000_000_000_000
CHANGED = 1
if LAST < 0:
    CHANGED = 2
FROM_ONE, FROM_TWO = range(1, 3)


class Pair(NamedTuple):
    row: Ints
    number: int


Change = Callable[[int, Ints], int]


class Changes(NamedTuple):
    functions: Sequence[Change]


class Unknown:
    row: Ints


def count(row: Ints) -> int:
    row[0] += 1
    return row[0]


def tell(row: Ints) -> None:
    row[0] = 0


def half(value: float) -> float:
    return value / 2


def two(value: int) -> tuple[int, int]:
    return value, value


def twice(value: int) -> int:
    return 2 * value


def twice(value: int) -> int:
    return 3 * value


def max(first: int, second: int) -> int:
    return first


"""
"""What the functions of the table below have around them."""

ROWS = "row: Ints, other: Ints, floats: Floats, narrow: Ints32"
TAKES = f"def f(n: int, x: float, flag: bool, {ROWS}, pair: Pair, changes: Changes)"

STATEMENTS = [
    # Order of evaluation, which C leaves open.
    ("n = count(row) + count(row)", "'count(row)' writes, and 'count(row) + count(row)' reads more"),
    ("n = row[0] + count(row)", "assign its first part to a variable first"),
    ("n = count(row) - row[0]", "assign its first part to a variable first"),
    ("n = min(row[0], count(row))", "assign its first part to a variable first"),
    ("flag = row[0] < count(row)", "assign its first part to a variable first"),
    ("flag = 0 < count(row) < n", "a call that writes in '0 < count(row) < n': assign its result to a variable first"),
    ("two(count(row))[0]", "is not a supported statement"),
    ("n = twofold(count(row), row[0])", "twofold is not a kernel function"),
    ("row[0] += count(row)", "assign its first part to a variable first"),
    ("row[count(row)] += 1", "a call that writes in 'row[count(row)]': assign its result to a variable first"),
    ("row[count(row)] = count(other)", "a call that writes in 'row[count(row)]'"),
    ("n = changes.functions[row[0]](count(row), other)", "assign its first part to a variable first"),
    ("n = (row if row[0] > 1 else other)[count(row)]", "assign its first part to a variable first"),
    # Numbers.
    ("x = x // 2", "'//' of floats in 'x // 2': use it with ints only"),
    ("x %= 2", "'%' of floats"),
    ("x = x ** 2", "'x ** 2' is not supported in kernels"),
    ("n = n << 1", "is not supported in kernels"),
    ("n = ~n", "is not supported in kernels"),
    ("n = 2 * x", "parameter n is i64 and gets double: use another name"),
    ("flag = n", "parameter flag is bool and gets i64"),
    ("n = 9_223_372_036_854_775_808", "does not fit into 64 bits"),
    ("n = HUGE", "HUGE does not fit into 64 bits"),
    ("x = 1e999", "does not fit into 64 bits"),
    ("x = 1j", "is not supported in kernels"),
    ("n = abs(row)", "'abs(row)' takes numbers only"),
    ("n = min(row)", "'min(row)' is not supported in kernels"),
    ("n = min(row, other)", "'min(row, other)' takes numbers only"),
    ("n = max(n, 2)", "max hides Python's function: use another name"),
    ("n = round(x)", "round is not a kernel function"),
    ("n = int(row)", "'row' is Ints: int takes double"),
    ("n = len(pair)", "'len(pair)' is not supported in kernels"),
    ("n = half(n) + half(row)", "'row' is Ints: half takes double"),
    ("n = twice(n)", "twice is not a kernel function"),
    ("n = half(x)", "parameter n is i64 and gets double"),
    ("n = count(narrow)", "'narrow' is Ints32: count takes Ints"),
    ("n = count(row, n)", "count takes 1 values, not 2"),
    ("n = count(row=row)", "is not supported in kernels"),
    ("n = count(*row)", "is not supported in kernels"),
    # Conditions.
    ("if n: pass", "'n' is not a condition: compare it, for example with 0"),
    ("while row: pass", "'row' is not a condition"),
    ("flag = n and flag", "'n' is not a condition"),
    ("flag = row == other", "Ints"),
    ("flag = pair == pair", "Pair"),
    ("flag = n in row", "is not supported in kernels"),
    ("flag = x is None", "is not supported in kernels"),
    ("n = 1 if n else 2", "'n' is not a condition"),
    # Constants.
    ("n = LIST[0]", "LIST is neither a variable nor a constant: write its number where it is defined"),
    ("flag = n == NAME", "NAME is neither a variable nor a constant"),
    ("n = SUM", "SUM is neither a variable nor a constant"),
    ("n = CHANGED", "CHANGED is neither a variable nor a constant"),
    ("n = FROM_TWO", "FROM_TWO is neither a variable nor a constant"),
    ("n = missing", "missing is neither a variable nor a constant"),
    ("row[missing] += 1", "missing is neither a variable nor a constant"),
    ("n = somewhere.missing", "somewhere is neither a variable nor a constant"),
    # Rows and records.
    ("n = row[-1]", "'row[-1]' is not an item of a row: use an int that counts from its beginning"),
    ("n = row[LAST]", "'row[LAST]' is not an item of a row"),
    ("n = row[-n]", "'row[-n]' is not an item of a row"),
    ("n = row[x]", "'x' is double: an index takes i64"),
    ("other = row[1:]", "'1:' is not supported in kernels"),
    ("n = pair[1]", "'pair[1]' is not an item of a row"),
    ("n = n[0]", "'n[0]' is not an item of a row"),
    ("row[0] = x", "'row[0]' is i64 and gets double: use a row of that type"),
    ("row[0] /= 2", "'row[0]' is i64 and gets double"),
    ("row = floats", "'row' is Ints and Floats: use two names"),
    ("row = row + other", "Ints"),
    ("pair.number = 1", "'pair.number' cannot be assigned to: write into a row or a variable"),
    ("pair.number += 1", "'pair.number' cannot be assigned to"),
    ("n = pair.missing", "'pair.missing' is not supported in kernels"),
    ("n = pair.row.size", "'pair.row.size' is not supported in kernels"),
    ("pair = Pair(row, 1)", "Pair is not a kernel function"),
    ("row.append(1)", "'row.append' is not supported in kernels"),
    # Values that are none.
    ("n = tell(row)", "what 'n' gets has no value: its function returns None"),
    ("y = [0] * n", "'[0]' is not supported in kernels"),
    ("y = 'text'", "''text'' is not supported in kernels"),
    ("y = f'{n}'", "is not supported in kernels"),
    ("y = None", "'None' is not supported in kernels"),
    ("y = [i for i in row]", "is not supported in kernels"),
    ("y = lambda: 1", "is not supported in kernels"),
    ("if (y := n) > 0: pass", "is not supported in kernels"),
    ("y = 1\n    y = row", "'y' is i64 and Ints: use two names"),
    ("y = row if flag else floats", "is Ints and Floats: use two names"),
    ("y = two(n)\n    z = y[0]", "is not an item of a row"),
    ("y, z = two(n), 1, 2", "3 values for 2 names"),
    ("y, z, a = two(n)", "2 values for 3 names"),
    ("y, z = n", "'n' is i64, not a tuple"),
    ("y = (z, a) = two(n)", "cannot be assigned to"),
    ("(y, z) = a = two(n)", "cannot be assigned to"),
    ("y, *z = 1, 2", "cannot be assigned to"),
    # Statements.
    ("while n > 0:\n        n -= 1\n    else:\n        n = 3", "is not a supported statement"),
    ("for y in range(n):\n        n -= 1\n    else:\n        n = 3", "is not a supported statement"),
    ("for y, z in row: pass", "is not a supported statement"),
    ("for y in range(x): pass", "'x' is double: range takes i64"),
    ("for y in enumerate(row): pass", "enumerate is not a kernel function"),
    ("for y in n: pass", "is not an item of a row"),
    ("assert n > 0", "'assert n > 0' is not a supported statement"),
    ("raise ValueError", "is not a supported statement"),
    ("try: pass\n    except ValueError: pass", "'try:' is not a supported statement"),
    ("with row: pass", "is not a supported statement"),
    ("global CHANGED", "is not a supported statement"),
    ("del n", "is not a supported statement"),
    ("import math", "is not a supported statement"),
    ("def g(): pass", "is not a supported statement"),
    ("y: int", "is not a supported statement"),
    ("n + 1", "'n + 1' is not a supported statement"),
    ("print(n)", "print is not a kernel function: import it from the file that defines it"),
    ("yield n", "is not a supported statement"),
    ("return n", "'return n' is not a supported statement"),
]
"""Statements of a function that returns None, and what the error says."""


@pytest.mark.parametrize(("statement", "message"), STATEMENTS, ids=[statement for statement, _ in STATEMENTS])
def test_a_statement_that_cannot_be_compiled_is_refused_with_its_line_and_a_remedy(tmp_path, statement, message):
    assert_refused(tmp_path, f"{HEAD}{TAKES} -> None:\n    {statement}\n", HEAD.count("\n") + 2, message)


FUNCTIONS = [
    ("def f(n: int, m: int = 2) -> int:\n    return n", "write plain parameters without defaults"),
    ("def f(*n: int) -> int:\n    return 1", "write plain parameters without defaults"),
    ("def f(*, n: int) -> int:\n    return 1", "write plain parameters without defaults"),
    ("def f(n: int, /) -> int:\n    return n", "write plain parameters without defaults"),
    ("def f(n) -> int:\n    return n", "missing annotation: write int, float, bool, None, Ints"),
    ("def f(n: int):\n    return n", "missing annotation"),
    ("def f(n: str) -> int:\n    return 1", "unsupported annotation str: write int"),
    ("def f(n: list[int]) -> int:\n    return 1", "unsupported annotation list[int]: write int"),
    ("def f(n: Unknown) -> int:\n    return 1", "unsupported annotation Unknown: write int"),
    ("def f(n: 'Ints') -> int:\n    return 1", "unsupported annotation 'Ints': write int"),
    ("def f(n: int | None) -> int:\n    return 1", "unsupported annotation int | None: write int"),
    (
        "def f(n: tuple[tuple[int, int], int]) -> int:\n    return 1",
        "unsupported annotation tuple[tuple[int, int], int]: write int",
    ),
    ("def f(pair: Pair, others: Others) -> int:\n    return 1", "has another record Pair: use another name"),
    ("def f(n: int) -> int:\n    if n > 1:\n        return n", "f may end without a result: write a return at its end"),
    ("def f(n: int) -> int:\n    while True:\n        break", "f may end without a result"),
    ("def f(n: int) -> int:\n    return n / 2", "'n / 2' is double: its annotation takes i64"),
    ("def f(n: int) -> bool:\n    return n", "'n' is i64: its annotation takes bool"),
    ("def f(n: int) -> int:\n    return", "'return' is not a supported statement"),
    ("def f(n: int) -> tuple[int, int]:\n    return n, n, n", "its annotation takes 2 values, not 3"),
    ("def f(n: int) -> tuple[int, int]:\n    return n, 0.5", "'0.5' is double: its annotation takes i64"),
    ("def f(n: int) -> int:\n    return f(n - 1)", "a function that calls itself: write a loop"),
    (
        "def f(n: int) -> int:\n    return g(n)\n\n\ndef g(n: int) -> int:\n    return f(n)",
        "a function that calls itself",
    ),
    ("def f(n: int) -> int:\n    y = y\n    return n", "y has no type: assign a number or a row to it"),
    ("@cache\ndef f(n: int) -> int:\n    return n", "only the decorator inlined is supported"),
    ("def f(n: int) -> tuple[int, int]:\n    return n, n", "a Kernel's function returns a number or None"),
]
"""Functions, and what the error says."""


@pytest.mark.parametrize(
    ("function", "message"), FUNCTIONS, ids=[function.split(":\n")[0] for function, _ in FUNCTIONS]
)
def test_a_function_that_cannot_be_compiled_is_refused(tmp_path, function, message):
    assert_refused(tmp_path, f"{HEAD}{function}\n", None, message)


def assert_refused(folder: Path, text: str, line: int | None, message: str) -> None:
    path = folder / "refused_kernel.py"
    path.write_text(text)
    (folder / "others.py").write_text("from typing import NamedTuple\n\n\nclass Pair(NamedTuple):\n    number: int\n")
    (folder / "users.py").write_text("from refused_kernel import f\nKernel(f)\n")
    with pytest.raises(KernelError) as caught:
        write(folder)
    match = re.fullmatch(r"(.*?):(\d+): (.*)", str(caught.value))
    assert match is not None
    assert message in match[3]
    assert Path(match[1]).parent == folder
    assert line is None or int(match[2]) in (line, line + 1)
