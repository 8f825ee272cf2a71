"""What the web app can be asked: the settings as JSON, made from their table, and the questions about schedules."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, create_model, model_validator
from pydantic_core import PydanticCustomError

from pipeplan.api import all_formats
from pipeplan.costs import SETTINGS, Layer, Setting, SettingKind, Settings, merged, settings_given
from pipeplan.errors import PipeplanError

FILE_LIMIT = 8 << 20
"""The most bytes that an uploaded file can have."""

_LONGEST_LIST = 20_000

_MOST_UNKNOWN = 20
"""Unknown names of a request that are told one by one."""


class Strict(BaseModel):
    """Numbers are numbers, and an unknown key is an error."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _few_unknown_names(cls, given: Any) -> Any:
        """Refuse many unknown names at once: each of a few is told, and a million of them would take seconds to tell."""
        if isinstance(given, dict) and len(given) > len(cls.model_fields) + _MOST_UNKNOWN:
            raise PydanticCustomError(
                "names", f"has {len(given):,} names, of which at most {len(cls.model_fields)} are known"
            )
        return given


def _layer_field(field: dataclasses.Field[Any]) -> Any:
    """A number of a layer; null stands for what nobody said."""
    whole = isinstance(field.default, int) and not isinstance(field.default, float)
    return (Annotated[int if whole else float, Field(ge=0)] | None, None)


_LAYER: dict[str, Any] = {field.name: _layer_field(field) for field in dataclasses.fields(Layer)}
LayerIn: Any = create_model("LayerIn", __base__=Strict, __doc__="Costs of a layer.", **_LAYER)


def _form(value: Any) -> str:
    return "list" if isinstance(value, list) else "text" if isinstance(value, str) else "number"


def _either(**forms: Any) -> Any:
    """One of a few forms of JSON; the error of a wrong value is that of the form it has, or of the first."""
    first = next(iter(forms))
    union: Any = None
    for name, form in forms.items():
        tagged = _tagged(form, name)
        union = tagged if union is None else union | tagged
    return Annotated[union, Discriminator(lambda value: found if (found := _form(value)) in forms else first)]


def _tagged(form: Any, name: str) -> Any:
    return Annotated[form, Tag(name)]


def _list_of(each: Any, least: int = 1) -> Any:
    """The first value that is wrong is told, and no other: thousands of them would keep everybody waiting."""
    return Annotated[list[each], Field(min_length=least, max_length=_LONGEST_LIST, fail_fast=True)]


def _number(setting: Setting, kind: type) -> Any:
    """A number whose range stands in the description; it is checked with the setting as a whole."""
    held = setting.range
    bounds: dict[str, Any] = {}
    if held is not None:
        bounds["exclusiveMinimum" if held.open else "minimum"] = held.least
        bounds |= {} if held.most is None else {"maximum": held.most}
    return Annotated[kind, Field(json_schema_extra=bounds)]


def _type(setting: Setting) -> Any:
    """The type of a setting's JSON."""
    text = Annotated[str, Field(max_length=setting.longest)]
    number = _number(setting, float)
    types: dict[SettingKind, Any] = {
        "count": _number(setting, int),
        "number": _either(number=number, text=text) if setting.in_bytes else number,
        "per_stage": _sizes(number, text) if setting.in_bytes else _either(number=number, list=_list_of(number)),
        "choice": Literal[setting.choices or ("",)],
        "text": text,
        "flag": bool,
        "limit": _either(number=number, text=text, list=_list_of(float | text)),
        "stages": _either(text=text, list=_list_of(int, least=0)),
        "layers": _list_of(LayerIn),
        "layout": _list_of(int),
        "size": _either(number=number, text=text),
        "pairs": _either(text=text, list=_list_of(text, least=0)),
        "file": text,
        "object": text,
    }
    return types[setting.kind]


def _sizes(number: Any, text: Any) -> Any:
    """Bytes, or texts with a unit: one, or one per stage."""
    return _either(number=number, text=text, list=_list_of(float | text))


def _checked(setting: Setting) -> AfterValidator:
    """The setting's own check, whose sentence is then the same as everywhere."""

    def check(value: Any) -> Any:
        try:
            if setting.in_bytes and value is not None:
                value = settings_given({setting.name: value})[setting.name]
            setting.check(value)
        except PipeplanError as error:
            raise PydanticCustomError("setting", "{message}", {"message": str(error)}) from None
        return value

    return AfterValidator(check)


def setting_field(setting: Setting) -> tuple[Any, Any]:
    """A setting as a field of a request; null stands for what nobody said."""
    return Annotated[_type(setting) | None, _checked(setting)], Field(default=None, description=setting.full_help)


_FIELDS: dict[str, Any] = {setting.name: setting_field(setting) for setting in SETTINGS.values()}
_GivenSettings: Any = create_model("_GivenSettings", __base__=Strict, **_FIELDS)


class SettingsIn(_GivenSettings):  # type: ignore[misc]
    """Shape and costs, by the names of the command line; what is left out has its default."""

    def settings(self) -> Settings:
        """The same for the workbench."""
        # Checked values are tuples where JSON has lists, of which pydantic would warn.
        return merged({}, settings_given(self.model_dump(exclude_none=True, warnings=False)))


Name = Annotated[str, Field(min_length=1, max_length=80)]


class FileIn(Strict):
    """A file that somebody dropped: a schedule as PyTorch's CSV or pipeplan's JSON; a model's config.json."""

    name: Name = Field(description="With its ending, .csv or .json; without one it is pipeplan's JSON.")
    text: Annotated[str, Field(max_length=FILE_LIMIT)]


class Question(Strict):
    """Schedules on the same ranks and costs."""

    settings: SettingsIn = SettingsIn()
    schedules: list[Name] = Field(
        default=[], max_length=64, description="Names; none, and no files: all that there are."
    )
    files: list[FileIn] = Field(default=[], max_length=8, description="Schedules of one's own beside them.")


class CompareIn(Question):
    """Which schedules to compare, and which of them to draw."""

    draw: list[Name] | None = Field(
        default=None,
        max_length=8,
        description="Names; the best one where nothing is said, or none of these can be had.",
    )
    reasons: bool = Field(default=False, description="Whether the timeline holds why ranks idle.")


class ExplainIn(Question):
    """Which schedule to explain: the only one of ``schedules`` and ``files``."""


_FormatName: Any = Literal[tuple(each.name for each in all_formats().values() if each.writers)]


class DownloadIn(Question):
    """What to download: one schedule, or for pictures and JSON several."""

    format: _FormatName = Field(description="As of `pipeplan export`, or a picture.")
