"""Requests of the web app as JSON: records with the options of their declarations, which check each value."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta

from pipeplan.answers import AllowOptions, all_formats
from pipeplan.costs import (
    SETTINGS,
    Options,
    Range,
    Setting,
    SettingKind,
    Settings,
    check_value,
    settings_given,
    table_of,
)
from pipeplan.extensions.web.editing.edit_texts import EditedShape
from pipeplan.extensions.web.faults import plain
from pipeplan.extensions.web.records import Fault
from pipeplan.foundation.errors import PipeplanError, UnknownNameError
from pipeplan.trainers import with_stage_layers

FILE_LIMIT = 8 << 20
"""Maximum size of an uploaded file in bytes."""

MOST_SECONDS = 60.0
"""Maximum time budget of a plan, a search or a Pareto front on this server."""

_MOST_UNKNOWN = 20
"""Maximum number of unknown names of a request that are reported one by one."""

Name = Annotated[str, Meta(min_length=1, max_length=80)]

# Types of options.

_LongList = Meta(min_length=1, max_length=20_000)
_Numbers = Annotated[list[float], _LongList]
_Sizes = Annotated[list[float | str], _LongList]
_Counts = Annotated[list[int], _LongList]
_Tables = Annotated[list[float | Annotated[list[float], _LongList]], _LongList]

_TYPES: dict[SettingKind, Any] = {
    "count": int,
    "number": float,
    "per_stage": float | _Numbers,
    "pair_times": float | _Tables,
    "segments": dict[str, Any] | Annotated[list[dict[str, Any]], _LongList],
    "choice": str,
    "name": str,
    "text": str,
    "flag": bool,
    "limit": float | str | _Sizes,
    "stages": str | list[int],
    "layers": Annotated[list[dict[str, Any]], _LongList],
    "layout": _Counts,
    "stage_layers": str | _Counts,
    "per_microbatch": _Tables | dict[str, _Tables],
    "lengths": _Tables,
    "size": float | str,
    "duration": float | str,
    "pairs": str | list[str],
    "names": list[str],
    "schedules": Annotated[list[Name], Meta(max_length=4)],
    "file": str,
    "object": str,
}
"""Types of the kinds of options in JSON."""


def _type_of(setting: Setting) -> Any:
    if setting.in_bytes:
        return float | str | _Sizes if setting.kind == "per_stage" else float | str
    return _TYPES[setting.kind]


def schema_of(setting: Setting, default: Any = None) -> dict[str, Any]:
    """Return the JSON schema of an option."""
    schema = msgspec.json.schema(_type_of(setting))
    forms = schema.pop("anyOf", None) or [schema]
    bounds: dict[str, Any] = {}
    if setting.range is not None:
        bounds["exclusiveMinimum" if setting.range.open else "minimum"] = float(setting.range.least)
        bounds |= {} if setting.range.most is None else {"maximum": float(setting.range.most)}
    choices = list(setting.choices)
    words = {"const": choices[0]} if len(choices) == 1 else {"enum": choices} if choices else {}
    for form in forms:
        if form["type"] in ("number", "integer"):
            form.update(bounds)
        elif form["type"] == "string" and setting.kind == "choice":
            form.update(words)
        elif setting.kind == "names":
            form["items"].update(words)
    about = {"title": setting.title, "description": setting.full_help, "default": default}
    return {"anyOf": [*forms, {"type": "null"}], **about}


def option_faults(values: Mapping[str, Any], table: Mapping[str, Setting]) -> Iterator[Fault]:
    """Yield the fault of each option, by the check of its declaration: the sentence is that of the shell."""
    if len(values) > len(table) + _MOST_UNKNOWN:
        yield Fault(field="", message=f"has {len(values):,} names, of which at most {len(table)} are known")
        return
    for name, value in values.items():
        try:
            if name not in table:
                yield Fault(field=plain(name, 60), message="is an unknown name")
            elif value is not None:
                _check(table[name], value)
        except msgspec.ValidationError as error:
            yield _fault_of(str(error), name)
        except PipeplanError as error:
            yield Fault(field=name, message=plain(str(error)))


def _check(setting: Setting, value: Any) -> None:
    value = setting.spelled(value)
    msgspec.convert(value, _type_of(setting))
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and len(text) > setting.longest and setting.kind != "schedules":
            raise msgspec.ValidationError(f"Expected `str` of length <= {setting.longest}")
    if setting.in_bytes or setting.kind in ("layers", "per_microbatch", "segments"):
        value = settings_given({setting.name: value})[setting.name]
    if setting.kind == "names" and len(value) > len(setting.choices):
        raise msgspec.ValidationError(f"Expected `array` of length <= {len(setting.choices)}")
    if setting.kind != "schedules":  # a name here is never a file
        check_value(setting, value)


# Reading a request.


class RequestError(Exception):
    """An invalid request, with its faults."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(faults)
        self.faults = faults


class RequestRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of requests: an unknown name is an error."""

    named: ClassVar[Mapping[str, Setting]] = {}
    """Options that it holds as ``settings``."""

    options: ClassVar[Mapping[str, Setting]] = {}
    """Options that are its fields."""

    def faults(self) -> Iterator[Fault]:
        """Yield the faults of its options."""
        yield from option_faults(getattr(self, "settings", {}), self.named)
        yield from option_faults({name: getattr(self, name) for name in self.options}, self.options)


_Request = TypeVar("_Request", bound=RequestRecord)


def parsed(record: type[_Request], body: bytes | str) -> _Request:
    """Return a request. Raises RequestError with its faults."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise RequestError(Fault(field="", message="the request is not JSON")) from None
    names = record.__struct_fields__
    unknown = [name for name in document if name not in names] if isinstance(document, dict) else []
    if len(unknown) > _MOST_UNKNOWN:
        message = f"has {len(document):,} names, of which at most {len(names)} are known"
        raise RequestError(Fault(field="", message=message))
    faults = [Fault(field=plain(name, 60), message="is an unknown name") for name in unknown]
    known = {name: document[name] for name in document if name in names} if isinstance(document, dict) else document
    try:
        request = msgspec.convert(known, record)
    except msgspec.ValidationError as error:
        raise RequestError(_fault_of(str(error)), *faults) from None
    if faults := [*request.faults(), *faults]:
        raise RequestError(*faults)
    return request


_WORDS = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "array": "a list"}
_SENTENCES = (
    (r"Object missing required field `(?P<name>\w+)`", "is missing"),
    (r"Object contains unknown field `(?P<name>.*?)`", "is an unknown name"),
    (r"Expected `(?:str|array)` of length >= 1\b", "is empty"),
    (r"Expected `str` of length <= (\d+)", "must have at most {} characters"),
    (r"Expected `array` of length <= (\d+)", "must have at most {} values"),
    (r"Expected `\w+` >= (\S+)", "must be at least {}"),
    (r"Expected `\w+` <= (\S+)", "must be at most {}"),
)
"""Messages of msgspec, and the sentences of the app."""


def _fault_of(message: str, option: str = "") -> Fault:
    """Return msgspec's message as a fault: of an option, or of the field that the message names."""
    text, _, path = message.partition(" - at `$")
    field = option or next(iter(re.findall(r"\.(\w+)", path.removeprefix(".settings"))), "")
    place = re.search(r"\[(\d+)\]", path)
    where = f"value {int(place[1]) + 1}: " if place and option in SETTINGS else ""
    for pattern, sentence in _SENTENCES:
        if match := re.match(pattern, text):
            named = match.groupdict().get("name")
            return Fault(field=field or named or "", message=plain(where + sentence.format(*match.groups())))
    expected = re.match(r"Expected `(?:object \| )?(\w+)", text)
    words = _WORDS.get(expected[1], "a group of names and values") if expected else ""
    return Fault(field=field, message=plain(where + (f"must be {words}" if words else text)))


# Requests about schedules.


def served(record: type[Options], names: Iterable[str], **limits: Mapping[str, Any]) -> dict[str, Setting]:
    """Return options of a record; ``limits`` are what this server allows of them, by the fields of :class:`Setting`."""
    table = table_of(record)
    return {name: dataclasses.replace(table[name], **limits.get(name, {})) for name in names}


SECONDS = {"range": Range(0, open=True, most=MOST_SECONDS)}
"""Limit of this server for the option ``seconds``."""


def of_schema(name: str, about: str) -> Meta:
    """Return the description of a field whose schema is declared under a name."""
    return Meta(description=about, extra_json_schema={"$ref": f"#/components/schemas/{name}"})


SettingsIn = Annotated[dict[str, Any], of_schema("SettingsIn", "Shape and costs, by the names of the command line.")]


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not null."""
    return {name: value for name, value in values.items() if value is not None}


class FileIn(RequestRecord, frozen=True, kw_only=True):
    """An uploaded file: a schedule as PyTorch's CSV or pipeplan's JSON, or a model's config.json."""

    name: Annotated[Name, Meta(description="With its suffix, .csv or .json; without one it is pipeplan's JSON.")]
    text: Annotated[str, Meta(max_length=FILE_LIMIT)]


