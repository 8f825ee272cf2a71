"""Request of a plan: the model, the cluster, the batch, the fixed choices and the objective; and its progress."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType
from typing import Any, get_args

from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.estimating import estimate
from pipeplan.extensions.planning.estimates.memory_rules import software_with
from pipeplan.extensions.planning.estimates.seconds import TimeFactors
from pipeplan.extensions.planning.estimates.software import software, usual_software
from pipeplan.extensions.planning.hardware import Cluster, Gpu
from pipeplan.extensions.planning.plan_records import Objective
from pipeplan.extensions.planning.results import Estimate
from pipeplan.extensions.planning.workload import RECOMPUTE, ModelShape, Precision
from pipeplan.foundation.errors import InputError, ShapeError, UnknownNameError
from pipeplan.model import Schedule
from pipeplan.strategies import strategy
from pipeplan.trainers import Trainer

DEFAULT_TOKENS = 1e12
"""Tokens for which totals are given unless the user names a number."""


def software_of_plans(trainer: Trainer, gpu: Gpu) -> str:
    """Return the software that plans for a trainer on a GPU assume: its row's, with gradients reduced in 32 bits.

    Teams accept 32 bits without a test of their own; 16 bits are faster, and a plan says by how much.
    """
    return software_with(usual_software(trainer.software, gpu), ("32-bit-gradients",))


NO_TRAINERS: Mapping[str, Trainer] = MappingProxyType({})

Fixed = Mapping[str, tuple[Any, ...]]
"""Allowed values by field of the configuration."""

MOST = 1_000_000
"""Maximum of any degree: larger than any cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChoice:
    """Field of a configuration that a plan chooses (``trainer`` restricts others), and its names, the first for messages.

    ``read`` converts a number or a text to a value, or raises InputError.
    """

    field: str
    names: tuple[str, ...]
    title: str
    read: Callable[[str, Any], Any]


def _count(name: str, value: Any) -> int:
    text = str(value)
    number = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0
    if not 1 <= number <= MOST:
        raise InputError(f"invalid {name} {value!r}: expected an integer >= 1", field="fix")
    return number


def _zero(name: str, value: Any) -> int:
    if str(value) not in {"0", "1", "2", "3"}:
        raise InputError(f"invalid {name} {value!r}: expected 0, 1, 2 or 3", field="fix")
    return int(value)


def _flag(name: str, value: Any) -> bool:
    words = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}
    if str(value).lower() not in words:
        raise InputError(f"invalid {name} {value!r}: expected on or off", field="fix")
    return words[str(value).lower()]


def _real(name: str, value: Any, kind: str, holds: Callable[[float], bool]) -> float:
    with suppress(TypeError, ValueError):
        if holds(number := float(value)):
            return number
    raise InputError(f"invalid {name} {value!r}: expected {kind}", field="fix")


def _share(name: str, value: Any) -> float:
    return _real(name, value, "a fraction from 0 to 1", lambda share: 0 <= share <= 1)


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
            f"invalid {name} {value!r}: expected the layers of each stage joined by +, such as 9+10+10+9", field="fix"
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
    PlanChoice(field="chunks", names=("vp", "chunks", "vpp"), title="chunks per rank", read=_count),
    PlanChoice(
        field="microbatch_size", names=("micro", "mbs", "microbatch-size"), title="microbatch size", read=_count
    ),
    PlanChoice(
        field="schedule", names=("schedule",), title="schedule", read=lambda _, value: strategy(str(value)).name
    ),
    PlanChoice(field="group_size", names=("group", "group-size"), title="microbatches per group", read=_count),
    PlanChoice(
        field="in_flight", names=("in-flight",), title="activation limit that a schedule is built for", read=_amount
    ),
    PlanChoice(field="layers", names=("layers", "layout"), title="layers of each stage", read=_layers),
    PlanChoice(field="recompute", names=("recompute",), title="recomputed modules", read=_modules),
    PlanChoice(field="offload", names=("offload",), title="fraction of activations offloaded to the host", read=_share),
    PlanChoice(field="zero", names=("zero",), title="ZeRO stage: what data-parallel ranks shard", read=_zero),
    PlanChoice(field="replicate", names=("replicate",), title="copies of the sharded state (HSDP)", read=_count),
    PlanChoice(field="sequence_parallel", names=("sp", "sequence-parallel"), title="sequence parallelism", read=_flag),
    PlanChoice(field="precision", names=("precision",), title="number format of matrix products", read=_precision),
    PlanChoice(
        field="software",
        names=("software",),
        title="trainer whose kernels are assumed",
        read=lambda _, value: software(str(value)).name,
    ),
    PlanChoice(
        field="trainer", names=("trainer",), title="trainer to run it with", read=lambda _, value: str(value).lower()
    ),
)
"""Every name that ``--fix`` accepts."""

