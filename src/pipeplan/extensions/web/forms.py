"""Forms of the pages: fields from the declarations of options, in their groups, and the colours of a plan's bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, Field

from pipeplan.costs import FOLDED_GROUPS, GROUPS, SETTINGS, Setting, SettingKind, table_of
from pipeplan.drawing import DARK, LIGHT, MEMORY_PARTS, TIME_PARTS, Like
from pipeplan.extensions.planning import GpuMemory, StepTime
from pipeplan.extensions.planning.answers.options import PlanOptions
from pipeplan.extensions.planning.answers.presets import gpus, models
from pipeplan.extensions.review.answers.review import ReviewOptions
from pipeplan.extensions.web.requests import REVIEWED
from pipeplan.foundation.records import Record, titles_of

_NODES = 8
"""Number of nodes of suggested clusters."""


class FieldOut(BaseModel):
    """A setting as a field of a form."""

    name: str
    kind: SettingKind
    title: str
    group: str
    unit: str
    help: str
    default: str = Field(description="Default, in a word or two.")
    hint: str
    choices: list[str] = Field(description="Allowed words, the default first.")
    slider: tuple[float, float, float] | None = Field(description="From, to and step.")
    follows: list[tuple[str, float]] = Field(
        description="Settings from which the default follows: the first that has a value, times its factor."
    )
    only_with: tuple[str, str] | None = Field(
        default=None,
        description="Another setting, and the value of it with which this one applies; null if it always applies.",
    )
    suggestions: list[str] = Field(default=[], description="Common values.")


class GroupOut(BaseModel):
    """A group of fields."""

    name: str
    title: str
    open: bool = Field(description="Whether its fields are always visible.")


class FormOut(BaseModel):
    """All groups and fields, in their order."""

    groups: list[GroupOut]
    fields: list[FieldOut]


class ShareOut(BaseModel):
    """A part of a bar."""

    key: str = Field(description="Key in `breakdown`, without its unit.")
    title: str
    light: str = Field(description="Its colour on a light page.")
    dark: str


class PlanFormOut(FormOut):
    """All groups and fields of a plan, and the parts of its bars of time and memory."""

    time: list[ShareOut]
    memory: list[ShareOut]


def form() -> FormOut:
    """Return the form of all settings of shape and costs."""
    settings = [setting for setting in SETTINGS.values() if setting.in_form]
    return FormOut(groups=_groups(settings), fields=[_field(setting) for setting in settings])


def plan_form() -> PlanFormOut:
    """Return the form of all options of a plan."""
    settings = [setting for setting in table_of(PlanOptions).values() if setting.in_form]
    return PlanFormOut(
        groups=_groups(settings),
        fields=_with_suggestions(settings),
        time=_shares(StepTime, TIME_PARTS),
        memory=_shares(GpuMemory, MEMORY_PARTS),
    )


def review_form() -> FormOut:
    """Return the form of the options of a review."""
    table = table_of(ReviewOptions)
    settings = [table[name] for name in REVIEWED]
    return FormOut(groups=_groups(settings), fields=_with_suggestions(settings))


def _with_suggestions(settings: Iterable[Setting]) -> list[FieldOut]:
    suggestions = {
        "model": [model.name for model in models()],
        "cluster": [f"{sheet.gpu.name}:{sheet.node.per_node}x{_NODES}" for sheet in gpus()],
    }
    return [_field(setting, suggestions.get(setting.name, ())) for setting in settings]


def _groups(settings: Iterable[Setting]) -> list[GroupOut]:
    groups = {setting.group for setting in settings}
    return [
        GroupOut(name=name, title=title, open=name not in FOLDED_GROUPS)
        for name, title in GROUPS.items()
        if name in groups
    ]


def _field(setting: Setting, suggestions: Iterable[str] = ()) -> FieldOut:
    return FieldOut(
        name=setting.name,
        kind="text" if setting.kind == "object" else setting.kind,
        title=setting.title,
        group=setting.group,
        unit=setting.unit,
        help=setting.help,
        default=setting.default,
        hint=setting.hint or ("Bytes, or a size such as 2GiB." if setting.in_bytes else ""),
        choices=list(setting.choices),
        slider=setting.slider,
        follows=list(setting.follows),
        only_with=setting.only_with,
        suggestions=list(suggestions),
    )


def _shares(record: type[Record], parts: Mapping[str, Like]) -> list[ShareOut]:
    titles = titles_of(record)
    return [
        ShareOut(key=key, title=titles[key], light=LIGHT.part(like), dark=DARK.part(like))
        for key, like in parts.items()
    ]
