"""A page for each command: how it is called, and every option, as the program itself declares them."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from cyclopts import App, Parameter

from pipeplan.cli.app import command_line, describe
from pipeplan.costs import SETTINGS

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


OPTIONS = """# Options of commands

Options are the same in the shell (`--memory-limit 12GiB`) and in Python (`memory_limit="12GiB"`). The options of shape and
costs, which every command that builds a schedule takes, are [Settings](settings.md).
"""


@cache
def _commands() -> dict[str, App]:
    app = command_line("all")
    names = [name for name in app if not name.startswith("-")]
    for name in names:
        describe(app, name)
    return {name: app[name] for name in names}


def names() -> list[str]:
    """The commands, in the order of ``pipeplan --help``."""
    return list(_commands())


def pages() -> Iterator[tuple[str, str]]:
    """The path and the text of each page."""
    rows = "\n".join(
        f"| [`pipeplan {name}`]({name}.md) | {app.help.splitlines()[0]} |" for name, app in _commands().items()
    )
    yield f"{FOLDER}index.md", INTRODUCTION.format(rows=rows)
    for name, app in _commands().items():
        yield f"{FOLDER}{name}.md", _page(name, app)


def options_markdown() -> str:
    """Return the page of all commands with their options, but for the settings, which have a page of their own."""
    settings = {option for setting in SETTINGS.values() for option in setting.options}
    parts = [OPTIONS]
    for name, app in _commands().items():
        words, options = _arguments(app)
        own = [option for option in options if option.names[0] not in settings or name == "plan"]
        parts.append(f"## {name}\n\n{(app.help or '').splitlines()[0]}\n")
        if len(own) < len(options):
            parts.append("Takes the [settings](settings.md), too.\n")
        rows = [(f"`{_word(word)}`", _help(word)) for word in words]
        rows += [(_names(option), _help(option)) for option in own]
        parts += ["| option | meaning |", "|---|---|"]
        parts += [f"| {_in_table(first)} | {meaning} |" for first, meaning in rows]
        parts.append("")
    return "\n".join(parts)


def _in_table(code: str) -> str:
    """Return code with its bars as entities: viewers of Markdown differ in what a bar within code does to a table."""
    return re.sub(r"`([^`]*\|[^`]*)`", lambda match: f"<code>{match[1].replace('|', '&#124;')}</code>", code)


def _arguments(app: App) -> tuple[list[Any], list[Any]]:
    """Return the arguments and the options of a command."""
    shown = [
        argument
        for argument in app.assemble_argument_collection(default_parameter=Parameter(negative=()), parse_docstring=True)
        if argument.show and argument.names
    ]
    options = [argument for argument in shown if any(name.startswith("-") for name in argument.names)]
    return [argument for argument in shown if argument not in options], options


def _page(name: str, app: App) -> str:
    words, options = _arguments(app)
    usage = " ".join(["pipeplan", name, *map(_word, words), *(["[OPTIONS]"] if options else [])])
    parts = [f"# pipeplan {name}", app.help or "", f"```text\n{usage}\n```"]
    if words:
        parts.append(_table("argument", [(f"`{_word(each)}`", _help(each)) for each in words]))
    groups: dict[str, list[Any]] = {}
    for option in options:
        groups.setdefault(_group(option), []).append(option)
    for group, members in groups.items():
        parts.append(f"## {group}")
        parts.append(_table("option", [(_names(each), _help(each)) for each in members]))
    return "\n\n".join(parts) + "\n"


def _table(first: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| {first} | meaning |", "|---|---|", *(f"| {name} | {meaning} |" for name, meaning in rows)]
    return "\n".join(['<div class="options" markdown>', "", *lines, "", "</div>"])


def _group(option: Any) -> str:
    found = option.parameter.group or ()
    name = str(found[0].name) if found else "Options"
    return "Options" if name == "Parameters" else name


def _word(argument: Any) -> str:
    name = argument.names[0]
    several = f"{name} ..." if get_origin(argument.hint) is tuple else name
    return several if argument.required else f"[{several}]"


def _names(option: Any) -> str:
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


def _help(argument: Any) -> str:
    """The help of an option in one cell, its list of values (paragraphs of a list in the terminal) as a list."""
    text = (argument.parameter.help or "").strip()
    start, *items = text.split("\n\n- ") if "\n\n- " in text else [text]
    if len(items) == 1:
        items = items[0].split("\n- ")
    cell = " ".join(start.split()).replace("|", "\\|")
    if items:
        cell += "<ul>" + "".join(f"<li>{' '.join(item.split())}</li>" for item in items).replace("|", "\\|") + "</ul>"
    return cell + (" **Required.**" if argument.required and argument.index is None else "")
