"""Everything that relies on parts of Numba outside its documented API: a disk cache, and cheap tuples of arrays.

Only this module imports ``numba.core``, ``numba.np`` and ``llvmlite``. ``tests/test_kernels.py`` runs all of it on the
installed Numba.

**Disk cache.** Numba's own cache raises an error if its folder cannot be written, the disk is full or a file is damaged. Its
index names numbered files, so when two processes compile at once, one may load what the other compiled for other types. Here
every signature of a kernel has its own file, which begins with a checksum and is replaced as a whole. Whatever is missing or
damaged is compiled again. This replaces a dispatcher's ``_cache`` by a subclass of ``numba.core.caching.FunctionCache``.

**Tuples.** Numba passes a tuple to a function as its parts, and an array as seven machine words. The search's kernels take
about a hundred arrays, and most of their compile time went into passing these. Here a named tuple is written into a block of
words, and functions receive its address. An array of a tuple is a ``RowType``: an address and a length, whose items are read
without the tests for negative indices and strides that take Numba's own arrays a third of the time of an evaluation:

============================== =======================================================
``Row(order, held, limit=2)``  address and length of ``order``, those of ``held``, 2
a tuple within a tuple         its words, in its place
============================== =======================================================

Kernels write into the arrays, never into the block, so a loop reads an address once, however often it names the array.
"""

from __future__ import annotations

import logging
import operator
import os
import pickle
import stat
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from ctypes import addressof, c_char, create_string_buffer
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_name
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.cgutils import create_struct_proxy
from numba.core.imputils import lower_builtin
from numba.core.serialize import dumps
from numba.core.types import CPointer, unliteral  # type: ignore[attr-defined]
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_global, signature
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    unbox,
)
from numba.np.numpy_support import from_dtype

_LOG = logging.getLogger("pipeplan.foundation.kernels")

_CHECKSUM = sha256().digest_size

_WORD = ir.IntType(64)


def compiled_on_disk(function: FunctionType, *, inline: bool, entry: bool) -> Callable[..., Any]:
    """Return ``function`` compiled by Numba without the GIL; its machine code is read from disk, or stored there.

    If no folder can be written, nothing is stored, and one warning is logged for all kernels.

    Parameters
    ----------
    function
        Plain function. Its name must change with its code and with the code of the functions that it calls.
    inline
        Whether its code is copied into its callers.
    entry
        Whether Python calls it; False if only other kernels do.
    """
    # Kernels write into existing arrays and make none. Without Numba's reference counting (_nrt), calls between them are
    # several times as fast.
    options = {"nogil": True, "error_model": "numpy", "inline": "always" if inline else "never", "_nrt": False}
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": not entry}
    compiled: Any = numba.njit(**options)(function)
    # Numba would compile a function once more for every constant that it is called with.
    template = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template(tuple(map(unliteral, args)), kws)
    try:
        compiled._cache = _DiskCache(function)
    except RuntimeError:  # Numba finds no folder
        _warn_once("no writable folder for them")
    loop: Callable[..., Any] = compiled
    return loop


def folder_of(loop: Any) -> str | None:
    """Return the folder with the machine code of a compiled function; None if it is not stored."""
    folder: str | None = loop._cache.cache_path
    return folder


def processor() -> str:
    """Return the processor that machine code is made for, as LLVM names it."""
    name: str = numba.config.CPU_NAME or get_host_cpu_name()
    return name


_Locator: Any = FunctionCache._impl_class._locator_classes[0]


class _Folder(_Locator):  # type: ignore[misc]
    """``NUMBA_CACHE_DIR``, also if it is part of an image and cannot be written: Numba would not read it then."""

    def ensure_cache_path(self) -> None:
        """Raise OSError if there is no such folder."""
        try:
            super().ensure_cache_path()
        except OSError:
            if not Path(self.get_cache_path()).is_dir():
                raise


class _Format(FunctionCache._impl_class):  # type: ignore[misc]
    _locator_classes = (_Folder, *FunctionCache._impl_class._locator_classes[1:])


class _DiskCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, which finds the folder and serializes results; the layout of the files is pipeplan's."""

    _impl_class = _Format

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        self._cache_file = _Files(Path(self._cache_path), self._impl.filename_base, function.__module__)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Return types and processor. The function's name identifies its code and the variables it uses.

        Numba's own key contains those variables pickled, but a compiled function pickles differently in each process.
        """
        return sig, codegen.magic_tuple()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the stored machine code; None if there is none."""
        try:
            return super().load_overload(sig, target_context)
        except (ImportError, AttributeError):
            # It was stored by a version in which a class of its arguments had another place.
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store machine code. A failure is logged once."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn_once((error.strerror or str(error)).lower())


