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
    names
        Public names of ``pipeplan``, separated by blanks, by the module of the extension that has them.
    lists
        Addresses of the functions of ``pipeplan list KIND``, by kind.
    spellings
        Switches of a command that mean another command: ``{("review", "--rules"): ("list", "rules")}``.
    other_options
        Other spellings of options: ``{("search", "--layout"): ("--layers-per-stage",)}``. Help does not list them.
    pages
        Pages of the documentation about it, in ``docs``.
    """

    name: str
    summary: str
    needs: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    registries: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    services: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    other_options: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    pages: tuple[str, ...] = ()


class MissingExtensionError(InputError, AttributeError):
    """A requested name or service belongs, or may belong, to an extension that is not installed."""


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


def public_names() -> dict[str, str]:
    """Return the addresses of the public names that the installed extensions add to ``pipeplan``."""
    return {
        name: f"pipeplan.extensions.{each.name}.{module}:{name}"
        for each in extensions()
        for module, names in each.names.items()
        for name in names.split()
    }


def public_name(name: str) -> Any:
    """Return what an extension adds to ``pipeplan`` under a name.

    Raises MissingExtensionError if there is no such name and an extension is not installed, else AttributeError.
    """
    address = public_names().get(name)
    if address is not None:
        return loaded(address)
    message = f"module 'pipeplan' has no attribute '{name}'"
    if absent := [each for each in NAMES if extension(each) is None]:
        message += f"; extensions that are not installed: {', '.join(map(repr, absent))}"
        raise MissingExtensionError(message)
    raise AttributeError(message)


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
        raise MissingExtensionError(f"this needs the extension '{extension_name}' of pipeplan, which is not installed")
    return loaded(present.services[name])