class SettingsRequest(RequestRecord, frozen=True, kw_only=True):
    """Base of requests with shape and costs, whose missing names have their defaults."""

    named = SETTINGS

    settings: SettingsIn = {}

    def costs(self) -> Settings:
        """Return the settings of the workbench."""
        return with_stage_layers(Settings(**given(self.settings)))


class SchedulesIn(SettingsRequest, frozen=True, kw_only=True):
    """Schedules on the same ranks and costs."""

    options = served(AllowOptions, ("allow",))

    schedules: Annotated[list[Name], Meta(max_length=64, description="Names; without any and files, all.")] = []
    files: Annotated[list[FileIn], Meta(max_length=8, description="Further schedules, as files.")] = []
    allow: list[str] | None = None


class CompareIn(SchedulesIn, frozen=True, kw_only=True):
    """Schedules to compare, and those to draw."""

    draw: Annotated[list[Name], Meta(max_length=8, description="Names; null: the fastest.")] | None = None
    reasons: Annotated[bool, Meta(description="Add to the timeline why ranks idle.")] = False


class DrawIn(SchedulesIn, frozen=True, kw_only=True):
    """Schedules to draw: all of the request, in its order."""

    reasons: Annotated[bool, Meta(description="Add to the timeline why ranks idle.")] = False


class ExplainIn(SchedulesIn, frozen=True, kw_only=True):
    """Schedule to explain: the only one of ``schedules`` and ``files``."""


_FORMATS = tuple(format.name for format in all_formats().values() if format.writers)


class DownloadIn(SchedulesIn, frozen=True, kw_only=True):
    """File to download: one schedule, or several as a picture or JSON."""

    format: Annotated[
        str, Meta(description="Format of `pipeplan export`, or a picture.", extra_json_schema={"enum": _FORMATS})
    ]

    def faults(self) -> Iterator[Fault]:
        """Yield its faults, also that of its format."""
        yield from super().faults()
        if self.format not in _FORMATS:
            yield Fault(field="format", message=str(UnknownNameError("format", self.format, _FORMATS)))


# Requests about an edited schedule.

TEXT_LIMIT = 4 << 20
"""Maximum length of an edited text."""

_MOST_STAGES = 20_000
_Text = Annotated[str, Meta(max_length=TEXT_LIMIT)]
_Ranks = Annotated[list[int], Meta(min_length=1, max_length=_MOST_STAGES)]


class EditShapeIn(RequestRecord, frozen=True, kw_only=True):
    """Shape of an edited schedule, as answered when the edit began."""

    placement: Annotated[list[_Ranks], Meta(min_length=1, max_length=64, description="Rank of each stage, by copy.")]
    microbatches: Annotated[int, Meta(ge=1, le=10**7)]
    slices: Annotated[int, Meta(ge=1, le=32_768)] = 1

    def shape(self) -> EditedShape:
        """Return the shape for the workbench. Raises ShapeError for ranks that no placement has."""
        shape = EditedShape(tuple(map(tuple, self.placement)), self.microbatches, self.slices)
        shape.placement  # noqa: B018 - raises for ranks that no placement has
        return shape


class EditIn(SettingsRequest, frozen=True, kw_only=True):
    """Text of an edited schedule, to validate and simulate; its shape is the text's."""

    name: Name = "edited"
    rows: Annotated[_Text, Meta(description="One line per rank, ops separated by spaces.")]
    shape: Annotated[EditShapeIn, Meta(description="Null: derived from the text.")] | None = None
    before: Annotated[_Text, Meta(description="Rows before the last change, to describe its effect.")] | None = None
    draw: Annotated[bool, Meta(description="Answer the timeline, too.")] = True


def request_schemas(
    requests: Iterable[type[RequestRecord]], options: Mapping[str, Mapping[str, Setting]], ref: str
) -> dict[str, Any]:
    """Return the JSON schemas of requests, with what their options declare.

    ``options`` are those that requests hold as ``settings``, by the name of their schema.
    """
    _, schemas = msgspec.json.schema_components(requests, ref_template=ref)
    for record in requests:
        properties = schemas[record.__name__]["properties"]
        for name, setting in record.options.items():
            properties[name] = schema_of(setting, properties[name].get("default"))
    for title, table in options.items():
        properties = {name: schema_of(setting) for name, setting in table.items()}
        schemas[title] = {"title": title, "type": "object", "properties": properties, "additionalProperties": False}
    return schemas