_BY_NAME = {name: choice for choice in CHOICES for name in (choice.field, *choice.names)}
_BY_FIELD = {choice.field: choice for choice in CHOICES}


def short_name(field: str) -> str:
    """Return the short name of a field, such as ``tp``."""
    return _BY_FIELD[field].names[0]


def written(field: str, value: Any) -> str:
    """Return a value as ``--fix`` accepts it."""
    if field == "recompute":
        return "+".join(value) or "none"
    if field == "layers":
        return "+".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_fixed(fix: Mapping[str, Any], trainers: Mapping[str, Trainer] = NO_TRAINERS) -> dict[str, tuple[Any, ...]]:
    """Return the allowed values of the fixed fields.

    Parameters
    ----------
    fix
        By any name of a choice, a value, or several alternatives as a list or joined by commas: ``{"tp": "4,8"}``.
    trainers
        Trainers that a plan can be for, by name; their layout texts are read, too.

    Raises
    ------
    UnknownNameError
        If a name is not a choice, or a value is unknown; names the nearest one.
    InputError
        If a value is invalid, or two names of one choice are given.
    """
    fixed: dict[str, tuple[Any, ...]] = {}
    for key, raw in fix.items():
        name = str(key)  # keys of other types become unknown names
        choice = _BY_NAME.get(name.lower().replace("_", "-")) or _BY_NAME.get(name.lower())
        if choice is None:
            raise UnknownNameError(
                "choice to fix", name, [names for row in CHOICES for names in row.names], field="fix"
            )
        if choice.field in fixed:
            raise InputError(f"{choice.names[0]} is fixed twice", field="fix")
        values: Iterable[Any] = raw.split(",") if isinstance(raw, str) else raw
        if not isinstance(values, (list, tuple)):
            values = (raw,)
        read = tuple(dict.fromkeys(_read(choice, _stripped(value), trainers) for value in values))
        if not read:
            raise InputError(f"{choice.names[0]} is fixed to an empty list: expected at least one value", field="fix")
        fixed[choice.field] = read
    if "trainer" in fixed:
        named = {alias: name for name, trainer in trainers.items() for alias in (*trainer.aliases, name)}
        for name in fixed["trainer"]:
            if name not in named:
                raise UnknownNameError("trainer", name, trainers, field="fix")
        fixed["trainer"] = tuple(dict.fromkeys(named[name] for name in fixed["trainer"]))
    return fixed


def _read(choice: PlanChoice, value: Any, trainers: Mapping[str, Trainer]) -> Any:
    readers = [trainer.read_layout for trainer in trainers.values()] if choice.field == "layers" else []
    for read_layout in filter(None, readers):
        with suppress(InputError):
            return read_layout(str(value))
    return choice.read(choice.names[0], value)


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanRequest:
    """Model to train on all GPUs of a cluster, with a batch and fixed choices.

    ``memory_limit`` is the bytes that the framework may allocate per GPU, ``fixed`` the allowed values by field, ``allowed``
    the names of unusual choices to try (:data:`~pipeplan.extensions.planning.choice.legality.UNUSUAL`).

    Raises ShapeError without a GPU, a sequence or a token, and InputError for a memory limit that is not positive.
    """

    model: ModelShape
    cluster: Cluster
    global_batch: int
    sequence: int
    memory_limit: float
    fixed: Mapping[str, tuple[Any, ...]] = field(default_factory=lambda: MappingProxyType({}))
    allowed: frozenset[str] = frozenset()
    trainers: Mapping[str, Trainer] = field(default_factory=lambda: NO_TRAINERS)
    calibration: TimeFactors | None = None

    def __post_init__(self) -> None:
        for name in ("global_batch", "sequence"):
            if getattr(self, name) < 1:
                raise ShapeError(f"{name} must be at least 1, not {getattr(self, name)}", field=name)
        if self.gpus < 1:
            raise ShapeError(
                f"the cluster has no GPUs ({self.cluster.nodes} nodes x {self.cluster.per_node})", field="cluster"
            )
        if not self.memory_limit > 0:
            raise InputError(
                f"invalid memory limit of {self.memory_limit:g} bytes: expected more than 0", field="memory_limit"
            )

    def estimate(self, configuration: Configuration, schedule: Schedule | None = None) -> Estimate:
        """Return the estimate of a configuration without an error bar; see ``estimate``."""
        return estimate(
            self.model,
            self.cluster,
            configuration,
            calibration=self.calibration,
            schedule=schedule,
            with_error_bar=False,
        )

    @property
    def gpus(self) -> int:
        """Number of GPUs of the cluster."""
        return self.cluster.gpus


