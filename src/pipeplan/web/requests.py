"""Requests of the web app as JSON: options have the names, types, ranges and descriptions of their declarations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from pipeplan.api import AllowOptions, EditedShape, all_formats
from pipeplan.api.planning.options import PlanOptions
from pipeplan.api.reviewing.review import ReviewOptions
from pipeplan.api.searching.options import AUTO, ParetoOptions, SearchOptions
from pipeplan.api.searching.problems import DEFAULT_CHUNKS
from pipeplan.costs import (
    SETTINGS,
    FactorTables,
    Layer,
    Options,
    Range,
    Role,
    Setting,
    SettingKind,
    Settings,
    settings_given,
    table_of,
)
from pipeplan.errors import PipeplanError
from pipeplan.solver import CHOICES
from pipeplan.trainers import with_stage_layers

FILE_LIMIT = 8 << 20
"""Maximum size of an uploaded file in bytes."""

MOST_SECONDS = 60.0
"""Maximum time budget of a plan, a search or a Pareto front on this server."""

_LONGEST_LIST = 20_000

_MOST_UNKNOWN = 20
"""Maximum number of unknown names of a request that are reported one by one."""


class Strict(BaseModel):
    """Base of requests: numbers must be numbers, and an unknown key is an error."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _few_unknown_names(cls, values: Any) -> Any:
        """Refuse many unknown names at once: reporting a million of them one by one would take seconds."""
        if isinstance(values, dict) and len(values) > len(cls.model_fields) + _MOST_UNKNOWN:
            raise PydanticCustomError(
                "names", f"has {len(values):,} names, of which at most {len(cls.model_fields)} are known"
            )
        return values


# Types of values.


def _layer_field(field: dataclasses.Field[Any]) -> Any:
    if field.name == "role":
        return (Role | None, None)
    whole = isinstance(field.default, int) and not isinstance(field.default, float)
    return (Annotated[int if whole else float, Field(ge=0)] | None, None)


_LAYER: dict[str, Any] = {field.name: _layer_field(field) for field in dataclasses.fields(Layer)}
LayerIn: Any = create_model("LayerIn", __base__=Strict, __doc__="Costs of a layer.", **_LAYER)

Name = Annotated[str, Field(min_length=1, max_length=80)]


def _form_of(value: Any) -> str:
    if isinstance(value, dict):
        return "table"
    return "list" if isinstance(value, list) else "text" if isinstance(value, str) else "number"


def _either(**forms: Any) -> Any:
    """Return a union of forms of JSON; the error of a wrong value is that of the form that it has, or of the first one."""
    first = next(iter(forms))
    union: Any = None
    for name, form in forms.items():
        tagged = _tagged(form, name)
        union = tagged if union is None else union | tagged
    return Annotated[union, Discriminator(lambda value: name if (name := _form_of(value)) in forms else first)]


def _tagged(form: Any, name: str) -> Any:
    return Annotated[form, Tag(name)]


def _list_of(value: Any, least: int = 1) -> Any:
    """Return a list that reports only its first wrong value: reporting thousands would block other requests."""
    return Annotated[list[value], Field(min_length=least, max_length=_LONGEST_LIST, fail_fast=True)]


_FactorTable: Any = _list_of(float | _list_of(float))
_FACTORS: dict[str, Any] = {field.name: (_FactorTable, ...) for field in dataclasses.fields(FactorTables)}
FactorTablesIn: Any = create_model(
    "FactorTablesIn",
    __base__=Strict,
    __doc__="Factors of microbatches, different ones for times and bytes.",
    **_FACTORS,
)


def _number(setting: Setting, kind: type) -> Any:
    """Return a number whose range is in the schema; :func:`_checked` enforces it."""
    bounds: dict[str, Any] = {}
    if setting.range is not None:
        bounds["exclusiveMinimum" if setting.range.open else "minimum"] = setting.range.least
        bounds |= {} if setting.range.most is None else {"maximum": setting.range.most}
    return Annotated[kind, Field(json_schema_extra=bounds)]


def _type(setting: Setting) -> Any:
    text = Annotated[str, Field(max_length=setting.longest)]
    number = _number(setting, float)
    word: Any = Literal[setting.choices or ("",)]
    types: dict[SettingKind, Any] = {
        "count": _number(setting, int),
        "number": _either(number=number, text=text) if setting.in_bytes else number,
        "per_stage": _sizes(number, text) if setting.in_bytes else _either(number=number, list=_list_of(number)),
        "choice": word,
        "name": text,
        "text": text,
        "flag": bool,
        "limit": _either(number=number, text=text, list=_list_of(float | text)),
        "stages": _either(text=text, list=_list_of(int, least=0)),
        "layers": _list_of(LayerIn),
        "layout": _list_of(int),
        "stage_layers": _either(text=text, list=_list_of(int)),
        "per_microbatch": _either(list=_FactorTable, table=FactorTablesIn),
        "lengths": _list_of(float | _list_of(float)),
        "size": _either(number=number, text=text),
        "duration": _either(number=number, text=text),
        "pairs": _either(text=text, list=_list_of(text, least=0)),
        "names": Annotated[list[word], Field(max_length=len(setting.choices))],
        "schedules": Annotated[list[Name], Field(max_length=4)],
        "file": text,
        "object": text,
    }
    return types[setting.kind]


