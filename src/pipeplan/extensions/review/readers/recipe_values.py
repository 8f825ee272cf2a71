"""Values in recipes: what an expression of the syntax tree makes, within limits. Nothing is imported or executed."""

from __future__ import annotations

import ast
import copy
import operator as operators
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.settings import UNKNOWN

_LARGEST_LIST = 100_000
"""Maximum number of values of a list, and of letters of a text, that an expression makes."""

_LARGEST_NUMBER = 10**15
"""Largest absolute value of a number with which a recipe is computed."""

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operators.add,
    ast.Sub: operators.sub,
    ast.Mult: operators.mul,
    ast.FloorDiv: operators.floordiv,
    ast.Div: operators.truediv,
    ast.Mod: operators.mod,
    ast.Eq: operators.eq,
    ast.NotEq: operators.ne,
    ast.Lt: operators.lt,
    ast.LtE: operators.le,
    ast.Gt: operators.gt,
    ast.GtE: operators.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
    ast.Is: lambda left, right: left is right if right is None else left == right,
    ast.IsNot: lambda left, right: left is not right if right is None else left != right,
}
_BUILTINS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (len, int, float, bool, list, tuple, min, max, sum, divmod, abs, str)
}
_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "tuple": tuple, "dict": dict}
_METHODS: dict[type, frozenset[str]] = {
    list: frozenset({"append", "extend", "insert", "copy", "index", "count"}),
    str: frozenset({"lower", "upper", "startswith", "endswith", "strip", "join"}),
}


class Stated(NamedTuple):
    """Value, the place where it is written, and when it was set."""

    raw: Any
    place: SettingPlace = SettingPlace()
    time: int = 0


@dataclass(eq=False)
class Made:
    """Object that a call makes, or a dictionary: a configuration, or a part of one.

    Attributes
    ----------
    callee
        Dotted name of the class or function; empty for an object that the file does not make.
    fields
        Keyword arguments, positional arguments by their number, and what is set later.
    open
        Whether it may have further settings, of a function that is not read.
    """

    callee: str = ""
    place: SettingPlace = field(default_factory=SettingPlace)
    fields: dict[Any, Stated] = field(default_factory=dict)
    open: bool = False

    def __contains__(self, key: Any) -> bool:
        return key in self.fields

    def set(self, key: Any, stated: Stated, time: int) -> None:
        """Set a field, which counts from now on."""
        self.fields[key] = stated._replace(time=time)

    @property
    def is_dict(self) -> bool:
        """Whether all keys are known."""
        return self.callee == "dict" and not self.open


@dataclass(frozen=True, slots=True)
class External:
    """Name that no file defines that is read: a library's, or a builtin function's."""

    name: str


def combined(operator: ast.AST, left: Any, right: Any) -> Any:  # noqa: PLR0911 - a row per kind of values
    """Return the result of an operator on numbers, lists, texts or dictionaries; UNKNOWN for others and too large ones."""
    if UNKNOWN in (left, right) or isinstance(left, External) or isinstance(right, External):
        return UNKNOWN
    if isinstance(operator, ast.cmpop):
        if isinstance(right, Made) and isinstance(operator, ast.In | ast.NotIn) and not right.is_dict:
            return UNKNOWN
        return _OPERATORS[type(operator)](left, right)
    if isinstance(operator, ast.BitOr) and isinstance(left, Made) and isinstance(right, Made):
        return Made("dict", left.place, {**left.fields, **right.fields}, left.open or right.open)
    if isinstance(operator, ast.Mult) and isinstance(left, int) and isinstance(right, list | str):
        left, right = right, left
    if isinstance(left, list | str | tuple):
        joins = isinstance(operator, ast.Add) and type(left) is type(right)
        repeats = isinstance(operator, ast.Mult) and isinstance(right, int)
        size = len(left) + len(right) if joins else len(left) * max(right, 0) if repeats else _LARGEST_LIST + 1
        return UNKNOWN if size > _LARGEST_LIST else left + right if joins else left * right
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return UNKNOWN
    small = type(operator) in _OPERATORS and max(abs(left), abs(right)) <= _LARGEST_NUMBER
    return _OPERATORS[type(operator)](left, right) if small else UNKNOWN


def listed(values: list[Any]) -> Any:
    """Return a list; UNKNOWN with a value that is, and for lists in lists in lists."""
    deep = any(isinstance(one, list | tuple) and any(isinstance(two, list | tuple) for two in one) for one in values)
    return UNKNOWN if deep or any(one is UNKNOWN for one in values) else values


def method(owner: Any, name: str, arguments: list[Any]) -> Any:
    """Return what a method of a text, a list or a dictionary returns; UNKNOWN for others."""
    if isinstance(owner, Made) and name == "get" and owner.is_dict:
        return owner.fields[arguments[0]].raw if arguments[0] in owner else (*arguments, None)[1]
    allowed = name in _METHODS.get(type(owner), ()) and UNKNOWN not in arguments
    joined = [*arguments, *(arguments[0] if name == "join" and isinstance(arguments[0], list | tuple) else ())]
    size = sum(len(one) for one in (owner, *joined) if hasattr(one, "__len__")) if allowed else 0
    return getattr(owner, name)(*arguments) if allowed and size <= _LARGEST_LIST else UNKNOWN


def builtin(name: str, arguments: list[Any]) -> Any:  # noqa: PLR0911 - a row per function
    """Return what a builtin function, or a copy, returns; raises KeyError for other names."""
    match name.rpartition(".")[2], arguments:
        case "deepcopy" | "copy", [value]:
            return copy.deepcopy(value)
        case "cast", [_, value]:
            return value
        case "get_mixed_precision_config", [value]:
            # Bridge's recipe of mixed precision is named by its argument.
            return value
        case "isinstance", [value, External(kind)] if value is not UNKNOWN and not isinstance(value, External):
            plain = not isinstance(value, Made)
            known = plain or kind in _TYPES
            return (plain and kind in _TYPES and isinstance(value, _TYPES[kind])) if known else UNKNOWN
        case "hasattr", [Made() as owner, str(key)]:
            return True if key in owner else UNKNOWN
        case "getattr", [Made() as owner, str(key), *_]:
            return owner.fields[key].raw if key in owner else UNKNOWN
        case "range", numbers if all(isinstance(number, int) for number in numbers):
            counted = range(*numbers)
            return list(counted) if len(counted) <= _LARGEST_LIST else UNKNOWN
    if name in _BUILTINS:
        unknown = UNKNOWN in arguments or any(isinstance(one, Made | External) for one in arguments)
        return UNKNOWN if unknown else _BUILTINS[name](*arguments)
    raise KeyError(name)
