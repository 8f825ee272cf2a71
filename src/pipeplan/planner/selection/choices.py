"""What a plan chooses, each in one row: its names, how people write its values, and which are tried where nobody says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, get_args

from pipeplan.errors import InputError, UnknownNameError
from pipeplan.planner.estimates.software import software
from pipeplan.strategies import strategy
from pipeplan.workload import RECOMPUTE, Precision


class PlannedTrainer(Protocol):
    """A trainer as a plan for it sees it."""

    @property
    def software(self) -> str:
        """Row of the table of software that stands for the trainer."""

    @property
    def schedules(self) -> frozenset[str] | None:
        """Names of the schedules that it runs; None: any."""

    @property
    def read_layout(self) -> Callable[[str], tuple[int, ...]] | None:
        """Reads the layers of each stage from the trainer's text, or raises InputError; None: it has no such text."""


NO_TRAINERS: Mapping[str, PlannedTrainer] = MappingProxyType({})

Fixed = Mapping[str, tuple[Any, ...]]
"""Values that fields of the configuration may have, by field."""

MOST = 1_000_000
"""Maximum of any degree: more than there are GPUs in the world's clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChoice:
    """A field that a plan chooses, with its names and its reader.

    Attributes
    ----------
    field
        Of :class:`~pipeplan.planner.Configuration`; ``trainer`` is no field of it but narrows what may be chosen.
    names
        What people call it, the first one in messages.
    title
        What it is.
    read
        Makes a value of a number or a text; raises InputError.
    """

    field: str
    names: tuple[str, ...]
    title: str
    read: Callable[[str, Any], Any]


def _count(name: str, value: Any) -> int:
    text = str(value)
    number = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0
    if not 1 <= number <= MOST:
        raise InputError(f"{name} is a whole number from 1 on, not {value!r}", field="fix")
    return number


def _zero(name: str, value: Any) -> int:
    if str(value) not in {"0", "1", "2", "3"}:
        raise InputError(f"{name} is 0, 1, 2 or 3, not {value!r}", field="fix")
    return int(value)


def _flag(name: str, value: Any) -> bool:
    words = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}
    if str(value).lower() not in words:
        raise InputError(f"{name} is on or off, not {value!r}", field="fix")
    return words[str(value).lower()]


def _real(name: str, value: Any, kind: str, holds: Callable[[float], bool]) -> float:
    with suppress(TypeError, ValueError):
        if holds(number := float(value)):
            return number
    raise InputError(f"{name} is {kind}, not {value!r}", field="fix")


def _share(name: str, value: Any) -> float:
    return _real(name, value, "a share from 0 to 1", lambda share: 0 <= share <= 1)


def _amount(name: str, value: Any) -> float:
    return _real(name, value, "a number above 0", lambda amount: 0 < amount < MOST)


def _modules(name: str, value: Any) -> tuple[str, ...]:
    names = [part.strip() for part in str(value).split("+")]
    if names in (["none"], [""]):
        return ()
    for module in names:
        if module not in RECOMPUTE:
            raise UnknownNameError("module to recompute", module, ("none", *RECOMPUTE), field="fix")
    return tuple(module for module in RECOMPUTE if module in names)


def _layers(name: str, value: Any) -> tuple[int, ...]:
    parts = str(value).replace("|", "+").split("+")
    if not all(part.strip().isdecimal() for part in parts):
        raise InputError(
            f"{name} are the layers of each stage joined by +, such as 9+10+10+9, not {value!r}", field="fix"
        )
    return tuple(int(part) for part in parts)


def _precision(name: str, value: Any) -> str:
    if str(value).lower() not in get_args(Precision):
        raise UnknownNameError("precision", str(value), get_args(Precision), field="fix")
    return str(value).lower()


CHOICES: tuple[PlanChoice, ...] = (
    PlanChoice(field="tensor", names=("tp", "tensor"), title="tensor parallel degree", read=_count),
    PlanChoice(field="pipeline", names=("pp", "pipeline"), title="pipeline parallel degree", read=_count),
    PlanChoice(field="context", names=("cp", "context"), title="context parallel degree", read=_count),
    PlanChoice(field="data", names=("dp", "data"), title="data parallel degree", read=_count),
    PlanChoice(field="expert", names=("ep", "expert"), title="expert parallel degree", read=_count),
    PlanChoice(
        field="expert_tensor", names=("etp", "expert-tensor"), title="expert tensor parallel degree", read=_count
    ),
    PlanChoice(field="chunks", names=("vp", "chunks", "vpp"), title="chunks a rank", read=_count),
    PlanChoice(
        field="microbatch_size", names=("micro", "mbs", "microbatch-size"), title="microbatch size", read=_count
    ),
    PlanChoice(
        field="schedule", names=("schedule",), title="schedule", read=lambda _, value: strategy(str(value)).name
    ),
    PlanChoice(field="group_size", names=("group", "group-size"), title="microbatches of a group", read=_count),
    PlanChoice(field="in_flight", names=("in-flight",), title="activations that a schedule is made for", read=_amount),
    PlanChoice(field="layers", names=("layers", "layout"), title="layers of each stage", read=_layers),
    PlanChoice(field="recompute", names=("recompute",), title="modules computed again", read=_modules),
    PlanChoice(field="offload", names=("offload",), title="share of activations moved to the host", read=_share),
    PlanChoice(field="zero", names=("zero",), title="what data parallel ranks shard", read=_zero),
    PlanChoice(field="sequence_parallel", names=("sp", "sequence-parallel"), title="sequence parallelism", read=_flag),
    PlanChoice(field="precision", names=("precision",), title="format of matrix products", read=_precision),
    PlanChoice(
        field="software",
        names=("software",),
        title="trainer whose kernels are assumed",
        read=lambda _, value: software(str(value)).name,
    ),
    PlanChoice(
        field="trainer", names=("trainer",), title="trainer that is to run it", read=lambda _, value: str(value).lower()
    ),
)
"""Everything that ``--fix`` takes."""

_BY_NAME = {name: choice for choice in CHOICES for name in (choice.field, *choice.names)}
_BY_FIELD = {choice.field: choice for choice in CHOICES}


def short_name(field: str) -> str:
    """Return the short name of a field, such as ``tp``."""
    return _BY_FIELD[field].names[0]


def written(field: str, value: Any) -> str:
    """A value as ``--fix`` takes it."""
    if field == "recompute":
        return "+".join(value) or "none"
    if field == "layers":
        return "+".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_fixed(
    fix: Mapping[str, Any], trainers: Mapping[str, PlannedTrainer] = NO_TRAINERS
) -> dict[str, tuple[Any, ...]]:
    """Return what is fixed, by field.

    Parameters
    ----------
    fix
        By any name of a choice: a value, or several to choose from, as a list or joined by commas: ``{"tp": "4,8"}``.
    trainers
        By name, the trainers that a plan can be for; one that is fixed stands for its software. Their layouts are
        read, too.

    Raises
    ------
    UnknownNameError
        For a name that is no choice, or a value that names nothing known; says the nearest.
    InputError
        For a value that cannot be, or two names of one choice.
    """
    fixed: dict[str, tuple[Any, ...]] = {}
    for key, given in fix.items():
        name = str(key)  # a name that is none is one that nobody knows
        choice = _BY_NAME.get(name.lower().replace("_", "-")) or _BY_NAME.get(name.lower())
        if choice is None:
            raise UnknownNameError(
                "choice to fix", name, [names for row in CHOICES for names in row.names], field="fix"
            )
        if choice.field in fixed:
            raise InputError(f"{choice.names[0]} is fixed twice", field="fix")
        values: Iterable[Any] = given.split(",") if isinstance(given, str) else given
        if not isinstance(values, (list, tuple)):
            values = (given,)
        read = tuple(dict.fromkeys(_read(choice, _stripped(value), trainers) for value in values))
        if not read:
            raise InputError(f"{choice.names[0]} is fixed to no value at all", field="fix")
        fixed[choice.field] = read
    for trainer in fixed.get("trainer", ()):
        if trainer not in trainers:
            raise UnknownNameError("trainer", trainer, trainers, field="fix")
    if "trainer" in fixed and "software" not in fixed:
        fixed["software"] = tuple(dict.fromkeys(trainers[trainer].software for trainer in fixed["trainer"]))
    return fixed


def _read(choice: PlanChoice, value: Any, trainers: Mapping[str, PlannedTrainer]) -> Any:
    readers = [trainer.read_layout for trainer in trainers.values()] if choice.field == "layers" else []
    for read_layout in filter(None, readers):
        with suppress(InputError):
            return read_layout(str(value))
    return choice.read(choice.names[0], value)


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value
