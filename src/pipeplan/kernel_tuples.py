"""Named tuples of arrays in compiled kernels: an address each, instead of seven machine words for every array.

Numba hands a tuple to a function by its parts. The search's kernels take some hundred arrays, and most of the time to
compile them went into handing these on. Here a tuple is written into a block of words, and functions take its address:

============================== =======================================================
``Row(order, held, limit=2)``  address and length of ``order``, those of ``held``, 2
a tuple within a tuple         its words, in its place
============================== =======================================================

Kernels write into the arrays, never into the block: so a loop reads an address once, however often it names the array.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from ctypes import addressof, c_char, create_string_buffer
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    unbox,
)
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

_WORD = ir.IntType(64)


class TupleType(types.Type):
    """The type of a named tuple that is handed on by its address: its name, and the types of its fields in their order."""

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
    return 2 if isinstance(kind, types.Array) else 1


class PackedTuple:
    """A named tuple as a compiled kernel takes it, which keeps its arrays alive."""

    __slots__ = ("_numba_type_", "_words", "address", "source")

    def __init__(self, source: Any) -> None:
        words: list[int | float] = []
        self.source = source
        self._numba_type_, write = _type_of(_describe(source, words))
        self._words = create_string_buffer(write(*words))
        self.address = addressof(self._words)


def packed(argument: Any) -> Any:
    """An argument of a compiled kernel as it takes it: named tuples packed, the others as they are."""
    return PackedTuple(argument) if isinstance(argument, tuple) else argument


def _describe(source: Any, words: list[int | float]) -> tuple[Any, ...]:
    """What tells the type of a tuple: its class, then what tells those of its fields; appends its words."""
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
def _type_of(described: tuple[Any, ...]) -> tuple[TupleType, Callable[..., bytes]]:
    """The type of a tuple, and what writes its words."""
    name, fields, layout = _fields_of(described)
    return TupleType(name, fields), struct.Struct(layout).pack


def _fields_of(described: tuple[Any, ...]) -> tuple[str, tuple[tuple[str, types.Type], ...], str]:
    """The name of a tuple's class, its fields with their types, and how its words are written."""
    source, *kinds = described
    fields: list[types.Type] = []
    layout = ""
    for kind in kinds:
        if isinstance(kind, str):
            fields.append(types.Array(from_dtype(np.dtype(kind)), 1, "C"))
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
    """In machine code: the address of the first word."""

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
    if isinstance(kind, types.Array):
        item = context.get_data_type(kind.dtype)
        size = context.get_constant(types.intp, context.get_abi_sizeof(item))
        array = make_array(kind)(context, builder)
        data = _load(builder, address, place, item.as_pointer())
        length = _load(builder, address, place + 1, _WORD)
        populate_array(array, data=data, shape=[length], strides=[size], itemsize=size, meminfo=None)
        return array._getvalue()
    return _load(builder, address, place, context.get_value_type(kind))


def _word_at(builder: Any, address: Any, place: int) -> Any:
    return builder.gep(address, [_WORD(place)], inbounds=True)


def _load(builder: Any, address: Any, place: int, kind: Any) -> Any:
    """Read a word that never changes while a kernel runs: said so, it is read once."""
    word = builder.load(builder.bitcast(_word_at(builder, address, place), kind.as_pointer()))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word
