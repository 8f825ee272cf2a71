"""What the page's form is made of: the fields of the settings, in their groups."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, Field

from pipeplan.costs import GROUPS, SETTINGS, Setting, SettingKind

_OPEN = ("shape", "times")
"""The groups that always show."""


class FieldOut(BaseModel):
    """A setting as a field of a form."""

    name: str
    kind: SettingKind
    title: str
    group: str
    unit: str
    help: str
    default: str = Field(description="What holds where nobody says, in a word or two.")
    hint: str
    choices: list[str] = Field(description="The words that it can be, its default first.")
    slider: tuple[float, float, float] | None = Field(description="From, to and step.")
    follows: list[tuple[str, float]] = Field(
        description="Settings whose value it takes where nobody says, the first that is given, each times a factor."
    )
    suggestions: list[str] = Field(default=[], description="Values that people often give.")


class GroupOut(BaseModel):
    """A group of fields."""

    name: str
    title: str
    open: bool = Field(description="Whether its fields always show.")


class FormOut(BaseModel):
    """All groups and fields, in their order."""

    groups: list[GroupOut]
    fields: list[FieldOut]


def form() -> FormOut:
    """The form, made from the table of settings."""
    return FormOut(
        groups=[GroupOut(name=name, title=title, open=name in _OPEN) for name, title in GROUPS.items()],
        fields=[field_of(setting) for setting in SETTINGS.values() if setting.in_form],
    )


def field_of(setting: Setting, suggestions: Iterable[str] = ()) -> FieldOut:
    """A setting's field."""
    return FieldOut(
        name=setting.name,
        kind=setting.kind,
        title=setting.title,
        group=setting.group,
        unit=setting.unit,
        help=setting.help,
        default=setting.default,
        hint=setting.hint,
        choices=list(setting.choices),
        slider=setting.slider,
        follows=list(setting.follows),
        suggestions=list(suggestions),
    )
