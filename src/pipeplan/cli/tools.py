"""Commands as tools of an agent: the arguments of each as a JSON schema, and a call as the words of a command line.

A tool has the name of its command, and its arguments are those of the command, named as in config files and in Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from cyclopts import Parameter

from pipeplan.cli.app import command_line, describe
from pipeplan.costs import FOLDED_GROUPS, Setting, SettingKind
from pipeplan.errors import InputError, UnknownNameError
from pipeplan.model import shortened

Json = dict[str, Any]

PICTURE = "picture"
"""Argument of a tool that draws: return the picture of the answer, too."""

FIELDS = "fields"
"""Argument of a tool that answers in JSON: parts of the answer to return."""

_NOT_TOOLS = ("serve", "mcp", "warm")
"""Commands that run until they are stopped, or that prepare a machine."""

_WITHOUT_PICTURE = ("steady-state",)
"""Commands that take the look of pictures, as all commands of the search do, but have none."""

_OF_THE_SHELL = ("json", "debug", "no_visualization")
"""Options that a tool sets itself."""

_OWN: dict[str, Json] = {
    PICTURE: {"type": "boolean", "description": "Return the picture of the answer, too, as a PNG image."},
    FIELDS: {
        "type": "array",
        "items": {"type": "string"},
        "description": "Parts of the answer to return, such as makespan, bubble.idle_over_total or results.makespan; a list "
        "stands for all of its items (default: the whole answer).",
    },
}

_NUMBER: Json = {"type": "number"}
_WHOLE: Json = {"type": "integer"}
_TEXT: Json = {"type": "string"}
_FLAG: Json = {"type": "boolean"}
_OBJECT: Json = {"type": "object"}


def _list_of(*items: Json) -> Json:
    return {"type": "array", "items": _one_of(items)}


def _one_of(forms: tuple[Json, ...]) -> Json:
    return forms[0] if len(forms) == 1 else {"anyOf": list(forms)}


def _forms(schema: Json) -> list[Json]:
    """Return the forms of a schema that :func:`_one_of` made."""
    forms: list[Json] = schema.get("anyOf", [schema])
    return forms


_FILE = (_TEXT, _OBJECT)
"""A path, or the content of a file."""

_FORMS: dict[SettingKind, tuple[Json, ...]] = {
    "count": (_WHOLE,),
    "number": (_NUMBER,),
    "per_stage": (_NUMBER, _list_of(_NUMBER)),
    "choice": (_TEXT,),
    "name": (_TEXT,),
    "text": (_TEXT,),
    "flag": (_FLAG,),
    "limit": (_NUMBER, _TEXT, _list_of(_NUMBER, _TEXT)),
    "stages": (_TEXT, _list_of(_WHOLE)),
    "layers": (*_FILE, _list_of(_OBJECT)),
    "layout": (_list_of(_WHOLE),),
    "stage_layers": (_TEXT, _list_of(_WHOLE)),
    "per_microbatch": (*_FILE, _list_of(_NUMBER, _list_of(_NUMBER))),
    "lengths": (*_FILE, _list_of(_NUMBER, _list_of(_NUMBER))),
    "size": (_NUMBER, _TEXT),
    "duration": (_NUMBER, _TEXT),
    "pairs": (_OBJECT, _list_of(_TEXT)),
    "names": (_list_of(_TEXT),),
    "schedules": (_list_of(*_FILE),),
    "model": _FILE,
    "object": _FILE,
    "file": _FILE,
    "files": (_list_of(_TEXT),),
}
"""Forms of JSON that an option of each kind takes."""

_DOCUMENTS: tuple[SettingKind, ...] = ("layers", "per_microbatch", "lengths")
"""Kinds of options whose lists are the content of a file."""

_IN_BYTES: dict[SettingKind, tuple[Json, ...]] = {
    "number": (_NUMBER, _TEXT),
    "per_stage": (_NUMBER, _TEXT, _list_of(_NUMBER, _TEXT)),
}
"""Forms of sizes, which may have a unit."""


@dataclass(frozen=True, slots=True)
class ToolArgument:
    """Argument of a tool.

    Attributes
    ----------
    name
        Name in a call.
    option
        Its option in the shell; empty for an argument without one.
    schema
        JSON schema of its values.
    pairs
        True if an object holds values by name; any other object is the content of a file.
    document
        True if a list is the content of a file, too.
    required
        True if the command needs it.
    listed
        True if the schema of the tool has it; a call may have it in any case.
    """

    name: str
    option: str
    schema: Json
    pairs: bool = False
    document: bool = False
    required: bool = False
    listed: bool = True


@dataclass(frozen=True, slots=True)
class Tool:
    """Command as a tool.

    Attributes
    ----------
    name, description
        Name and description of the command.
    arguments
        Its arguments.
    own
        Further arguments, which the command does not have: ``PICTURE``, ``FIELDS``.
    """

    name: str
    description: str
    arguments: tuple[ToolArgument, ...]
    own: tuple[str, ...]

    @property
    def answers_json(self) -> bool:
        """True if the command answers in JSON."""
        return FIELDS in self.own

    @property
    def schema(self) -> Json:
        """JSON schema of the arguments of a call."""
        properties = {argument.name: argument.schema for argument in self.arguments if argument.listed}
        return {
            "type": "object",
            "properties": properties | {name: _OWN[name] for name in self.own},
            "required": [argument.name for argument in self.arguments if argument.required],
        }


def tools(selection: Collection[str] = ()) -> dict[str, Tool]:
    """Return commands as tools, by name: those of the selection, or every command that ends by itself.

    Rarely needed settings, which most commands share, are listed by the first command that has them: an agent reads every
    schema before its first question. The descriptions of the others refer to it.
    """
    app = command_line("all")
    names = [name for name in app if not name.startswith("-") and name not in (*_NOT_TOOLS, "help")]
    for name in selection:
        if name not in names:
            raise UnknownNameError("tool", name, names, field="tools")
    names = [name for name in names if name in (selection or names)]
    result: dict[str, Tool] = {}
    listed: dict[str, str] = {}
    for name in names:
        describe(app, name)
        result[name] = _tool(name, app[name], listed)
    return result


def _tool(name: str, app: Any, listed: dict[str, str]) -> Tool:
    """Return a command as a tool.

    ``listed`` maps each rarely needed setting to the tool that lists it, and receives those that this tool lists.
    """
    settings: Mapping[str, Setting] = app.default_command.settings
    required: Collection[str] = app.default_command.required
    shown = app.assemble_argument_collection(default_parameter=Parameter(negative=()), parse_docstring=True)
    parts = {part.field_info.name: part for part in shown if part.show}
    draws = {"theme", "output"} <= set(settings) and name not in _WITHOUT_PICTURE
    arguments = [
        _argument(part, settings.get(name), required) for name, part in parts.items() if name not in _OF_THE_SHELL
    ]
    folded = [name for name in settings if settings[name].group in FOLDED_GROUPS]
    elsewhere = {listed.setdefault(setting, name) for setting in folded} - {name}
    return Tool(
        name=name,
        description=as_arguments(
            "\n\n".join([app.help or "", *(_FURTHER.format(tool=tool) for tool in sorted(elsewhere))]), arguments
        ),
        arguments=tuple(replace(argument, listed=listed.get(argument.name, name) == name) for argument in arguments),
        own=(*((PICTURE,) if draws else ()), *((FIELDS,) if "json" in parts else ())),
    )


def as_arguments(text: str, arguments: Iterable[ToolArgument]) -> str:
    """Return a text about a command with the names of arguments in the place of the options of the shell."""
    names = {argument.option: argument.name for argument in arguments}
    return re.sub(r"--[a-z0-9-]+", lambda option: names.get(option[0], option[0]), text)


_FURTHER = "Takes all settings that the tool `{tool}` lists, as arguments or within `config`."


def _argument(part: Any, setting: Setting | None, required: Collection[str]) -> ToolArgument:
    """Return an argument of a command: an option with its setting, or what its type declares."""
    schema = _form_of_type(part.hint, part.index is not None) if setting is None else _form_of(setting)
    return ToolArgument(
        name=part.field_info.name,
        option=next((name for name in part.names if name.startswith("-")), ""),
        schema=schema | {"description": " ".join((part.parameter.help or "").split())},
        pairs=setting is not None and setting.kind == "pairs",
        document=setting is not None and setting.kind in _DOCUMENTS,
        required=part.required or part.field_info.name in required,
    )


def _form_of(setting: Setting) -> Json:
    """Return the JSON schema of a setting's values."""
    forms = _IN_BYTES[setting.kind] if setting.in_bytes else _FORMS[setting.kind]
    if setting.range is not None:
        bounds = {"exclusiveMinimum" if setting.range.open else "minimum": setting.range.least}
        bounds |= {} if setting.range.most is None else {"maximum": setting.range.most}
        forms = tuple(form | bounds if form["type"] in ("number", "integer") else form for form in forms)
    if setting.kind == "choice":
        forms = (_TEXT | {"enum": list(setting.choices)},)
    return _one_of(forms)


