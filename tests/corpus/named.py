"""The names that a version has for its users: functions with their arguments, commands with their options, keys of files."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import pipeplan
from docs.build.options import FUNCTIONS
from docs.build.python_pages import PUBLIC
from pipeplan.answers import all_formats, schedules
from pipeplan.cli.app import command_line
from pipeplan.cli.commands import ALIASES, commands, other_options, spellings
from pipeplan.costs import SETTINGS, missing_in, table_of
from pipeplan.drawing import LookOptions


def named() -> dict[str, Any]:
    """All of them, as JSON has it."""
    return {
        "names": sorted(pipeplan.__all__),
        "submodules": {name: sorted(public.split()) for name, (_, public) in PUBLIC.items()},
        "arguments": {name: _arguments(getattr(pipeplan, name)) for name in _functions()},
        "options": _options(),
        "keys": sorted({name for each in SETTINGS.values() for name in (each.name, *each.aliases)}),
        "schedules": [each.name for each in schedules()],
        "formats": {name: each.ending for name, each in all_formats().items()},
    }


def _functions() -> list[str]:
    return sorted(name for name in pipeplan.__all__ if inspect.isfunction(getattr(pipeplan, name)))


def _arguments(function: Any) -> dict[str, str]:
    """How each argument may be given, in their order: by ``place``, ``name`` or ``either``; ``needed`` where it must be."""
    found: dict[str, str] = {}
    for name, each in inspect.signature(function).parameters.items():
        if each.kind is each.VAR_KEYWORD:
            for record in FUNCTIONS.get(function, (LookOptions,)):  # of save: how pictures look
                required = missing_in(record, {})
                options = {name: "name needed" if name in required else "name" for name in table_of(record)}
                found = options | found
            continue
        given: dict[Any, str] = {each.POSITIONAL_ONLY: "place", each.VAR_POSITIONAL: "place", each.KEYWORD_ONLY: "name"}
        needed = each.default is each.empty and each.kind is not each.VAR_POSITIONAL
        found[name] = given.get(each.kind, "either") + (" needed" if needed else "")
    return found


def _options() -> dict[str, list[str]]:
    app = command_line()
    given = {
        command: {name for argument in app[command].assemble_argument_collection() for name in argument.names}
        for command in commands()
    }
    given |= {alias: {*given[command]} for alias, (command, *_) in ALIASES.items()}
    for (command, switch), (other, *_) in spellings("").items():
        given[command] |= {switch, *given[other]}
    for command, other in other_options(""):
        given[command].add(other)
    return {command: sorted(filter(partial(_is_option, names), names)) for command, names in given.items()}


def _is_option(names: set[str], name: str) -> bool:
    """Whether it is an option, and not the opposite of one, which the parser adds."""
    return name.startswith("-") and not any(
        name.startswith(no) and f"--{name.removeprefix(no)}" in names for no in ("--no-", "--empty-")
    )