class _Files:
    """One file per signature. Numba calls ``load`` and ``save``."""

    def __init__(self, folder: Path, name: str, module: str) -> None:
        self._folder, self._name, self._module = folder, name, module

    def load(self, key: tuple[Any, ...]) -> Any:
        """Return the value of a key; None if there is none, it is damaged, or another user can have written it."""
        try:
            path = self._path(key)
            with path.open("rb") as file:
                content = file.read() if _is_ours(os.fstat(file.fileno())) else b""
        except OSError:
            return None
        checksum, data = content[:_CHECKSUM], content[_CHECKSUM:]
        return pickle.loads(data) if _checksum(path, data) == checksum else None

    def save(self, key: tuple[Any, ...], value: Any) -> None:
        """Store a value. Raises OSError if its file cannot be written."""
        data = dumps(value)
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
        """Return the file of a key, named after the text of types, processor and Numba's version.

        Named tuples add their fields. The module's name counts too, because Numba imports the module when it loads the file.
        """
        fields = [getattr(kind, "fields", None) for kind in key[0]]
        digest = sha256(repr((numba.__version__, self._module, key, fields)).encode()).hexdigest()
        return self._folder / f"{self._name}-{digest[:16]}.nbc"


def _checksum(path: Path, data: bytes) -> bytes:
    """Return a checksum that includes the file's name: a renamed file would run with arguments of the wrong types."""
    return sha256(path.name.encode() + b"\0" + data).digest()


def _is_ours(status: os.stat_result) -> bool:
    """Return whether only this user, the owner of this code or root can have written a file: loading a kernel runs it."""
    if not hasattr(os, "geteuid"):
        return True
    trusted = {0, os.geteuid(), Path(__file__).stat().st_uid}
    return status.st_uid in trusted and not status.st_mode & stat.S_IWOTH


@cache
def _warn_once(reason: str) -> None:
    _LOG.warning(
        "compiled kernels cannot be stored (%s), so every process compiles them again; "
        "set NUMBA_CACHE_DIR to a writable folder",
        reason,
    )


class TupleType(types.Type):
    """Type of a named tuple that is passed by its address: its name, and the types of its fields in their order."""

    def __init__(self, name: str, fields: tuple[tuple[str, types.Type], ...]) -> None:
        self.places: dict[str, tuple[int, types.Type]] = {}
        words = 0
        for field, kind in fields:
            self.places[field] = words, kind
            words += _words_of(kind)
        self.words = words
        super().__init__(f"{name}({', '.join(f'{field}: {kind}' for field, kind in fields)})")


def _words_of(kind: types.Type) -> int:
    if isinstance(kind, TupleType):
        return kind.words
    return 2 if isinstance(kind, RowType) else 1


class PackedTuple:
    """Named tuple in the form that a compiled kernel takes. It keeps the arrays alive."""

    __slots__ = ("_numba_type_", "_words", "address", "source")

    def __init__(self, source: Any) -> None:
        words: list[int | float] = []
        self.source = source
        self._numba_type_, write = _type_of(_describe(source, words))
        self._words = create_string_buffer(write(*words))
        self.address = addressof(self._words)


def packed(argument: Any) -> Any:
    """Return an argument in the form that a compiled kernel takes: named tuples packed, others unchanged."""
    return PackedTuple(argument) if isinstance(argument, tuple) else argument


def _describe(source: Any, words: list[int | float]) -> tuple[Any, ...]:
    """Return what identifies the type of a tuple, its class and the types of its fields, and append its words."""
    kinds: list[Any] = [type(source)]
    for value in source:
        if isinstance(value, np.ndarray):
            if value.ndim != 1 or not value.flags.c_contiguous:
                name = source._fields[len(kinds) - 1]
                raise ValueError(f"{type(source).__name__}.{name} must be one contiguous row")
            words += (_address_of(value), len(value))
            kinds.append(value.dtype.char)
        elif isinstance(value, tuple):
            kinds.append(_describe(value, words))
        else:
            words.append(value)
            kinds.append(type(value))
    return tuple(kinds)


def _address_of(array: np.ndarray[Any, Any]) -> int:
    """Return ``array.ctypes.data``, mostly in a third of the time."""
    if array.flags.writeable:
        return addressof(c_char.from_buffer(array.data)) if array.size else 0
    return int(array.ctypes.data)


@cache
def _type_of(description: tuple[Any, ...]) -> tuple[TupleType, Callable[..., bytes]]:
    """Return the type of a tuple, and a function that encodes its words."""
    name, fields, layout = _fields_of(description)
    return TupleType(name, fields), struct.Struct(layout).pack