def _form_of_type(hint: Any, by_place: bool) -> Json:
    """Return the JSON schema of a type; a path, and a text without an option, may be a file."""
    origin, inner = get_origin(hint), [part for part in get_args(hint) if part not in (NoneType, ...)]
    if origin is Literal:
        return _TEXT | {"enum": inner}
    if origin is tuple:
        return _list_of(_form_of_type(inner[0], by_place))
    if inner:
        return _form_of_type(inner[-1], by_place)  # the last of a union is the widest
    if hint is Path or (hint is str and by_place):
        return _one_of(_FILE)
    return {int: _WHOLE, float: _NUMBER, bool: _FLAG}.get(hint, _TEXT)


def words_of(tool: Tool, call: Mapping[str, Any], folder: Path) -> list[str]:
    """Return a call as the words of a command line.

    Parameters
    ----------
    tool
        Command.
    call
        Values by the names of the tool's arguments; None stands for a missing one. An object, or a list that the shell reads
        from a file, becomes a file: ``{"name": ..., "text": ...}`` one with this name and content, any other value a JSON
        document.
    folder
        Empty folder for these files.
    """
    names = {argument.name for argument in tool.arguments} | set(tool.own)
    for name in call:
        if name not in names:
            raise UnknownNameError("argument", name, names, field=name)
    options: list[str] = []
    places: list[str] = []
    for argument in tool.arguments:
        value = call.get(argument.name)
        if value is None and argument.required:
            raise InputError(f"missing: {argument.name}", field=argument.name)
        if value is None or value is False:
            continue
        if isinstance(value, list) and not any(form["type"] == "array" for form in _forms(argument.schema)):
            raise InputError(f"{argument.name} takes one value, not a list of {len(value)}", field=argument.name)
        texts = list(_texts(argument, value, folder))
        if not argument.option:
            places += texts
        else:
            options += [argument.option] if value is True else [f"{argument.option}={text}" for text in texts]
    return [tool.name, *options, *(["--", *places] if places else [])]


