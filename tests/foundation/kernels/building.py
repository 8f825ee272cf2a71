"""Kernels of the tests, written as C, compiled and loaded."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pipeplan.foundation.compiling import compiler
from pipeplan.foundation.compiling.writer import write
from pipeplan.foundation.kernels import library
from pipeplan.foundation.kernels.library import NativeEntry

ROOT = Path(__file__).parents[3]


def compiler_at_hand() -> list[str]:
    """The command of a C compiler; the test is skipped where there is none."""
    try:
        return compiler.find_compiler()
    except compiler.CompilerError as error:
        pytest.skip(f"needs a C compiler: {error}")


def entries(folder: Path, files: Sequence[Path], functions: Sequence[Callable[..., Any]]) -> dict[str, NativeEntry]:
    """Compile functions of files of this repository in an empty folder; return their entries by their names."""
    command = compiler_at_hand()
    for file in files:
        copy = folder / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    lines = [f"from {each.__module__} import {each.__name__}\nKernel({each.__name__})\n" for each in functions]
    (folder / "users.py").write_text("".join(lines))
    return entries_of(write(folder), folder, command, functions)


def entries_of(
    text: str, folder: Path, command: list[str], functions: Sequence[Callable[..., Any]]
) -> dict[str, NativeEntry]:
    """Compile a C file; return the entries of functions by their names."""
    path = folder / compiler.file_name()
    compiler.compile_library(text, path, command)
    with patch.object(library, "loaded_library", return_value=ctypes.CDLL(str(path))):
        result = {each.__name__: library.entry_of(each) for each in functions}
    assert None not in result.values()
    return {name: entry for name, entry in result.items() if entry is not None}
