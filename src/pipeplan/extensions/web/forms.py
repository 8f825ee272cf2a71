"""Forms of the pages: fields from the declarations of options, in their groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, Field

from pipeplan.costs import FOLDED_GROUPS, GROUPS, Setting, SettingKind

NO_SUGGESTIONS: Mapping[str, Iterable[str]] = {}


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


def form_of(settings: Iterable[Setting], suggestions: Mapping[str, Iterable[str]] = NO_SUGGESTIONS) -> FormOut:
    """Return the form of settings; ``suggestions`` are common values, by name."""
    settings = tuple(settings)
    return FormOut(
        groups=_groups(settings),
        fields=[_field(setting, suggestions.get(setting.name, ())) for setting in settings],
    )


def _groups(settings: Iterable[Setting]) -> list[GroupOut]:
    groups = {setting.group for setting in settings}
    return [
        GroupOut(name=name, title=title, open=name not in FOLDED_GROUPS)
        for name, title in GROUPS.items()
        if name in groups
    ]


def _field(setting: Setting, suggestions: Iterable[str]) -> FieldOut:
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
