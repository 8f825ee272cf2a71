"""Values in recipes: what an expression of the syntax tree makes, within limits. Nothing is imported or executed."""

from __future__ import annotations

import ast
import operator as operators
from collections.abc import Callable
from contextlib import suppress
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
    ast.Is: operators.eq,
    ast.IsNot: operators.ne,
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
        """Set a field, which counts from now on; a key that no dictionary takes is left out."""
        with suppress(TypeError):
            self.fields[key] = stated._replace(time=time)

    @property
    def is_dict(self) -> bool:
        """True for a dictionary that has no other keys than the known ones."""
        return self.callee == "dict" and not self.open


@dataclass(frozen=True, slots=True)
class External:
    """Name of a class, or of what no file defines that is read.

    Attributes
    ----------
    own
        Whether it is a class of the recipe's file, which may set more than its arguments.
    """

    name: str
    own: bool = False


def cloned(value: Any, clones: dict[int, Made] | None = None) -> Any:
    """Return a copy of an object with its parts, or of a list; other values as they are."""
    clones = {} if clones is None else clones
    if isinstance(value, list):
        return [cloned(part, clones) for part in value]
    if not isinstance(value, Made):
        return value
    if id(value) not in clones:
        clones[id(value)] = made = Made(value.callee, value.place, open=value.open)
        made.fields |= {key: one._replace(raw=cloned(one.raw, clones)) for key, one in value.fields.items()}
    return clones[id(value)]


def combined(operator: ast.AST, left: Any, right: Any) -> Any:
    """Return the result of an operator on numbers, lists or texts; UNKNOWN for other values and too large ones."""
    if type(operator) not in _OPERATORS or not (_definite(left, operator) and _definite(right, operator)):
        return UNKNOWN
    if isinstance(operator, ast.Mult) and isinstance(left, int) and isinstance(right, list | str):
        left, right = right, left
    if isinstance(operator, ast.cmpop):
        within = True
    elif isinstance(left, list | str | tuple):
        joins = isinstance(operator, ast.Add) and type(left) is type(right)
        repeats = isinstance(operator, ast.Mult) and isinstance(right, int)
        size = len(left) + len(right) if joins else len(left) * right if repeats else _LARGEST_LIST + 1
        within = size <= _LARGEST_LIST
    else:
        within = max(abs(left), abs(right)) <= _LARGEST_NUMBER
    return _OPERATORS[type(operator)](left, right) if within else UNKNOWN


def _definite(value: Any, operator: ast.AST) -> bool:
    """Return whether an operator can be applied: what a class makes is something, and nothing else is known of it."""
    if isinstance(value, Made):
        return value.is_dict or (isinstance(operator, ast.Is | ast.IsNot) and not value.open)
    return value is None or isinstance(value, int | float | str | list | tuple)


def truth(value: Any) -> Any:
    """Return whether a value counts as true; UNKNOWN for an unknown one."""
    if isinstance(value, Made):
        return UNKNOWN if value.open else bool(value.fields) or not value.is_dict
    return bool(value) if value is None or isinstance(value, int | float | str | list | tuple) else UNKNOWN


def listed(values: list[Any]) -> Any:
    """Return a list; UNKNOWN with a value that is, and for lists in lists in lists."""
    deep = any(isinstance(one, list | tuple) and any(isinstance(two, list | tuple) for two in one) for one in values)
    return UNKNOWN if deep or any(one is UNKNOWN for one in values) else values


def builtin(name: str, arguments: list[Any]) -> Any:
    """Return what a builtin function, or a copy, returns; raises KeyError for other names."""
    match name, arguments:
        case "deepcopy" | "copy" | "list", [Made() | list() as value]:
            return cloned(value)
        case "get_mixed_precision_config", [value]:
            # Bridge's recipe of mixed precision is named by its argument; its fields may be set afterwards.
            return Made(fields={"precision": Stated(value)})
        case "isinstance", [str(), External() as kind]:
            return kind.name == "str"
        case "getattr", [Made() as owner, str(key), *_] if key in owner:
            return owner.fields[key].raw
    raise KeyError(name)
