"""What extensions register, by address (``module:name``), so that nothing is loaded before it is used.

An extension is a folder of ``pipeplan/extensions`` whose module ``extension`` has a value ``EXTENSION``. The core names no
module of an extension: it looks here for what one registers, and an extension that is absent is named in the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from pipeplan.foundation.errors import InputError

NAMES = ("search", "planning", "review", "training", "web")
"""Extensions that come with pipeplan, in the order of lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Command of the shell.

    Attributes
    ----------
    name
        Name of the command.
    function
        Address of its function, whose docstring begins with the summary.
    summary
        Line of the list of commands.
    example
        Arguments of an example.
    place
        Position in the list of commands; the smallest comes first.
    """

    name: str
    function: str
    summary: str
    example: str
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """What one extension adds.

    Attributes
    ----------
    name
        Name of its folder.
    summary
        What it is for, in a sentence.
    needs
        Extensions that it imports.
    commands
        Commands of the shell.
    answers
        Addresses of the records of answers, by the names of their schemas.
    registries
        Addresses of registries that users can add to.
    formats
        Addresses of tuples of file formats.
    services
        Addresses of what the core asks it for, by name.
    """

    name: str
    summary: str
    needs: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    registries: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    services: Mapping[str, str] = field(default_factory=dict)


class MissingExtensionError(InputError, AttributeError):
    """An extension is not installed: ``MissingExtensionError("search")``."""

    def __init__(self, name: str) -> None:
        super().__init__(f"this needs the extension '{name}' of pipeplan, which is not installed")


@cache
def extension(name: str) -> Extension | None:
    """Return an extension; None if its folder is absent."""
    package = f"pipeplan.extensions.{name}"
    if find_spec(package) is None or find_spec(f"{package}.extension") is None:
        return None
    value: Extension = import_module(f"{package}.extension").EXTENSION
    return value


def extensions() -> tuple[Extension, ...]:
    """Return the extensions that are installed."""
    return tuple(present for name in NAMES if (present := extension(name)) is not None)


def loaded(address: str) -> Any:
    """Return what an address names: ``module:name``, or a module."""
    module, _, name = address.partition(":")
    value = import_module(module)
    return getattr(value, name) if name else value


def registered(kind: Literal["formats"]) -> Iterator[Any]:
    """Yield the items of one kind that the extensions register."""
    for present in extensions():
        for address in getattr(present, kind):
            yield from loaded(address)


def service(name: str, what: str) -> Any | None:
    """Return what an extension offers the core under a name; None if the extension is not installed."""
    present = extension(name)
    return None if present is None else loaded(present.services[what])


def required_service(name: str, what: str) -> Any:
    """Return what an extension offers the core. Raises MissingExtensionError if the extension is not installed."""
    present = extension(name)
    if present is None:
        raise MissingExtensionError(name)
    return loaded(present.services[what])