def _texts(argument: ToolArgument, value: Any, folder: Path) -> Iterator[str]:
    """Yield the words of a value: one, or one for each item of a list."""
    if isinstance(value, list) and not argument.document:
        for item in value:
            if isinstance(item, list):
                raise InputError(f"{argument.name}: a list within a list", field=argument.name)
            yield from _texts(argument, item, folder)
    elif isinstance(value, dict) and argument.pairs:
        for name, item in value.items():
            yield f"{name}={','.join(_texts(argument, item, folder))}"
    elif isinstance(value, dict | list):
        yield str(_file_of(argument, value, folder))
    elif isinstance(value, float) and value.is_integer():
        yield str(int(value))
    elif isinstance(value, str):
        if "\0" in value:
            raise InputError(f"{argument.name} holds a null character", field=argument.name)
        yield value
    else:
        yield json.dumps(value)


_CONTENT = {"name", "text"}


def _file_of(argument: ToolArgument, content: Json | list[Any], folder: Path) -> Path:
    """Write the content of a file into the folder, and return its path."""
    name, text = f"{argument.name}.json", json.dumps(content)
    if (
        isinstance(content, dict)
        and content.keys() == _CONTENT
        and all(isinstance(part, str) for part in content.values())
    ):
        name, text = content["name"], content["text"]
        if Path(name).name != name or not name.isprintable() or name in ("", ".", ".."):
            shown = shortened(repr(name), 60)
            raise InputError(f"{argument.name}: a file's name has no folder, unlike {shown}", field=argument.name)
    path = folder / name
    if path.exists():
        raise InputError(f"{argument.name}: two files have the name {name}", field=argument.name)
    path.write_text(text, encoding="utf-8")
    return path


def parts_of(document: Json, paths: list[str]) -> Json:
    """Return the parts of an answer at these paths, such as ``results.makespan``; a list stands for all of its items.

    Raises
    ------
    UnknownNameError
        If the answer has nothing at a path; the message suggests where it has this name, or the most similar one.
    """
    if not paths:
        return document
    split = [path.split(".") for path in paths]
    for names in split:
        _require_path(document, names)
    result: Json = _parts(document, split)
    return result


def _require_path(document: Json, names: list[str]) -> None:
    """Raise UnknownNameError unless an item of each level has the next name, or all items are null."""
    level: list[Any] = [document]
    for depth, name in enumerate(names):
        while any(isinstance(item, list) for item in level):
            level = [part for item in level for part in (item if isinstance(item, list) else [item])]
        records = [item for item in level if isinstance(item, dict)]
        if any(item is not None for item in level) and not any(name in record for record in records):
            elsewhere = [path for path in _paths(document) if path.endswith(f".{name}")]
            here = {".".join((*names[:depth], field)) for record in records for field in record}
            raise UnknownNameError("field", ".".join(names), elsewhere[:1] or here or document, field=FIELDS)
        level = [record[name] for record in records if name in record]


def _paths(value: Any, above: str = "") -> Iterator[str]:
    """Yield the path of every part of an answer, once for each item of a list."""
    if isinstance(value, list):
        for item in value:
            yield from _paths(item, above)
    elif isinstance(value, dict):
        for name, part in value.items():
            yield f"{above}{name}"
            yield from _paths(part, f"{above}{name}.")


def _parts(value: Any, paths: list[list[str]]) -> Any:
    if isinstance(value, list):
        return [_parts(item, paths) for item in value]
    if not isinstance(value, dict) or [] in paths:
        return value
    return {
        name: _parts(value[name], [path[1:] for path in paths if path[0] == name])
        for name in dict.fromkeys(path[0] for path in paths)
        if name in value
    }