def _sizes(number: Any, text: Any) -> Any:
    return _either(number=number, text=text, list=_list_of(float | text))


def _checked(setting: Setting) -> AfterValidator:
    """Return the setting's own check, so that its error reads the same as in the shell."""

    def check(value: Any) -> Any:
        try:
            if setting.in_bytes and value is not None:
                value = settings_given({setting.name: value})[setting.name]
            if isinstance(value, BaseModel):
                settings_given({setting.name: value.model_dump()})
            elif setting.kind != "schedules":  # a name here is never a file
                setting.check(value)
        except PipeplanError as error:
            raise PydanticCustomError("setting", "{message}", {"message": str(error)}) from None
        return value

    return AfterValidator(check)


def _field(setting: Setting, default: Any = None) -> tuple[Any, Any]:
    """Return a setting as a field of a request; null leaves it to its default."""
    field = Field(default=default, title=setting.title, description=setting.full_help)
    return Annotated[_type(setting) | None, BeforeValidator(setting.spelled), _checked(setting)], field


def _fields(
    record: type[Options],
    *names: str,
    limits: Mapping[str, Mapping[str, Any]] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return options of a record as fields of a request."""
    table = table_of(record)
    served = {name: dataclasses.replace(table[name], **(limits or {}).get(name, {})) for name in names}
    return {name: _field(setting, (defaults or {}).get(name)) for name, setting in served.items()}


# Requests about schedules.

_SETTINGS: dict[str, Any] = {name: _field(setting) for name, setting in SETTINGS.items()}
_Settings: Any = create_model("_Settings", __base__=Strict, **_SETTINGS)


class SettingsIn(_Settings):  # type: ignore[misc]
    """Shape and costs, by the names of the command line; a missing name has its default."""

    def settings(self) -> Settings:
        """Return the settings of the workbench."""
        # Checked values are tuples where JSON has lists, of which pydantic would warn.
        return with_stage_layers(Settings(**self.model_dump(exclude_none=True, warnings=False)))


class FileIn(Strict):
    """An uploaded file: a schedule as PyTorch's CSV or pipeplan's JSON, or a model's config.json."""

    name: Name = Field(description="With its suffix, .csv or .json; without one it is pipeplan's JSON.")
    text: Annotated[str, Field(max_length=FILE_LIMIT)]


_Allowing: Any = create_model("_Allowing", __base__=Strict, **_fields(AllowOptions, "allow"))


class SchedulesIn(_Allowing):  # type: ignore[misc]
    """Schedules on the same ranks and costs."""

    settings: SettingsIn = SettingsIn()
    schedules: list[Name] = Field(
        default=[], max_length=64, description="Names; without names and files, all schedules."
    )
    files: list[FileIn] = Field(default=[], max_length=8, description="Further schedules, as files.")


class CompareIn(SchedulesIn):
    """Schedules to compare, and those to draw."""

    draw: list[Name] | None = Field(
        default=None,
        max_length=8,
        description="Names; null, or names of which none is available, draws the fastest schedule.",
    )
    reasons: bool = Field(default=False, description="Add to the timeline why ranks idle.")


class ExplainIn(SchedulesIn):
    """Schedule to explain: the only one of ``schedules`` and ``files``."""


_FormatName: Any = Literal[tuple(format.name for format in all_formats().values() if format.writers)]


class DownloadIn(SchedulesIn):
    """File to download: one schedule, or several as a picture or JSON."""

    format: _FormatName = Field(description="Format of `pipeplan export`, or a picture.")


# Requests of plans.

_PLAN = [name for name, setting in table_of(PlanOptions).items() if setting.in_form]
_PlanSettings: Any = create_model(
    "_PlanSettings",
    __base__=Strict,
    **_fields(PlanOptions, *_PLAN, limits={"seconds": {"range": Range(0, open=True, most=MOST_SECONDS)}}),
)


class PlanSettingsIn(_PlanSettings):  # type: ignore[misc]
    """Options of a plan, by the names of the command line; a missing name has its default."""


class PlanIn(Strict):
    """Plan to make."""

    settings: PlanSettingsIn = PlanSettingsIn()
    model_file: FileIn | None = Field(
        default=None, description="config.json of a model hub, instead of a model's name."
    )


REVIEWED = ("trainer", "trainer_version", "model", "cluster", "global_batch", "sequence")
"""Options of a review on the page."""

LONGEST_REVIEWED = 1 << 20
"""Maximum length of a configuration to review, in characters."""

_ReviewSettings: Any = create_model("_ReviewSettings", __base__=Strict, **_fields(ReviewOptions, *REVIEWED))


class ReviewSettingsIn(_ReviewSettings):  # type: ignore[misc]
    """Options of a review, by the names of the command line; what is missing is as the configuration says."""


class ReviewIn(Strict):
    """Configuration to review."""

    settings: ReviewSettingsIn = ReviewSettingsIn()
    name: Name = Field(default="pasted", description="Name of the file; its suffix selects the form.")
    content: Annotated[str, Field(min_length=1, max_length=LONGEST_REVIEWED)] = Field(description="Text of the file.")


_DEEPEST = 16
"""Maximum nesting of a configuration; valid ones have four levels."""

_MOST_VALUES = 50_000
"""Maximum number of values of a configuration, layouts included."""


def _small(document: Any) -> Any:
    """Refuse a document with more values or levels than a configuration has: it is copied and sent to a process."""
    level: list[Any] = [document] if isinstance(document, (dict, list)) else []
    values = 0
    for _ in range(_DEEPEST):
        values += sum(map(len, level))
        if values > _MOST_VALUES:
            raise PydanticCustomError("values", f"holds more than {_MOST_VALUES:,} values")
        level = [value for group in level for value in (group.values() if isinstance(group, dict) else group)]
        level = [value for value in level if isinstance(value, (dict, list))]
        if not level:
            return document
    raise PydanticCustomError("depth", f"holds more than {_DEEPEST} nested groups")


class ChosenIn(Strict):
    """Configuration to look at."""

    document: Annotated[dict[str, Any], BeforeValidator(_small)] = Field(
        description="`document` of a plan's answer, or the content of a configuration file."
    )


# Requests of searches.


class _SearchRequest(Strict):
    settings: SettingsIn = SettingsIn()
    session: Annotated[str, Field(max_length=80)] = Field(
        default="", description="Arbitrary text that identifies a page, which has one search at a time."
    )


_SERVED: dict[str, dict[str, Any]] = {
    "placement": {"kind": "choice", "choices": (AUTO, *DEFAULT_CHUNKS)},
    "decide": {"choices": CHOICES},
    "seconds": {"range": Range(0, open=True, most=MOST_SECONDS)},
    "points": {"range": Range(2, most=12)},
}
_SEARCH = ("allow", "placement", "layout", "objective", "seconds", "decide", "start")
_FRONT = ("allow", "placement", "objective", "seconds", "points")
_SearchFields: Any = create_model(
    "_SearchFields",
    __base__=_SearchRequest,
    **_fields(SearchOptions, *_SEARCH, limits=_SERVED, defaults={"seconds": 10.0}),
)
_FrontFields: Any = create_model(
    "_FrontFields",
    __base__=_SearchRequest,
    **_fields(ParetoOptions, *_FRONT, limits=_SERVED, defaults={"seconds": 30.0, "points": 6}),
)


class SearchIn(_SearchFields):  # type: ignore[misc]
    """Search for a better schedule under the memory limit of its settings."""

    files: list[FileIn] = Field(default=[], max_length=4, description="Further schedules to start from, as files.")

    def options(self) -> dict[str, Any]:
        """Return the keywords of a search."""
        return _given(self, _SEARCH)


class FrontIn(_FrontFields):  # type: ignore[misc]
    """Search under each of several memory limits, and without a limit."""

    def options(self) -> dict[str, Any]:
        """Return the keywords of a Pareto front."""
        return _given(self, _FRONT)


def _given(request: BaseModel, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(request, name)) is not None}