def _fields_of(description: tuple[Any, ...]) -> tuple[str, tuple[tuple[str, types.Type], ...], str]:
    """Return the name of a tuple's class, its fields with their types, and the ``struct`` format of its words."""
    source, *kinds = description
    fields: list[types.Type] = []
    layout = ""
    for kind in kinds:
        if isinstance(kind, str):
            fields.append(RowType(from_dtype(np.dtype(kind))))
            layout += "qq"
        elif isinstance(kind, tuple):
            name, nested, words = _fields_of(kind)
            fields.append(TupleType(name, nested))
            layout += words
        else:
            fields.append(types.float64 if issubclass(kind, float) else types.int64)
            layout += "d" if issubclass(kind, float) else "q"
    return source.__qualname__, tuple(zip(getattr(source, "_fields", ()), fields, strict=True)), layout


@register_model(TupleType)
class _AddressModel(models.PrimitiveModel):  # type: ignore[misc]
    """Represent the tuple in machine code by the address of its first word."""

    def __init__(self, manager: Any, kind: TupleType) -> None:
        super().__init__(manager, kind, _WORD.as_pointer())


@unbox(TupleType)  # type: ignore[untyped-decorator]
def _unbox(_: TupleType, tuple_: Any, context: Any) -> NativeValue:
    number = context.pyapi.object_getattr_string(tuple_, "address")
    address = context.pyapi.long_as_longlong(number)
    context.pyapi.decref(number)
    return NativeValue(context.builder.inttoptr(address, _WORD.as_pointer()))


@infer_getattr
class _FieldTypes(AttributeTemplate):  # type: ignore[misc]
    key = TupleType

    def generic_resolve(self, tuple_: TupleType, field: str) -> types.Type | None:
        return tuple_.places[field][1] if field in tuple_.places else None


@lower_getattr_generic(TupleType)  # type: ignore[untyped-decorator]
def _read_field(context: Any, builder: Any, tuple_: TupleType, address: Any, field: str) -> Any:
    place, kind = tuple_.places[field]
    if isinstance(kind, TupleType):
        return _word_at(builder, address, place)
    if isinstance(kind, RowType):
        row = create_struct_proxy(kind)(context, builder)
        row.data = _load(builder, address, place, context.get_data_type(kind.dtype).as_pointer())
        row.length = _load(builder, address, place + 1, _WORD)
        return row._getvalue()
    return _load(builder, address, place, context.get_value_type(kind))


def _word_at(builder: Any, address: Any, place: int) -> Any:
    return builder.gep(address, [_WORD(place)], inbounds=True)


def _load(builder: Any, address: Any, place: int, kind: Any) -> Any:
    """Read a word, marked as constant while the kernel runs so that LLVM reads it once."""
    word = builder.load(builder.bitcast(_word_at(builder, address, place), kind.as_pointer()))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


class RowType(types.Type):
    """Type of an array within a tuple: the address of its first item, and its length.

    As in C, an index is not tested: it must be at least 0 and less than the length.
    """

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(f"Row({dtype})")


@register_model(RowType)
class _RowModel(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: RowType) -> None:
        super().__init__(manager, kind, [("data", CPointer(kind.dtype)), ("length", types.intp)])


@infer_global(operator.getitem)
class _ItemTypes(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: tuple[types.Type, ...], kws: object) -> Any:
        row, index = args
        if isinstance(row, RowType) and isinstance(index, types.Integer):
            return signature(row.dtype, row, types.intp)
        return None


@infer_global(operator.setitem)
class _SetItemTypes(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: tuple[types.Type, ...], kws: object) -> Any:
        row, index, _ = args
        if isinstance(row, RowType) and isinstance(index, types.Integer):
            return signature(types.none, row, types.intp, row.dtype)
        return None


@infer_global(len)
class _LengthTypes(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: tuple[types.Type, ...], kws: object) -> Any:
        return signature(types.intp, *args) if isinstance(args[0], RowType) else None


@lower_builtin(operator.getitem, RowType, types.Integer)  # type: ignore[untyped-decorator]
def _get_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(_item_at(context, builder, sig, args))


@lower_builtin(operator.setitem, RowType, types.Integer, types.Any)  # type: ignore[untyped-decorator]
def _set_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.store(args[2], _item_at(context, builder, sig, args))
    return context.get_dummy_value()


@lower_builtin(len, RowType)  # type: ignore[untyped-decorator]
def _length(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return create_struct_proxy(sig.args[0])(context, builder, args[0]).length


def _item_at(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    row = create_struct_proxy(sig.args[0])(context, builder, args[0])
    return builder.gep(row.data, [args[1]], inbounds=True)
