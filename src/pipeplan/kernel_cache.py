"""Compiled kernels on disk, and no failure where they cannot be: what is not there, or is broken, is compiled anew.

Numba's own cache takes a folder that cannot be written, a full disk or half a file for an error. Its index names numbered
files, so of two processes that compile at once one can be given what the other compiled for other types. Here every
signature of a kernel has a file of its own, which begins with the checksum of the rest and is replaced as a whole.

Numba lets nobody else keep its results, so this is the one module that goes behind its public API: it stands on
``numba.core.caching``, on a dispatcher's ``_cache``, and on the option ``_nrt``.
"""

from __future__ import annotations

import logging
import os
import pickle
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba.core.caching import FunctionCache

_LOG = logging.getLogger("pipeplan.kernels")

_CHECKSUM = sha256().digest_size


def compiled_on_disk(function: FunctionType, *, inline: bool, entry: bool) -> Callable[..., Any]:
    """``function`` as Numba compiles it, without the GIL; it is looked for on disk first, and kept there when compiled.

    Where there is no folder for that, it goes without, and one sentence is logged for all kernels. Kernels write into
    arrays that others hold, and make none: without Numba's count of who uses them (``_nrt``) they are several times as
    fast where one calls another.

    Parameters
    ----------
    function
        Its name must change with its code and with that of what it calls.
    inline
        Whether it becomes part of what calls it.
    entry
        Whether Python calls it, and not other kernels alone.
    """
    options = {"nogil": True, "error_model": "numpy", "inline": "always" if inline else "never", "_nrt": False}
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": not entry}
    compiled: Any = numba.njit(**options)(function)
    try:
        compiled._cache = _DiskCache(function)
    except RuntimeError:  # Numba's word for a place that it knows none of
        _tell_once("no folder for them can be written")
    loop: Callable[..., Any] = compiled
    return loop


class _DiskCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, which finds the folder and takes results apart, with other files."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        self._cache_file = _Files(Path(self._cache_path), self._impl.filename_base, function.__module__)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Types and processor: the name of the function tells its code, and what it takes from around it.

        Numba's own key holds those variables pickled, and a compiled function pickles differently in each process.
        """
        return sig, codegen.magic_tuple()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was kept; None where nothing was, or where what it names has moved since, as a class of arguments may."""
        try:
            return super().load_overload(sig, target_context)
        except (ImportError, AttributeError):
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a result; a failure to do so is logged, once."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell_once((error.strerror or str(error)).lower())


class _Files:
    """A file for each signature; ``load`` and ``save`` are what Numba asks of its own."""

    def __init__(self, folder: Path, name: str, module: str) -> None:
        self._folder, self._name, self._module = folder, name, module

    def load(self, key: tuple[Any, ...]) -> Any:
        """What was saved under a key; None where nothing was, not all of it is left, or others can have written it."""
        try:
            path = self._path(key)
            with path.open("rb") as file:
                content = file.read() if _is_ours(os.fstat(file.fileno())) else b""
        except OSError:
            return None
        checksum, data = content[:_CHECKSUM], content[_CHECKSUM:]
        return pickle.loads(data) if _checksum(path, data) == checksum else None

    def save(self, key: tuple[Any, ...], value: Any) -> None:
        """Keep a value under a key. Raises OSError where it cannot be written."""
        data = numba.core.serialize.dumps(value)
        path = self._path(key)
        descriptor, name = tempfile.mkstemp(prefix=".pipeplan-", dir=self._folder)
        temporary = Path(name)
        try:
            os.close(descriptor)
            temporary.write_bytes(_checksum(path, data) + data)
            temporary.chmod(0o644)  # other users may load it; a file that they could write is never loaded
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _path(self, key: tuple[Any, ...]) -> Path:
        """Types, processor and Numba's version are told from their text, to which named tuples add their fields.

        The module's name counts too: Numba imports it by that name when it loads what was kept.
        """
        fields = [getattr(kind, "fields", None) for kind in key[0]]
        told = sha256(repr((numba.__version__, self._module, key, fields)).encode()).hexdigest()
        return self._folder / f"{self._name}-{told[:16]}.nbc"


def _checksum(path: Path, data: bytes) -> bytes:
    """Of a kernel under its name: another's would take the bits of integers for floats, and fail at nothing."""
    return sha256(path.name.encode() + b"\0" + data).digest()


def _is_ours(found: os.stat_result) -> bool:
    """Whether only this user, the owner of this code or root can have written a file: to load a kept kernel is to run it."""
    if not hasattr(os, "geteuid"):
        return True
    trusted = {0, os.geteuid(), Path(__file__).stat().st_uid}
    return found.st_uid in trusted and not found.st_mode & stat.S_IWOTH


@cache
def _tell_once(reason: str) -> None:
    _LOG.warning(
        "compiled kernels cannot be kept (%s), so every process compiles them anew; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        reason,
    )
