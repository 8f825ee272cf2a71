"""What a plan chooses, each in one row: its names, how people write its values, and which are tried where nobody says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pipeplan.errors import InputError, UnknownNameError
from pipeplan.planner.estimates.software import software
from pipeplan.strategies import strategy
from pipeplan.workload import RECOMPUTE, Precision

Fixed = Mapping[str, tuple[Any, ...]]
"""What was decided already: values that a field of the configuration may have."""

MOST = 1_000_000
"""Of any degree: more than there are GPUs in the world's clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One thing that a plan chooses.

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


def _share(name: str, value: Any) -> float:
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = -1.0
    if not 0 <= share <= 1:
        raise InputError(f"{name} is a share from 0 to 1, not {value!r}", field="fix")
    return share


def _amount(name: str, value: Any) -> float:
    try:
        amount = float(value)
    except (TypeError, ValueError):
        amount = 0.0
    if not 0 < amount < MOST:
        raise InputError(f"{name} is a number above 0, not {value!r}", field="fix")
    return amount


def _schedule(name: str, value: Any) -> str:
    return strategy(str(value)).name


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


def _software(name: str, value: Any) -> str:
    return software(str(value)).name


def _trainer(name: str, value: Any) -> str:
    if str(value).lower() not in TRAINERS:
        raise UnknownNameError("trainer", str(value), TRAINERS, field="fix")
    return str(value).lower()


TRAINERS: Mapping[str, tuple[frozenset[str] | None, str]] = {
    "megatron": (frozenset({"1f1b", "interleaved-1f1b"}), "megatron-core"),
    "torchtitan": (
        frozenset({"gpipe", "looped-bfs", "1f1b", "interleaved-1f1b", "interleaved-zb", "zbv", "dualpipev"}),
        "torchtitan",
    ),
    "pipeplan": (None, "megatron-core"),
}
"""Which schedules each trainer runs (None: any; Megatron-LM's schedules.py, torch.distributed.pipelining), and the row
of the table of software that stands for it."""

CHOICES: tuple[Choice, ...] = (
    Choice(field="tensor", names=("tp", "tensor"), title="tensor parallel degree", read=_count),
    Choice(field="pipeline", names=("pp", "pipeline"), title="pipeline parallel degree", read=_count),
    Choice(field="context", names=("cp", "context"), title="context parallel degree", read=_count),
    Choice(field="data", names=("dp", "data"), title="data parallel degree", read=_count),
    Choice(field="expert", names=("ep", "expert"), title="expert parallel degree", read=_count),
    Choice(field="expert_tensor", names=("etp", "expert-tensor"), title="expert tensor parallel degree", read=_count),
    Choice(field="chunks", names=("vp", "chunks", "vpp"), title="chunks a rank", read=_count),
    Choice(field="microbatch_size", names=("micro", "mbs", "microbatch-size"), title="microbatch size", read=_count),
    Choice(field="schedule", names=("schedule",), title="schedule", read=_schedule),
    Choice(field="group_size", names=("group", "group-size"), title="microbatches of a group", read=_count),
    Choice(field="in_flight", names=("in-flight",), title="activations that a schedule is made for", read=_amount),
    Choice(field="layers", names=("layers", "layout"), title="layers of each stage", read=_layers),
    Choice(field="recompute", names=("recompute",), title="modules computed again", read=_modules),
    Choice(field="offload", names=("offload",), title="share of activations moved to the host", read=_share),
    Choice(field="zero", names=("zero",), title="what data parallel ranks shard", read=_zero),
    Choice(field="sequence_parallel", names=("sp", "sequence-parallel"), title="sequence parallelism", read=_flag),
    Choice(field="precision", names=("precision",), title="format of matrix products", read=_precision),
    Choice(field="software", names=("software",), title="trainer whose kernels are assumed", read=_software),
    Choice(field="trainer", names=("trainer",), title="trainer that is to run it", read=_trainer),
)
"""Everything that ``--fix`` takes."""

_BY_NAME = {name: choice for choice in CHOICES for name in (choice.field, *choice.names)}
_BY_FIELD = {choice.field: choice for choice in CHOICES}


def short_name(field: str) -> str:
    """What people call a field, such as ``tp``."""
    return _BY_FIELD[field].names[0]


def written(field: str, value: Any) -> str:
    """A value as ``--fix`` takes it."""
    if field == "recompute":
        return "+".join(value) or "none"
    if field == "layers":
        return "+".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_fixed(fix: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """What is fixed, by field.

    Parameters
    ----------
    fix
        By any name of a choice: a value, or several to choose from, as a list or joined by commas: ``{"tp": "4,8"}``.

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
        read = tuple(dict.fromkeys(choice.read(choice.names[0], _stripped(value)) for value in values))
        if not read:
            raise InputError(f"{choice.names[0]} is fixed to no value at all", field="fix")
        fixed[choice.field] = read
    return _with_trainer(fixed)


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _with_trainer(fixed: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """A trainer stands for its software."""
    if "trainer" in fixed and "software" not in fixed:
        fixed["software"] = tuple(dict.fromkeys(TRAINERS[trainer][1] for trainer in fixed["trainer"]))
    return fixed
