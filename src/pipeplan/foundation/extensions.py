"""Registration of extensions, by address (``module:name``), so that nothing is loaded before it is used.

An extension is a folder of ``pipeplan/extensions`` whose module ``extension`` has a value ``EXTENSION``. The core names no
module of an extension: it looks here for what one registers, and an extension that is absent is named in the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

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
    """Everything that one extension adds to the core.

    Attributes
    ----------
    name
        Name of its folder.
    summary
        Purpose, in a sentence.
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
        Addresses of functions and modules that other parts use, by name.
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
    """Import and return the object at an address: ``module:name``, or a module."""
    module, _, name = address.partition(":")
    value = import_module(module)
    return getattr(value, name) if name else value


def service(extension_name: str, name: str) -> Any | None:
    """Return a service of an extension; None if the extension is not installed."""
    present = extension(extension_name)
    return None if present is None else loaded(present.services[name])


def required_service(extension_name: str, name: str) -> Any:
    """Return a service of an extension. Raises MissingExtensionError if the extension is not installed."""
    present = extension(extension_name)
    if present is None:
        raise MissingExtensionError(extension_name)
    return loaded(present.services[name])
