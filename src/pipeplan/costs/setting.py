"""What a setting is: its type in words, what it may be, and what people read about it everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeplan.costs.limits import parse_limit
from pipeplan.costs.stage_ranges import ranges_in
from pipeplan.errors import CostError, ShapeError, UnknownNameError
from pipeplan.model import LARGEST, MOST_FORWARDS, SMALLEST, in_digits

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
    "file",
]
"""``per_stage``: one number, or one per stage; ``limit``: sizes with their unit, one or one per rank; ``stages``: which of
them; ``layers``: costs of each; ``layout``: how many of them each stage has; ``size``: bytes, with their unit or without;
``pairs``: values by name."""

Group = Literal["shape", "times", "details", "memory", "more", "training", "choosing", "work"]

GROUPS: dict[Group, str] = {
    "shape": "Shape",
    "times": "Times",
    "details": "More about times and transfers",
    "memory": "Memory",
    "more": "More about shapes",
}
"""The groups that settings are shown in, in their order, with their titles."""


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
        The largest one; None for times and sizes, which end where their sums and ratios are no longer numbers.
    divides
        Whether others are divided by them: they are then not so small that a ratio is no number.
    """

    least: float
    open: bool = False
    most: int | None = None
    divides: bool = False

    def fault(self, value: float) -> str | None:
        """What is wrong with a number, as the rest of a sentence that begins with the setting; None: nothing is."""
        if self.most is not None:
            if value < self.least:
                return f" must be at least {self.least:g}, not {in_digits(int(value))}"
            return f" must be at most {self.most:,}, not {in_digits(int(value), ',')}" if value > self.most else None
        low = not value > self.least if self.open else not value >= self.least
        if low or value == math.inf:
            return f" must be {'more than' if self.open else 'at least'} {self.least:g} and finite, not {value:g}"
        if value > LARGEST:
            return f": {value:g} is too large to compute with; choose a larger unit"
        if self.divides and 0 < value < SMALLEST:
            return f": {value:g} is too small to compute with; choose a smaller unit"
        return None


COUNT = Range(1, most=MOST_FORWARDS)
"""No schedule has more forwards, so none can have more ranks, chunks or microbatches."""

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
        """``help`` with what holds where nobody says."""
        return f"{self.help} Default: {self.default}." if self.default else self.help

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
            For a count, a time or size, or a word that it cannot be; with the setting as its ``field``.
        """
        check = _CHECKS.get(self.kind)
        if value is not None and check is not None:
            check(self, value)


def _check_numbers(about: Setting, value: Any) -> None:
    assert about.range is not None
    several = isinstance(value, tuple | list)
    if several and not value:
        raise CostError(f"{about.name.replace('_', ' ')}: the list is empty", field=about.name)
    for stage, number in enumerate(value if several else [value]):
        fault = about.range.fault(number)
        if fault is not None:
            place = f" of stage {stage}" if several else ""
            error = ShapeError if about.kind == "count" else CostError
            raise error(f"{about.noun}{place}{fault}", field=about.name)


def _check_choice(about: Setting, value: Any) -> None:
    if value not in about.choices:
        raise UnknownNameError(about.name, str(value), about.choices, field=about.name)


def _check_limit(_: Setting, value: Any) -> None:
    for each in value if isinstance(value, tuple | list) else [value]:
        parse_limit(each)


def _check_stages(about: Setting, value: Any) -> None:
    if isinstance(value, str):
        if value not in ("none", "all"):
            ranges_in(value, about.name)
    elif min(value, default=0) < 0:
        raise ShapeError(f"{about.name}: there is no stage {min(value)}", field=about.name)


def _check_layout(about: Setting, value: Any) -> None:
    if min(value, default=-1) < 0:
        raise ShapeError(f"layers per stage are numbers of at least 0, not {value}", field=about.name)


_CHECKS: dict[SettingKind, Callable[[Setting, Any], None]] = {
    "count": _check_numbers,
    "number": _check_numbers,
    "per_stage": _check_numbers,
    "choice": _check_choice,
    "limit": _check_limit,
    "stages": _check_stages,
    "layout": _check_layout,
}


def setting(default: Any = None, /, **about: Any) -> Any:
    """A field of :class:`~pipeplan.costs.from_settings.Settings` with its :class:`Setting`, whose name is the field's."""
    return field(default=default, metadata={"setting": about})