# Requests about an edited schedule.

TEXT_LIMIT = 4 << 20
"""Maximum length of an edited text."""

_MOST_STAGES = 20_000
_Text = Annotated[str, Field(max_length=TEXT_LIMIT)]
_Ranks = Annotated[list[int], Field(min_length=1, max_length=_MOST_STAGES, fail_fast=True)]


class EditShapeIn(Strict):
    """Shape of an edited schedule, as answered when the edit began."""

    placement: Annotated[list[_Ranks], Field(min_length=1, max_length=64)] = Field(
        description="Rank of each stage, for each copy of the model."
    )
    microbatches: Annotated[int, Field(ge=1, le=10**7)]
    slices: Annotated[int, Field(ge=1, le=32_768)] = 1

    def shape(self) -> EditedShape:
        """Return the shape for the workbench. Raises ShapeError for ranks that no placement has."""
        shape = EditedShape(tuple(map(tuple, self.placement)), self.microbatches, self.slices)
        shape.placement  # noqa: B018 - raises for ranks that no placement has
        return shape


class EditIn(Strict):
    """Text of an edited schedule, to validate and simulate."""

    settings: SettingsIn = Field(default=SettingsIn(), description="Costs and memory limit; the shape is the text's.")
    name: Name = "edited"
    rows: _Text = Field(description="One line per rank, ops separated by spaces.")
    shape: EditShapeIn | None = Field(default=None, description="Null: derived from the text.")
    before: _Text | None = Field(default=None, description="Rows before the last change, to describe its effect.")
    draw: bool = Field(default=True, description="Answer the timeline, too.")
