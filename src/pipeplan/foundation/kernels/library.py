"""Load the library of kernels for this machine, and call its entries.

An entry takes the address of all arguments in one buffer: address and length of each array, and the value of each number.
Records are flattened. The library also has a description of each entry: a line for the result, then a line for each array
or number, a *leaf*::

    q                                        the result is an int
    rows.offsets i8 ranks + 1                an array of 64-bit ints, one longer than there are ranks
    rows.duration f8 ops
    steps q                                  a number

``compiling.writer.checks`` defines shapes; the entry itself compares them with the lengths.
"""

from __future__ import annotations

import ctypes
import os
import struct
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Argument = NDArray[Any] | int | float | Sequence[Callable[..., Any]] | tuple["Argument", ...]
"""Argument of a kernel: an array, a number, a row of functions, or a record of these."""

Output = NDArray[Any] | tuple["Output", ...]
"""Array that a kernel writes, or a record of arrays."""

FOLDER = Path(__file__).with_name("libraries")
"""Folder of the libraries of a build, and of its record; see ``compiling.built``."""

SOURCE = Path(__file__).parents[3]
"""Folder that contains the package ``pipeplan``."""

ADDRESSES: dict[Callable[..., Any], int] = {}
"""Addresses of compiled functions from outside the package, which kernels call from a row of functions."""

_RESULTS: dict[str, tuple[type[ctypes.c_double | ctypes.c_longlong], Callable[[Any], Any]]] = {
    "d": (ctypes.c_double, float),
    "q": (ctypes.c_longlong, int),
    "?": (ctypes.c_longlong, bool),
    "-": (ctypes.c_longlong, lambda _: None),
}
"""Kinds of results: the type in which C stores each, and its conversion for Python."""

_WRITEABLE = 0x400
_READ = 0x101
"""Flags of arrays, with NumPy's values: ``_READ`` is C-contiguous and aligned."""

_byte_in: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer

_NUMBERS: dict[str, tuple[type, ...]] = {"q": (int, np.integer), "d": (int, float, np.integer, np.floating)}
"""Kinds of leaves that are numbers, int and float, and the Python types that are accepted for each."""


class EntryLeaf(NamedTuple):
    """An array, number or row of functions that an entry takes. ``dtype`` is that of an array, None for a number."""

    name: str
    kind: str
    dtype: np.dtype[Any] | None
    shape: str


