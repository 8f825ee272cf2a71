"""Options: each is declared once, as a field of a record, with its type, its range and what people read about it.

The command line, config files, Python signatures, the web API, its form and the reference pages derive from the records.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from numbers import Integral
from types import MappingProxyType
from typing import Any, Literal, TypeVar, cast

import numpy as np

from pipeplan.costs.limits import parse_limit
from pipeplan.costs.stage_ranges import ranges_in
from pipeplan.errors import CostError, InputError, ShapeError, UnknownNameError
from pipeplan.files import path_of
from pipeplan.model import (
    LARGEST,
    MOST_FORWARDS,
    MOST_RANKS,
    SMALLEST,
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
    "text",
    "flag",
    "limit",
    "stages",
    "layers",
    "layout",
    "size",
    "pairs",
    "names",
    "schedules",
    "model",
    "object",
    "file",
    "files",
]
"""``per_stage``: one number, or one per stage; ``limit``: sizes with their unit, one or one per rank; ``stages``: which of
them; ``layers``: costs of each; ``layout``: how many of them each stage has; ``size``: bytes, with their unit or without;
``pairs``: values by name; ``names``: several words, or one text with commas; ``schedules``: names, files or schedules;
``model``: a name, or a model of PyTorch's; ``object``: text, or in Python what is checked where it is read."""

Group = Literal[
    "search", "order", "training", "choosing", "work", "calibration", "trainer", "shape", "times", "memory", "details",
    "held", "more", "output",
]  # fmt: skip

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
    "details": "More about times and transfers",
    "held": "More about memory",
    "more": "More about shapes",
    "output": "Input and output",
}
"""Titles of the groups of options, in the order in which help, forms and the reference show them."""

FOLDED_GROUPS: tuple[Group, ...] = ("details", "held", "more")
"""Groups of settings that help and forms show only on request."""

SETTING_GROUPS: tuple[Group, ...] = ("shape", "times", "memory", *FOLDED_GROUPS)
"""Groups of the settings of shape and costs."""


@dataclass(frozen=True, slots=True)
class Range:
    """Which numbers a setting may be.

    Attributes
    ----------
    least
        The smallest one.
    open
        Whether ``least`` itself is left out.
    most
        The largest one; None for times and sizes of a schedule, which end where their sums and ratios are no longer numbers.
    divides
        Whether others are divided by them: they are then not so small that a ratio is no number.
    """

    least: float
    open: bool = False
    most: float | None = None
    divides: bool = False

    def fault(self, value: float) -> str | None:
        """What is wrong with a number, as the rest of a sentence that begins with the setting; None: nothing is."""
        low = not value > self.least if self.open else not value >= self.least
        bound = f"{'more than' if self.open else 'at least'} {self.least:g}"
        if self.most is not None:
            if low:
                return f" must be {bound}, not {_in_figures(value)}"
            return f" must be at most {_in_figures(self.most)}, not {_in_figures(value)}" if value > self.most else None
        if low or value == math.inf:
            return f" must be {bound} and finite, not {_in_figures(value)}"
        if value > LARGEST:
            return f": {_in_figures(value)} is too large to compute with; choose a larger unit"
        if self.divides and 0 < value < SMALLEST:
            return f": {value:g} is too small to compute with; choose a smaller unit"
        return None


def _in_figures(value: float) -> str:
    whole = isinstance(value, int) or (1000 <= value <= 1e15 and value == int(value))
    return in_digits(int(value), ",") if whole else f"{value:g}"


COUNT = Range(1, most=MOST_FORWARDS)
"""No schedule has more forwards, so none can have more chunks or microbatches."""

RANKS = Range(1, most=MOST_RANKS)