def part_of(cluster: Cluster, nodes: int, per_node: int) -> Cluster:
    """Return a part of a cluster: a number of nodes with a number of GPUs each."""
    if (nodes, per_node) == (cluster.nodes, cluster.per_node):
        return cluster
    return replace(cluster, nodes=nodes, per_node=per_node, domain=min(cluster.joined, per_node * nodes))


Value = Callable[[PlanRequest, float], float]
"""Objective as a function of a request (for its number of GPUs) and the seconds of a step; it increases with the seconds."""

TIE = 1e-6
"""Weight of the step time relative to the number of GPUs: it only decides between equal numbers."""

LATE = 1e6
"""Factor on a step that misses the deadline: larger than any number of GPUs."""


def value_of(objective: Objective, deadline: float | None) -> Value:
    """Return the function that an objective minimizes.

    ``step-time`` is seconds of a step. ``cost`` is seconds of a step times GPUs, which does not depend on the price per GPU
    hour. ``gpus`` is the smallest number of GPUs that meets the deadline; ties are decided by the step time. With a
    deadline, steps that miss it are worse than all that meet it.

    Raises
    ------
    InputError
        If ``gpus`` has no deadline, or the deadline is not positive.
    """
    if deadline is not None and not deadline > 0:
        raise InputError(f"invalid deadline {deadline:g}: expected more than 0 seconds", field="deadline")
    if objective == "gpus" and deadline is None:
        raise InputError(
            "the objective gpus needs a deadline: seconds per step, or a time for all tokens, such as 30d",
            field="deadline",
        )
    latest = inf if deadline is None else deadline
    # GPUs are counted, other values are seconds or multiples of them.
    unit = latest if objective == "gpus" else 1.0

    def value(request: PlanRequest, seconds: float) -> float:
        if seconds > latest:
            return LATE * seconds / unit
        if objective == "gpus":
            return request.gpus * (1 + TIE * seconds / latest)
        return request.gpus * seconds if objective == "cost" else seconds

    return value


def parts(cluster: Cluster, objective: Objective) -> list[Cluster]:
    """Return the cluster, or all parts of it that an objective compares, the smallest first.

    The parts are 1/2, 1/4, ... of a node, and 1, 2, 3, 4, 6, 8, 12 ... nodes up to the whole cluster.
    """
    if objective == "step-time" or cluster.gpus < 1:
        return [cluster]
    # 1, 2, 4, 8 ... and 3, 6, 12 ...
    counts = {base << shift for base in (1, 3) for shift in range(cluster.nodes.bit_length())}
    nodes = sorted({count for count in counts if count <= cluster.nodes} | {cluster.nodes})
    halves, inner = [], cluster.per_node
    while inner % 2 == 0:
        inner //= 2
        halves.append(part_of(cluster, 1, inner))
    whole = [part_of(cluster, count, cluster.per_node) for count in nodes]
    return [*reversed(halves), *whole]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProgress:
    """Progress of a planning run: phase, fraction of the budget spent, number of estimates, and the best that fits."""

    phase: str
    share: float
    estimated: int
    best: Estimate | None


PlanListener = Callable[[PlanProgress], None]
"""Function that receives progress; it may raise KeyboardInterrupt to end the planning with what was found so far."""
