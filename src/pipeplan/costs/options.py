"""Options, each declared once as a field of a record, with its type, range and documentation.

The command line, config files, Python signatures, the web API, its form and the reference pages derive from the records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from numbers import Integral
from types import MappingProxyType
from typing import Any, Literal, TypeVar, cast

import numpy as np

from pipeplan.costs.values import Range, parse_duration, parse_limit, ranges_in
from pipeplan.foundation.errors import CostError, InputError, ShapeError, UnknownNameError
from pipeplan.foundation.files import path_of
from pipeplan.model import (
    MOST_FORWARDS,
    in_digits,
    require_flags,
    require_text,
    shortened,
)

SettingKind = Literal[
    "count",
    "number",
    "per_stage",
    "choice",
    "name",
    "text",
    "flag",
    "limit",
    "stages",
    "layers",
    "layout",
    "stage_layers",
    "per_microbatch",
    "lengths",
    "size",
    "duration",
    "pairs",
    "names",
    "schedules",
    "model",
    "object",
    "file",
    "files",
]
"""Kinds of settings.

``name``: one of ``choices``, or a plugin's name; ``per_stage``: one number, or one per stage; ``limit``: sizes with their
unit, one or one per rank; ``stages``: a selection of stages; ``layers``: costs of each layer; ``layout``: number of layers
per stage; ``stage_layers``: the same, or a trainer's text for it; ``per_microbatch``: one number per microbatch, or such a
list per stage; ``lengths``: tokens per microbatch, or of each of its documents, in the shell a file; ``size``: bytes with or
without a unit; ``duration``: seconds, with or without a unit; ``pairs``: values by name; ``names``: several words, or one
text with commas; ``schedules``: names, files or schedules; ``model``: a name, or a PyTorch model; ``object``: text, or a
Python object that is checked where it is used.
"""

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
]

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
    longest: int
    keyword: str

    @property
    def in_bytes(self) -> bool:
        """True if its values are sizes, which may also be texts with a unit such as ``2GiB``."""
        return self.unit == "bytes" and self.kind in ("number", "per_stage")

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
        check = _CHECKS.get(self.kind)
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


def _check_numbers(setting: Setting, value: Any) -> None:
    assert setting.range is not None
    several = setting.kind == "per_stage" and isinstance(value, tuple | list)
    if several and not value:
        raise CostError(f"{setting.name.replace('_', ' ')}: the list is empty", field=setting.name)
    for stage, entry in enumerate(value if several else [value]):
        number = entry.item() if isinstance(entry, np.generic) else entry
        fault = _fault_of_type(setting, number) or setting.range.fault(number)
        if fault is not None:
            place = f" of stage {stage}" if several else ""
            raise _error_of(setting)(f"{setting.noun}{place}{fault}", field=setting.name)


def _check_tables(setting: Setting, value: Any) -> None:
    for table in _tables_in(value):
        _check_lists(setting, table)


def _tables_in(value: Any) -> Iterable[Any]:
    """Return the tables of a record of them, or the value as the only one."""
    return [getattr(value, item.name) for item in fields(value)] if is_dataclass(value) else [value]


def _check_lists(setting: Setting, value: Any) -> None:
    """Check a list of numbers, in which every number may be a list of numbers."""
    assert setting.range is not None
    words = setting.name.replace("_", " ")
    if not isinstance(value, tuple | list) or not value or any(entry in ((), []) for entry in value):
        raise CostError(
            f"{words} must be a list of numbers that is not empty, not {shortened(repr(value), _SHOWN)}",
            field=setting.name,
        )
    for place, entry in enumerate(value):
        for number in entry if isinstance(entry, tuple | list) else (entry,):
            fault = _fault_of_type(setting, number) or setting.range.fault(number)
            if fault is not None:
                raise CostError(f"{words}: number {place}{fault}", field=setting.name)


def _fault_of_type(setting: Setting, number: Any) -> str | None:
    """Return the end of an error message, as :meth:`Range.fault`, for values that are not numbers. Bools are not."""
    kind, words = (int, "a whole number") if setting.kind == "count" else (int | float, "a number")
    if type(number) is not bool and isinstance(number, kind):
        return None
    return f" must be {words}, not {shortened(repr(number), _SHOWN)}"


def _error_of(setting: Setting) -> type[InputError]:
    if setting.group not in SETTING_GROUPS:
        return InputError
    return ShapeError if setting.kind == "count" else CostError


_SHOWN = 60
"""Maximum length of a value in a message."""


def _check_choice(setting: Setting, value: Any) -> None:
    if not isinstance(value, str) or value not in setting.choices:
        raise UnknownNameError(setting.name, str(value), setting.choices, field=setting.name)


def _check_limit(_: Setting, value: Any) -> None:
    for limit in value if isinstance(value, tuple | list) else [value]:
        parse_limit(limit)


def _check_stages(setting: Setting, value: Any) -> None:
    if isinstance(value, str):
        if value not in ("none", "all"):
            ranges_in(value, setting.name)
    elif not _are_whole(value):
        raise ShapeError(
            f"{setting.name}: none, all, or stages such as 0-3,6, not {shortened(repr(value), _SHOWN)}",
            field=setting.name,
        )
    elif min(value, default=0) < 0:
        raise ShapeError(f"{setting.name}: there is no stage {min(value)}", field=setting.name)


def _are_whole(values: Any) -> bool:
    """Return True for a sequence of integers; bools do not count as integers."""
    several = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    return several and all(type(number) is not bool and isinstance(number, Integral) for number in values)


def _check_layout(setting: Setting, value: Any) -> None:
    numbers = list(value) if isinstance(value, Iterable) else None
    if numbers is None or not _are_whole(numbers) or min(numbers, default=-1) < 0:
        shown = shortened(repr(value), _SHOWN)
        raise ShapeError(f"layers per stage must be whole numbers of at least 0, not {shown}", field=setting.name)
    if max(numbers) > MOST_FORWARDS:
        raise ShapeError(
            f"a stage has at most {MOST_FORWARDS:,} layers, not {in_digits(max(numbers), ',')}", field=setting.name
        )


def _check_stage_layers(setting: Setting, value: Any) -> None:
    check = _check_text if isinstance(value, str) else _check_layout
    check(setting, value)


def _check_text(setting: Setting, value: Any) -> None:
    require_text(value, setting.noun, longest=setting.longest, field=setting.name)


def _check_model(setting: Setting, value: Any) -> None:
    if not hasattr(value, "layers"):  # its class needs PyTorch
        _check_text(setting, value)


def _check_object(setting: Setting, value: Any) -> None:
    if isinstance(value, str):
        _check_text(setting, value)


def _check_path(setting: Setting, value: Any) -> None:
    if not isinstance(value, str | os.PathLike):
        raise InputError(
            f"{setting.noun} must be a file path, not {shortened(repr(value), _SHOWN)}", field=setting.name
        )
    path_of(value, setting.noun, field=setting.name)


def _check_paths(setting: Setting, value: Any) -> None:
    for path in value:
        _check_path(setting, path)


def _check_size(_: Setting, value: Any) -> None:
    parse_limit(value)


def _check_duration(setting: Setting, value: Any) -> None:
    parse_duration(value, setting.name)


def _check_flag(setting: Setting, value: Any) -> None:
    require_flags(**{setting.name: value})


def _check_names(setting: Setting, value: Any) -> None:
    for text in value if isinstance(value, Iterable) and not isinstance(value, str) else [value]:
        require_text(text, setting.noun, longest=setting.longest, field=setting.name)


_CHECKS: dict[SettingKind, Callable[[Setting, Any], None]] = {
    "count": _check_numbers,
    "number": _check_numbers,
    "per_stage": _check_numbers,
    "choice": _check_choice,
    "limit": _check_limit,
    "per_microbatch": _check_tables,
    "lengths": _check_lists,
    "stages": _check_stages,
    "layout": _check_layout,
    "name": _check_text,
    "stage_layers": _check_stage_layers,
    "text": _check_text,
    "file": _check_path,
    "files": _check_paths,
    "size": _check_size,
    "duration": _check_duration,
    "flag": _check_flag,
    "names": _check_names,
    "model": _check_model,
    "object": _check_object,
}
