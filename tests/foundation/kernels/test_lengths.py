"""Wrong arguments at every entry of the library of kernels: an error that names them, and no crash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeplan.foundation.compiling.writer import KernelError, write
from pipeplan.foundation.kernels import is_native
from pipeplan.foundation.kernels.library import EntryLeaf
from tests.foundation.kernels.calls import Call, recorded_calls

SOURCE = Path(__file__).parents[3] / "src"

pytestmark = pytest.mark.skipif(not is_native(), reason="without a library nothing is checked")


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    return recorded_calls()


def test_every_entry_is_called(calls):
    entries = re.findall(r"EXPORT i64 \w+__(\w+)_entry\(", write(SOURCE))
    assert {call.entry.name for call in calls} == {*entries}


def test_every_row_has_a_shape(calls):
    for call in calls:
        assert all(leaf.shape for leaf in call.entry.leaves if leaf.kind not in "qd"), call.entry.name


def test_unchanged_arguments_are_taken(calls):
    for call in calls:
        inputs, outputs = call.with_value(0, call.values()[0])
        call.entry(inputs, outputs)


def test_an_array_of_another_length_is_an_error(calls):
    for call in calls:
        for place, leaf, row in rows_of(call):
            for resized in (row[:-1].copy(), np.append(row, row[-1:]), row[:0].copy(), np.resize(row, len(row) + 100)):
                if len(resized) == len(row):
                    continue
                inputs, outputs = call.with_value(place, resized)
                if may_be_as_long(call, leaf, len(resized)):
                    call.entry(inputs, outputs)
                    continue
                with pytest.raises(
                    ValueError, match=rf"^{call.entry.name}: .* (has length|is) \d+: expected "
                ) as error:
                    call.entry(inputs, outputs)
                # What names a number is what another row does not have as many items as.
                related = {leaf.name.split(".")[-1]} | names(leaf.shape)
                assert leaf.name in str(error.value) or related & names(str(error.value))


def test_an_array_of_another_kind_is_an_error(calls):
    for call in {call.entry.name: call for call in calls}.values():
        written = len(list(leaves_of_inputs(call)))
        for place, leaf, row in rows_of(call):
            for wrong in others(row, is_written=place >= written):
                inputs, outputs = call.with_value(place, wrong)
                with pytest.raises(TypeError, match=rf"^{call.entry.name}: {re.escape(leaf.name)} is "):
                    call.entry(inputs, outputs)
            read_only = row.copy()
            read_only.flags.writeable = False
            if place < written:
                call.entry(*call.with_value(place, read_only))


def test_a_number_of_another_type_is_an_error(calls):
    wrong = {"q": (1.5, "1", None, np.ones(1, np.int64), 2**80), "d": ("1", None, np.ones(1), 10**400)}
    for call in calls:
        for place, leaf in enumerate(call.entry.leaves):
            for value in wrong.get(leaf.kind, ()):
                with pytest.raises(TypeError, match=rf"^{call.entry.name}: .*\b{re.escape(leaf.name)}\b"):
                    call.entry(*call.with_value(place, value))


def test_a_list_of_what_is_no_compiled_function_is_an_error(calls):
    for call in calls:
        for place, leaf in enumerate(call.entry.leaves):
            for value in (None, [print], np.zeros(1, np.int64)) if leaf.kind == "fn" else ():
                with pytest.raises(TypeError):
                    call.entry(*call.with_value(place, value))


def test_more_or_fewer_arguments_are_an_error(calls):
    for call in calls:
        inputs, outputs = call.with_value(0, call.values()[0])
        for few in ((inputs[1:], outputs), (inputs, outputs[:-1]), ((), ()), (inputs, (*outputs, np.zeros(3)))):
            with pytest.raises(TypeError, match=rf"^{call.entry.name}"):
                call.entry(*few)


def test_a_number_that_lengths_depend_on_is_compared(calls):
    numbers = {
        (call.entry.name, leaf.name, value): (call.entry, call.with_value(place, value))
        for call in calls
        for place, leaf in enumerate(call.entry.leaves)
        for value in (-1, 10**9)
        if leaf.kind == "q" and leaf.shape not in ("", "> 0")
    }
    assert numbers
    for (name, number, value), (entry, arguments) in numbers.items():
        with pytest.raises(ValueError, match=rf"^{name}: {re.escape(number)} is {value}: expected"):
            entry(*arguments)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("2 * marks", "no argument says how many marks there are, which the shape '2 \\* marks' of numbers needs"),
        ("MANY", "MANY is not a constant"),
    ],
)
def test_a_shape_that_nothing_tells_ends_the_build(tmp_path, shape, message):
    (tmp_path / "filling_kernel.py").write_text(FILLING.format(shape=shape))
    with pytest.raises(KernelError, match=f"filling_kernel.py:4: {message}"):
        write(tmp_path)


FILLING = """\
from typing import Annotated
from pipeplan.model import Ints

def fill(numbers: Annotated[Ints, "{shape}"]) -> None:
    for place in range(len(numbers)):
        numbers[place] = place

Kernel(fill)
"""


def rows_of(call: Call) -> Iterator[tuple[int, EntryLeaf, Any]]:
    """Yield the place, the leaf and the value of each array."""
    for place, (leaf, value) in enumerate(zip(call.entry.leaves, call.values(), strict=True)):
        if isinstance(value, np.ndarray):
            yield place, leaf, value


def leaves_of_inputs(call: Call) -> list[Any]:
    return Call(call.entry, (call.arguments[0], ())).values()


def names(text: str) -> set[str]:
    """Return the words of a shape that stand for numbers."""
    return set(re.findall(r"[a-z]\w*", text)) - {"or"}


def may_be_as_long(call: Call, leaf: EntryLeaf, length: int) -> bool:
    """Return True for a length that the shape allows by itself, and that no other array depends on."""
    if names(leaf.shape) == {"quantiles"}:
        return length > 0
    own = leaf.name.split(".")[-1]
    depend = [other for other in call.entry.leaves if own in {*names(other.shape), other.name.split(".")[-1]}]
    return " or " in leaf.shape and str(length) in leaf.shape.split(" or ") and depend == [leaf]


def others(row: Any, *, is_written: bool) -> Iterator[Any]:
    """Yield what is not a row of the same type, in one piece, aligned, and writable if it is written."""
    yield from (None, 3, row.tolist(), row.reshape(1, -1), np.zeros(len(row), ">f8" if row.dtype == "f8" else ">i8"))
    yield from (np.zeros(len(row), dtype) for dtype in ("i1", "i4", "i8", "f4", "f8", "O") if dtype != row.dtype)
    if len(row) > 1:
        yield np.repeat(row, 2)[::2]
        yield row[::-1]
    if row.nbytes and row.itemsize > 1:
        unaligned = np.zeros(row.nbytes + 1, np.uint8)[1:].view(row.dtype)
        assert not unaligned.flags.aligned
        yield unaligned
    if is_written:
        read_only = row.copy()
        read_only.flags.writeable = False
        yield read_only
