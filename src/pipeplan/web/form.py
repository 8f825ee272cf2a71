"""What the page's form is made of: the fields of the settings, in their groups."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, Field

from pipeplan.costs import FOLDED_GROUPS, GROUPS, SETTINGS, Setting, SettingKind


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
    """Return the form of all settings."""
    settings = [setting for setting in SETTINGS.values() if setting.in_form]
    return FormOut(groups=groups_of(settings), fields=[field_of(setting) for setting in settings])


def groups_of(settings: Iterable[Setting]) -> list[GroupOut]:
    """Return the groups of these settings, in the order of the documentation."""
    groups = {setting.group for setting in settings}
    return [
        GroupOut(name=name, title=title, open=name not in FOLDED_GROUPS)
        for name, title in GROUPS.items()
        if name in groups
    ]


def field_of(setting: Setting, suggestions: Iterable[str] = ()) -> FieldOut:
    """Return a setting as a field of a form."""
    return FieldOut(
        name=setting.name,
        kind="text" if setting.kind == "object" else setting.kind,
        title=setting.title,
        group=setting.group,
        unit=setting.unit,
        help=setting.help,
        default=setting.default,
        hint=setting.hint or ("Bytes, or with a unit: 2GiB." if setting.in_bytes else ""),
        choices=list(setting.choices),
        slider=setting.slider,
        follows=list(setting.follows),
        suggestions=list(suggestions),
    )