class NativeEntry:
    """A function of the library that is called like the Python function of its kernel."""

    def __init__(self, name: str, run: Callable[[bytes, Any], int], description: str) -> None:
        result, *lines = description.splitlines()
        self.name, self.run = name, run
        self._result, self._as_python = _RESULTS[result]
        self.leaves = [EntryLeaf(*_described(line)) for line in lines]
        self._formats = [leaf.kind if leaf.kind in _NUMBERS else "qq" for leaf in self.leaves]
        self._layout = struct.Struct("".join(self._formats))

    def __call__(self, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
        """Run the function; see :class:`~pipeplan.foundation.kernels.Kernel`."""
        read, written = _flat(inputs), _flat(outputs)
        if len(read) + len(written) != len(self.leaves):
            takes = ", ".join(leaf.name for leaf in self.leaves)
            raise TypeError(
                f"{self.name} takes {len(self.leaves)} arrays and numbers, not {len(read) + len(written)}: {takes}"
            )
        words = self._words(self.leaves, read, _READ) + self._words(
            self.leaves[len(read) :], written, _READ | _WRITEABLE
        )
        try:
            taken = self._layout.pack(*words)
        except (struct.error, OverflowError):
            numbers = ", ".join(leaf.name for leaf in self.leaves if leaf.kind in _NUMBERS)
            raise TypeError(f"{self.name}: a number is too large for 64 bits, one of {numbers}") from None
        result = self._result()
        if wrong := self.run(taken, ctypes.byref(result)):
            leaf, size = self.leaves[wrong - 1], words[len("".join(self._formats[:wrong])) - 1]
            measured = "is" if leaf.kind in _NUMBERS else "has length"
            raise ValueError(
                f"{self.name}: {leaf.name} {measured} {size}: expected {leaf.shape}, as the other arguments imply"
            )
        return self._as_python(result.value)

    def _words(self, leaves: Sequence[EntryLeaf], values: Sequence[Any], flags: int) -> list[Any]:
        """Return the words of arguments: address and length of each array, the value of each number.

        Raises TypeError for an argument of another type than its leaf, or an array without these flags.
        """
        words: list[Any] = []
        for leaf, value in zip(leaves, values, strict=False):
            _, kind, dtype, _ = leaf
            if dtype is None:
                if not isinstance(value, _NUMBERS[kind]):
                    expected = "an int" if kind == "q" else "a float"
                    raise TypeError(f"{self.name}: {leaf.name} is {type(value).__name__}: expected {expected}")
                words.append(value)
                continue
            row: Any = _addresses(tuple(value)) if kind == "fn" else value
            if type(row) is not np.ndarray or row.dtype != dtype or row.ndim != 1 or row.flags.num & flags != flags:
                kind = f"{row.dtype} of shape {row.shape}" if isinstance(row, np.ndarray) else type(row).__name__
                what = "writeable contiguous" if flags & _WRITEABLE else "contiguous"
                raise TypeError(f"{self.name}: {leaf.name} is {kind}: expected a {what} 1-D array of {dtype}")
            length = len(row)
            if length and row.flags.num & _WRITEABLE:
                # The same as ``row.ctypes.data`` in a quarter of the time.
                words += (ctypes.addressof(_byte_in(row)), length)
            else:
                words += (row.ctypes.data if length else 0, length)
        return words


def _described(line: str) -> tuple[str, str, np.dtype[Any] | None, str]:
    name, kind, shape = (*line.split(" ", 2), "")[:3]
    return name, kind, None if kind in _NUMBERS else np.dtype("i8" if kind == "fn" else kind), shape


def _flat(values: Sequence[Argument]) -> list[Any]:
    """Return arguments with records flattened."""
    flat: list[Any] = []
    for value in values:
        if isinstance(value, tuple):
            flat += _flat(value)
        else:
            flat.append(value)
    return flat


@cache
def _addresses(functions: tuple[Callable[..., Any], ...]) -> NDArray[np.int64]:
    if missing := [repr(function) for function in functions if function not in ADDRESSES]:
        raise TypeError(f"not compiled: {', '.join(missing)}; pass them to compile_functions first")
    return np.array([ADDRESSES[function] for function in functions], np.int64)


def entry_of(function: Callable[..., Any]) -> NativeEntry | None:
    """Return the entry of a kernel's function; None without a library, and with a warning if the library lacks it."""
    native, name = loaded_library(), f"{function.__module__.replace('.', '_')}__{function.__name__}"
    if native is None:
        return None
    if not hasattr(native, f"{name}_entry"):
        message = (
            f"the kernel {function.__name__} is not in the library and runs as Python: delete {FOLDER} to rebuild it"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return None
    run = native[f"{name}_entry"]
    run.argtypes, run.restype = (ctypes.c_char_p, ctypes.c_void_p), ctypes.c_longlong
    return NativeEntry(function.__name__, run, _string(native, f"{name}_takes"))


_LOADING = Lock()


def loaded_library() -> ctypes.CDLL | None:
    """Return the library of this machine, built first in a checkout if it is stale.

    Returns None if kernels run as Python: by ``PIPEPLAN_PURE_PYTHON``, or with a warning if the library cannot be loaded.
    Raises KernelError for a kernel of a checkout that cannot be written as C.
    """
    # One thread at a time: a second one would compile a checkout's kernels again.
    with _LOADING:
        return _library()


@cache
def _library() -> ctypes.CDLL | None:
    if os.environ.get("PIPEPLAN_PURE_PYTHON", "0") not in ("", "0"):
        return None
    from pipeplan.foundation.compiling.built import NOT_BUILT, build_here, is_stale, read_built
    from pipeplan.foundation.compiling.compiler import CompilerError, checksum, file_name

    path = FOLDER / file_name()
    try:
        if is_stale(SOURCE, path):
            build_here(SOURCE, path)
        if read_built(FOLDER).get(path.name) != checksum(path):
            raise CompilerError(f"{path} is damaged, or belongs to another version of pipeplan")
        return open_library(path)
    except (OSError, CompilerError) as error:
        note = FOLDER / NOT_BUILT
        reason = note.read_text(encoding="utf-8").strip() if note.exists() else str(error)
    remedy = "install pipeplan again, from a wheel, or from source with a C compiler"
    warnings.warn(f"kernels run as Python, 10 to 100 times slower: {reason}; {remedy}", RuntimeWarning, stacklevel=2)
    return None


def open_library(path: Path) -> ctypes.CDLL:
    """Load a library whose checksum is right: the one place where machine code is loaded. Raises OSError if that fails."""
    return ctypes.CDLL(str(path))


def _string(native: ctypes.CDLL, name: str) -> str:
    """Return a string constant of a library. Raises ValueError if the library has none of this name."""
    return ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(native, name))).decode()