POSITIVE = Range(0, open=True, divides=True)
NOT_NEGATIVE = Range(0)
DIVISOR = Range(0, divides=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: everything that the shell, config files, Python, the web API, its form and the docs know of it.

    Attributes
    ----------
    name
        As in Python, config files and JSON; ``--name-of-it`` in the shell.
    kind
        Of its values.
    title
        What the form calls it.
    group
        Where it is shown.
    help
        One sentence for the shell's help, the API's description and the docs.
    default
        What holds where nobody says, in a word or two; empty where ``help`` says it.
    unit
        Of its numbers, in words; empty for counts and words.
    range
        Of its numbers; None where it has none, or a rule of its own.
    aliases
        Other names for it: in config files as they stand, in the shell as ``--alias``.
    flags
        Short options of the shell.
    choices
        The words that it can be, its default first.
    hint
        A line under its field in the form.
    slider
        From, to and step of its slider in the form.
    follows
        Other settings whose value it takes where nobody says, the first that is given, each times a factor.
    in_form
        Whether the form has a field for it.
    longest
        The most characters of a text.
    keyword
        The type of its Python keyword, where that is not the type of its field.
    """

    name: str = ""
    kind: SettingKind
    title: str
    group: Group
    help: str
    default: str = ""
    unit: str = ""
    range: Range | None = None
    aliases: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    hint: str = ""
    slider: tuple[float, float, float] | None = None
    follows: tuple[tuple[str, float], ...] = ()
    in_form: bool = True
    longest: int = 40
    keyword: str = ""

    @property
    def in_bytes(self) -> bool:
        """Whether its numbers are sizes, which may also be texts with their unit: ``2GiB``."""
        return self.unit == "bytes" and self.kind in ("number", "per_stage")

    @property
    def timing(self) -> bool:
        """Whether it says how long something takes."""
        return self.group in ("times", "details") and self.kind not in ("flag", "text")

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
        """What one value of it is called in a message: ``forward time`` of ``forward_times``."""
        words = self.name.replace("_", " ")
        return words.removesuffix("s") if self.kind == "per_stage" and words.endswith("times") else words

    def check(self, value: Any) -> None:
        """Check a value of the right type; None stands for what nobody said.

        Raises
        ------
        ShapeError, CostError, UnknownNameError
            For a count, a time or size, or a word that it cannot be; with the setting as its ``field``. Of the settings
            that are no shape or costs, InputError.
        """
        check = _CHECKS.get(self.kind)
        if value is not None and check is not None:
            check(self, value)


def option(default: Any = None, /, **about: Any) -> Any:
    """A field of a record of options with its :class:`Setting`, whose name is the field's; ``...``: the option is needed."""
    return field(metadata={"setting": about}, **({} if default is ... else {"default": default}))


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of the records of options. A value other than the default is checked when its record is made, and then trusted.

    Raises
    ------
    InputError
        For a value that an option cannot have, with the option as its ``field``.
    """

    def __post_init__(self) -> None:
        settings = table_of(type(self))
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not each.default and each.name in settings:
                settings[each.name].check(value)


def table_of(record: type[Any]) -> Mapping[str, Setting]:
    """The settings of a record of options, by name."""
    return _table_of(record)  # type: ignore[arg-type]


@cache
def _table_of(record: Hashable) -> Mapping[str, Setting]:
    return MappingProxyType(
        {
            each.name: Setting(name=each.name, **{"default": _in_words(each.default), **each.metadata["setting"]})
            for each in fields(cast("Any", record))
            if "setting" in each.metadata
        }
    )


def _in_words(default: Any) -> str:
    """A default as help texts show it; empty for flags that are off and for nothing."""
    number = isinstance(default, int | float) and not isinstance(default, bool)
    return f"{default:g}" if number else default if isinstance(default, str) else ""


_Record = TypeVar("_Record", bound=Options)


def options_of(record: type[_Record], values: Mapping[str, Any]) -> _Record:
    """A record from keywords: None stands for what nobody said; numpy's numbers become Python's, lists become tuples.

    Raises
    ------
    UnknownNameError
        For an option that the record does not have; the message suggests the nearest one.
    InputError
        For an option that is missing, and for a value that it cannot have.
    """
    known = table_of(record)
    for name in values:
        if name not in known:
            raise UnknownNameError("option", name, known, field=name)
    said = {name: _plain(value) for name, value in values.items() if value is not None}
    if missing := missing_in(record, said):
        raise InputError(f"missing: {', '.join(missing)}", field=missing[0])
    return record(**said)


def missing_in(record: type[Options], values: Mapping[str, Any]) -> list[str]:
    """The options of a record that have no default and no value."""
    return [each.name for each in fields(record) if each.default is MISSING and values.get(each.name) is None]


def require_settings(table: Mapping[str, Setting], **values: Any) -> None:
    """Check values by the names of their settings, before any work is done. Raises what :meth:`Setting.check` does."""
    for name, value in values.items():
        table[name].check(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return tuple(value.tolist())
    return tuple(value) if isinstance(value, list) else value


def _check_numbers(about: Setting, value: Any) -> None:
    assert about.range is not None
    several = about.kind == "per_stage" and isinstance(value, tuple | list)
    if several and not value:
        raise CostError(f"{about.name.replace('_', ' ')}: the list is empty", field=about.name)
    for stage, each in enumerate(value if several else [value]):
        number = each.item() if isinstance(each, np.generic) else each
        fault = _fault_of_type(about, number) or about.range.fault(number)
        if fault is not None:
            place = f" of stage {stage}" if several else ""
            raise _error_of(about)(f"{about.noun}{place}{fault}", field=about.name)


def _fault_of_type(about: Setting, number: Any) -> str | None:
    """As :meth:`Range.fault`, of what is no number; True, which Python counts with, is none."""
    kind, words = (int, "a whole number") if about.kind == "count" else (int | float, "a number")
    if type(number) is not bool and isinstance(number, kind):
        return None
    return f" must be {words}, not {shortened(repr(number), _SHOWN)}"


def _error_of(about: Setting) -> type[InputError]:
    if about.group not in SETTING_GROUPS:
        return InputError
    return ShapeError if about.kind == "count" else CostError


_SHOWN = 60
"""Letters of a value in a message."""


def _check_choice(about: Setting, value: Any) -> None:
    if not isinstance(value, str) or value not in about.choices:
        raise UnknownNameError(about.name, str(value), about.choices, field=about.name)


def _check_limit(_: Setting, value: Any) -> None:
    for each in value if isinstance(value, tuple | list) else [value]:
        parse_limit(each)


def _check_stages(about: Setting, value: Any) -> None:
    if isinstance(value, str):
        if value not in ("none", "all"):
            ranges_in(value, about.name)
    elif not _are_whole(value):
        raise ShapeError(
            f"{about.name}: none, all, or stages such as 0-3,6, not {shortened(repr(value), _SHOWN)}", field=about.name
        )
    elif min(value, default=0) < 0:
        raise ShapeError(f"{about.name}: there is no stage {min(value)}", field=about.name)


def _are_whole(values: Any) -> bool:
    """Whether it is several whole numbers; True, which Python counts with, is none."""
    several = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    return several and all(type(each) is not bool and isinstance(each, Integral) for each in values)


def _check_layout(about: Setting, value: Any) -> None:
    numbers = list(value) if isinstance(value, Iterable) else None
    if numbers is None or not _are_whole(numbers) or min(numbers, default=-1) < 0:
        shown = shortened(repr(value), _SHOWN)
        raise ShapeError(f"layers per stage are whole numbers of at least 0, not {shown}", field=about.name)
    if max(numbers) > MOST_FORWARDS:
        raise ShapeError(
            f"a stage has at most {MOST_FORWARDS:,} layers, not {in_digits(max(numbers), ',')}", field=about.name
        )


def _check_text(about: Setting, value: Any) -> None:
    require_text(value, about.noun, longest=about.longest, field=about.name)


def _check_model(about: Setting, value: Any) -> None:
    if not hasattr(value, "layers"):  # its class needs PyTorch
        _check_text(about, value)


def _check_object(about: Setting, value: Any) -> None:
    if isinstance(value, str):
        _check_text(about, value)


def _check_path(about: Setting, value: Any) -> None:
    if not isinstance(value, str | os.PathLike):
        raise InputError(
            f"{about.noun} must be the path of a file, not {shortened(repr(value), _SHOWN)}", field=about.name
        )
    path_of(value, about.noun, field=about.name)


def _check_paths(about: Setting, value: Any) -> None:
    for each in value:
        _check_path(about, each)


def _check_size(_: Setting, value: Any) -> None:
    parse_limit(value)


def _check_flag(about: Setting, value: Any) -> None:
    require_flags(**{about.name: value})


def _check_names(about: Setting, value: Any) -> None:
    for text in value if isinstance(value, Iterable) and not isinstance(value, str) else [value]:
        require_text(text, about.noun, longest=about.longest, field=about.name)


_CHECKS: dict[SettingKind, Callable[[Setting, Any], None]] = {
    "count": _check_numbers,
    "number": _check_numbers,
    "per_stage": _check_numbers,
    "choice": _check_choice,
    "limit": _check_limit,
    "stages": _check_stages,
    "layout": _check_layout,
    "text": _check_text,
    "file": _check_path,
    "files": _check_paths,
    "size": _check_size,
    "flag": _check_flag,
    "names": _check_names,
    "model": _check_model,
    "object": _check_object,
}
