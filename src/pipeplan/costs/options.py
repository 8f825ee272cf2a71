"""Options, each declared once as a field of a record, with its type, range and documentation.

The command line, config files, Python signatures, the web API, its form and the reference pages derive from the records.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeVar, cast

import numpy as np

from pipeplan.costs.kinds import KINDS, SettingKind
from pipeplan.costs.values import Range
from pipeplan.foundation.errors import InputError, UnknownNameError

Group = Literal[
    "search",
    "order",
    "training",
    "choosing",
    "work",
    "calibration",
    "trainer",
    "shape",
    "times",
    "memory",
    "microbatches",
    "details",
    "held",
    "more",
    "output",
]  # the keys of GROUPS, for type checkers

GROUPS: dict[Group, str] = {
    "search": "Search",
    "order": "Order of ops",
    "training": "Training",
    "choosing": "Objective and limits",
    "work": "Budget and workers",
    "calibration": "Calibration",
    "trainer": "Trainer",
    "shape": "Shape",
    "times": "Times",
    "memory": "Memory",
    "microbatches": "Microbatches that differ",
    "details": "More setting times and transfers",
    "held": "More setting memory",
    "more": "More setting shapes",
    "output": "Input and output",
}
"""Titles of the groups of options, in the order in which help, forms and the reference show them."""

FOLDED_GROUPS: tuple[Group, ...] = ("microbatches", "details", "held", "more")
"""Groups of settings that help and forms show only on request."""

Shell = Literal["all", "schedules", "none"]

SETTING_GROUPS: tuple[Group, ...] = ("shape", "times", "memory", *FOLDED_GROUPS)
"""Groups of the settings of shape and costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: everything that the shell, config files, Python, the web API, its form and the docs need.

    Attributes
    ----------
    name
        Name in Python, config files and JSON; ``--name-of-it`` in the shell.
    kind
        Kind of its values.
    group
        Group in which it is shown.
    help
        One sentence for the shell's help, the API's description and the docs.
    title
        Label in the form; by default the words of its name.
    default
        Description of the default, in a few words; by default the value that the field has, if that is a number or a text.
    unit
        Unit of its numbers, in words; empty for counts and words.
    range
        Range of its numbers; None if there is none, or another rule.
    aliases
        Other names: unchanged in config files, as ``--alias`` in the shell.
    flags
        Short options of the shell.
    choices
        Accepted words, the default first.
    hint
        Line below its field in the form.
    slider
        Minimum, maximum and step of its slider in the form.
    follows
        Other settings that determine its default: the first that is set, times a factor.
    only_with
        Another setting, and the value of it with which this one applies; None if it always applies.
    in_form
        True if the form has a field for it.
    usual
        True if the first view of help shows it.
    shell
        Commands with an option for it: all, only those of given ``schedules`` and not searches, or ``none``: then it is set
        in config files and in Python.
    longest
        Maximum number of characters of a text.
    keyword
        Type of its Python keyword, if that differs from the type of its field.
    """

    name: str
    kind: SettingKind
    group: Group
    help: str
    title: str
    default: str
    unit: str
    range: Range | None
    aliases: tuple[str, ...]
    flags: tuple[str, ...]
    choices: tuple[str, ...]
    hint: str
    slider: tuple[float, float, float] | None
    follows: tuple[tuple[str, float], ...]
    only_with: tuple[str, str] | None
    in_form: bool
    usual: bool
    shell: Shell
    longest: int
    keyword: str

    @property
    def in_bytes(self) -> bool:
        """True if its values are sizes, which may also be texts with a unit such as ``2GiB``."""
        return self.unit == "bytes" and self.kind in ("number", "per_stage")

    @property
    def of_costs(self) -> bool:
        """True if it is a setting of shape and costs."""
        return self.group in SETTING_GROUPS

    @property
    def timing(self) -> bool:
        """True if it is a time, or determines one."""
        return self.group in ("times", "microbatches", "details") and self.kind not in ("flag", "text")

    @property
    def options(self) -> tuple[str, ...]:
        """Its options in the shell: its name, its aliases, then the short ones."""
        return (*(f"--{name.replace('_', '-')}" for name in (self.name, *self.aliases)), *self.flags)

    @property
    def full_help(self) -> str:
        """``help``, with the default at its end."""
        return f"{self.help.removesuffix('.')} (default: {self.default})." if self.default else self.help

    @property
    def noun(self) -> str:
        """Name of one value in messages: ``forward time`` for ``forward_times``."""
        words = self.name.replace("_", " ")
        return words.removesuffix("s") if self.kind == "per_stage" and words.endswith("times") else words

    def spelled(self, value: Any) -> Any:
        """Return the choice that a text names in any case; any other value unchanged."""
        if not isinstance(value, str):
            return value
        return next((choice for choice in self.choices if choice.lower() == value.lower()), value)

    def check(self, value: Any) -> None:
        """Check a value of the right type; None means not set."""
        check = KINDS[self.kind].check
        if value is not None and check is not None:
            check(self, value)


def option(
    value: Any = None,
    /,
    *,
    kind: SettingKind,
    group: Group,
    help: str,
    title: str = "",
    default: str = "",
    unit: str = "",
    range: Range | None = None,
    aliases: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
    choices: tuple[str, ...] = (),
    hint: str = "",
    slider: tuple[float, float, float] | None = None,
    follows: tuple[tuple[str, float], ...] = (),
    only_with: tuple[str, str] | None = None,
    in_form: bool = True,
    usual: bool = True,
    shell: Shell = "all",
    longest: int = 40,
    keyword: str = "",
) -> Any:
    """Declare a field of a record of options with its :class:`Setting`, which is named after the field.

    ``value`` is the default of the field; ``...`` means that the option is required.
    """
    setting = Setting(
        name="",
        kind=kind,
        group=group,
        help=help,
        title=title,
        default=default or _in_words(value),
        unit=unit,
        range=range,
        aliases=aliases,
        flags=flags,
        choices=choices,
        hint=hint,
        slider=slider,
        follows=follows,
        only_with=only_with,
        in_form=in_form,
        usual=usual,
        shell=shell,
        longest=longest,
        keyword=keyword,
    )
    return field(metadata={"setting": setting}, **({} if value is ... else {"default": value}))


def _in_words(default: Any) -> str:
    """Return a default as help texts show it; empty for flags that are off and for None."""
    number = isinstance(default, int | float) and not isinstance(default, bool)
    return f"{default:g}" if number else default if isinstance(default, str) else ""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of the records of options, whose values are checked when a record is made, and then trusted.

    Choices get their own spelling, because names are accepted in any case.
    """

    def __post_init__(self) -> None:
        settings = table_of(type(self))
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not item.default and item.name in settings:
                spelled = settings[item.name].spelled(value)
                object.__setattr__(self, item.name, spelled)
                settings[item.name].check(spelled)


