"""One setting: what the shell, config files, Python, the web API, its form and the documentation need of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pipeplan.costs.values import Range

SettingKind = Literal[
    "count",
    "number",
    "per_stage",
    "pair_times",
    "segments",
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
]  # the keys of KINDS, for type checkers

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
"""Commands that have an option for a setting: see :class:`Setting`."""

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
    def other_options(self) -> tuple[str, ...]:
        """Those of its options that are aliases: the second and further long and short ones."""
        return (*(f"--{name.replace('_', '-')}" for name in self.aliases), *self.flags[1:])

    @property
    def full_help(self) -> str:
        """``help``, with the default at its end."""
        return f"{self.help.removesuffix('.')} (default: {self.default})." if self.default else self.help

    @property
    def noun(self) -> str:
        """Name of one value in messages: ``forward time`` for ``forward_times``."""
        words = self.name.replace("_", " ")
        return (
            words.removesuffix("s") if self.kind in ("per_stage", "pair_times") and words.endswith("times") else words
        )

    def spelled(self, value: Any) -> Any:
        """Return the choice that a text names in any case; any other value unchanged."""
        if not isinstance(value, str):
            return value
        return next((choice for choice in self.choices if choice.lower() == value.lower()), value)
