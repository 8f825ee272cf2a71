"""A page for each command: how it is called, and every option, as the program itself declares them."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from cyclopts import App, Parameter

from pipeplan.cli.app import command_line, describe

FOLDER = "reference/commands/"

VALUES: dict[Any, str] = {int: "N", float: "NUMBER", str: "TEXT", Path: "FILE"}
"""How a value of a type is written."""

INTRODUCTION = """# Commands

Every command is the Python function of the same name ([In Python](../python.md)) and takes the same options. `pipeplan
COMMAND --help-all` prints the same reference.

| command | does |
|---|---|
{rows}

Exit codes: 0 success; 1 a negative answer, such as an invalid schedule, an infeasible limit or gradients that differ; 2
invalid input. An error is one short paragraph on stderr; `--debug` prints its traceback. With `--json`, stdout holds one
JSON object and nothing else.
"""


@cache
def commands() -> dict[str, App]:
    """Return the commands by name, with everything that they take."""
    app = command_line("all")
    names = [name for name in app if not name.startswith("-")]
    for name in names:
        describe(app, name)
    return {name: app[name] for name in names}


def names() -> list[str]:
    """The commands, in the order of ``pipeplan --help``."""
    return list(commands())


def pages() -> Iterator[tuple[str, str]]:
    """The path and the text of each page."""
    rows = "\n".join(
        f"| [`pipeplan {name}`]({name}.md) | {app.help.splitlines()[0]} |" for name, app in commands().items()
    )
    yield f"{FOLDER}index.md", INTRODUCTION.format(rows=rows)
    for name, app in commands().items():
        yield f"{FOLDER}{name}.md", _page(name, app)


def arguments_of(app: App) -> tuple[list[Any], list[Any]]:
    """Return the arguments and the options of a command."""
    shown = [
        argument
        for argument in app.assemble_argument_collection(default_parameter=Parameter(negative=()), parse_docstring=True)
        if argument.show and argument.names
    ]
    options = [argument for argument in shown if any(name.startswith("-") for name in argument.names)]
    return [argument for argument in shown if argument not in options], options


def _page(name: str, app: App) -> str:
    words, options = arguments_of(app)
    usage = " ".join(["pipeplan", name, *map(word, words), *(["[OPTIONS]"] if options else [])])
    parts = [f"# pipeplan {name}", app.help or "", f"```text\n{usage}\n```"]
    if words:
        parts.append(_table("argument", [(f"`{word(each)}`", option_help(each)) for each in words]))
    groups: dict[str, list[Any]] = {}
    for option in options:
        groups.setdefault(_group(option), []).append(option)
    for group, members in groups.items():
        parts.append(f"## {group}")
        parts.append(_table("option", [(named(each), option_help(each)) for each in members]))
    return "\n\n".join(parts) + "\n"


def _table(first: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| {first} | meaning |", "|---|---|", *(f"| {name} | {meaning} |" for name, meaning in rows)]
    return "\n".join(['<div class="options" markdown>', "", *lines, "", "</div>"])


def _group(option: Any) -> str:
    found = option.parameter.group or ()
    name = str(found[0].name) if found else "Options"
    return "Options" if name == "Parameters" else name


def word(argument: Any) -> str:
    """Return an argument as a usage line has it."""
    name = argument.names[0]
    several = f"{name} ..." if get_origin(argument.hint) is tuple else name
    return several if argument.required else f"[{several}]"


def named(option: Any) -> str:
    """Return the names of an option, with what stands behind it."""
    long = [name for name in option.names if name.startswith("--")]
    short = [name for name in option.names if not name.startswith("--")]
    value = _value(option.hint)
    first = f"`{long[0]}{' ' + value if value else ''}`"
    return ", ".join([first, *(f"`{name}`" for name in [*short, *long[1:]])])


def _value(hint: Any) -> str:
    """What stands behind an option: choices, or a word for the kind of value; nothing behind a switch."""
    origin, arguments = get_origin(hint), [each for each in get_args(hint) if each is not types.NoneType]
    if origin is Literal:
        return "|".join(map(str, arguments))
    if origin in (Union, types.UnionType):
        return next((value for value in map(_value, arguments) if value), "")
    if origin is tuple:
        return _value(arguments[0]) + (",..." if arguments[0] is not Path else "")
    return VALUES.get(hint, "")


def option_help(argument: Any, *, listed: bool = True) -> str:
    """Return the help of an option for one cell; its list of values, paragraphs in the terminal, is a list or left out."""
    text = (argument.parameter.help or "").strip()
    start, *items = text.split("\n\n- ") if "\n\n- " in text else [text]
    if len(items) == 1:
        items = items[0].split("\n- ")
    cell = " ".join(start.split()).replace("|", "\\|")
    if items and listed:
        cell += "<ul>" + "".join(f"<li>{' '.join(item.split())}</li>" for item in items).replace("|", "\\|") + "</ul>"
    return cell + (" **Required.**" if argument.required and argument.index is None else "")