def table_of(record: type[Any]) -> Mapping[str, Setting]:
    """Return the settings of a record of options, by name."""
    return _table_of(record)  # type: ignore[arg-type]


@cache
def _table_of(record: Hashable) -> Mapping[str, Setting]:
    return MappingProxyType(
        {
            item.name: _named(item.metadata["setting"], item.name)
            for item in fields(cast("Any", record))
            if "setting" in item.metadata
        }
    )


def _named(setting: Setting, name: str) -> Setting:
    return replace(setting, name=name, title=setting.title or name.replace("_", " ").capitalize())


_Record = TypeVar("_Record", bound=Options)


def options_of(record: type[_Record], values: Mapping[str, Any]) -> _Record:
    """Return a record from keywords. None means not set; numpy's numbers become Python's, lists become tuples."""
    table = table_of(record)
    for name in values:
        if name not in table:
            raise UnknownNameError("option", name, table, field=name)
    plain = {name: _plain(value) for name, value in values.items() if value is not None}
    if missing := missing_in(record, plain):
        raise InputError(f"missing: {', '.join(missing)}", field=missing[0])
    return record(**plain)


def missing_in(record: type[Options], values: Mapping[str, Any]) -> list[str]:
    """Return the options of a record that have no default and no value."""
    return [item.name for item in fields(record) if item.default is MISSING and values.get(item.name) is None]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return tuple(value.tolist())
    return tuple(value) if isinstance(value, list) else value


def names_of(names: str | Iterable[str]) -> list[str]:
    """Return names that are given as several texts, or as one text with commas between them."""
    texts = [names] if isinstance(names, str) else names
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]
