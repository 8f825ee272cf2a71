"""What the page's form is made of: the fields of the settings, in their groups."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, Field

from pipeplan.costs import GROUPS, SETTINGS, Setting, SettingKind

_GROUPS: dict[str, tuple[str, bool]] = {
    "shape": (GROUPS["shape"], True),
    "times": (GROUPS["times"], True),
    "memory": (GROUPS["memory"], True),
    "details": (GROUPS["details"], False),
    "held": ("More about memory", False),
    "more": (GROUPS["more"], False),
}
"""The groups of the form in their order: their titles, and whether their fields always show."""

_ELSEWHERE = dict.fromkeys(("weight_activation_bytes", "recompute_bytes", "offload_bytes", "static_bytes"), "held")
"""Settings that stand in another group of the form than in the table."""

_FIRST = ("memory_limit",)
"""Settings that are the first of their group."""


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
        groups=[GroupOut(name=name, title=title, open=opened) for name, (title, opened) in _GROUPS.items()],
        fields=[field_of(setting, group=_ELSEWHERE.get(setting.name)) for setting in _in_order() if setting.in_form],
    )


def _in_order() -> list[Setting]:
    return sorted(SETTINGS.values(), key=lambda setting: setting.name not in _FIRST)


def field_of(setting: Setting, suggestions: Iterable[str] = (), *, group: str | None = None) -> FieldOut:
    """A setting's field, in its own group or in another one."""
    return FieldOut(
        name=setting.name,
        kind="text" if setting.kind == "object" else setting.kind,
        title=setting.title,
        group=group or setting.group,
        unit=setting.unit,
        help=setting.help,
        default=setting.default,
        hint=setting.hint or ("Bytes, or with a unit: 2GiB." if setting.in_bytes else ""),
        choices=list(setting.choices),
        slider=setting.slider,
        follows=list(setting.follows),
        suggestions=list(suggestions),
    )
