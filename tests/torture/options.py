"""The commands' options as the command line itself declares them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin


@dataclass(frozen=True)
class Option:
    """An option, or where ``names`` is empty an argument by its place.

    Attributes
    ----------
    names
        Every name of it.
    kind
        ``int``, ``float``, ``bool``, ``path`` or ``text``.
    choices
        The words that it can be, where it has some.
    many
        Whether it takes several values.
    """

    names: tuple[str, ...]
    kind: str
    choices: tuple[str, ...]
    many: bool


@cache
def options_of(command: str) -> tuple[Option, ...]:
    """The options of a command."""
    from pipeplan.cli.app import command_line

    found = []
    for argument in command_line()[command].assemble_argument_collection():
        names = tuple(name for name in argument.names if name.startswith("-"))
        if argument.names != ("*",):
            held = tuple(_parts(argument.hint))
            choices = tuple(str(each) for each in held if isinstance(each, str))
            found.append(Option(names, _kind(held), choices, _is_many(argument.hint)))
    return tuple(found)


@cache
def commands() -> tuple[str, ...]:
    """The commands."""
    from pipeplan.cli.app import _COMMANDS

    return tuple(_COMMANDS)


def _parts(hint: Any) -> Any:
    """The types that a hint is made of, and the words of its literals."""
    origin = get_origin(hint)
    if origin is Annotated:
        yield from _parts(get_args(hint)[0])
    elif origin is Literal:
        yield from get_args(hint)
    elif origin in (Union, UnionType, tuple, list):
        for each in get_args(hint):
            yield from _parts(each)
    elif hint not in (NoneType, Ellipsis):
        yield hint


def _kind(held: tuple[Any, ...]) -> str:
    if Path in held:
        return "path"
    return next((kind.__name__ for kind in (bool, int, float) if kind in held), "text")


def _is_many(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is tuple:
        return True
    return origin in (Union, UnionType, Annotated) and any(_is_many(each) for each in get_args(hint))
