"""Request"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol, get_args

from pipeplan.errors import InputError, ShapeError, UnknownNameError
from pipeplan.files import GIBIBYTE
from pipeplan.hardware import Cluster
from pipeplan.model import Schedule
from pipeplan.planner.answers import Estimate, Objective
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.estimating import estimate
from pipeplan.planner.estimates.seconds import TimeFactors
from pipeplan.planner.estimates.software import software
from pipeplan.strategies import strategy
from pipeplan.workload import RECOMPUTE, ModelShape, Precision


class PlanTrainer(Protocol):
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


NO_TRAINERS: Mapping[str, PlanTrainer] = MappingProxyType({})

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


def read_fixed(fix: Mapping[str, Any], trainers: Mapping[str, PlanTrainer] = NO_TRAINERS) -> dict[str, tuple[Any, ...]]:
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


def _read(choice: PlanChoice, value: Any, trainers: Mapping[str, PlanTrainer]) -> Any:
    readers = [trainer.read_layout for trainer in trainers.values()] if choice.field == "layers" else []
    for read_layout in filter(None, readers):
        with suppress(InputError):
            return read_layout(str(value))
    return choice.read(choice.names[0], value)


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


RESERVE_BYTES = 4.5 * GIBIBYTE
"""What a limit by default leaves of a GPU's memory: the allocator reserves 3.1 GiB more than is allocated (median of 43 runs
of SimuMax's B200 release), and the context and NCCL's buffers take about 1.4 GiB."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanRequest:
    """A model to train on all GPUs of a cluster.

    Attributes
    ----------
    model, cluster
        What, and on what.
    global_batch, sequence
        Sequences in a step, and tokens in a sequence.
    memory_limit
        Of a GPU; bytes that the framework may allocate.
    fixed
        By field, the values that it may have.
    trainers
        By name, the trainers that may be fixed.
    calibration
        Factors of the user's machine; None: analytic times as they are.

    Raises
    ------
    ShapeError
        For less than one GPU, sequence in a batch or token in a sequence.
    InputError
        For a memory limit that is not more than 0.
    """

    model: ModelShape
    cluster: Cluster
    global_batch: int
    sequence: int
    memory_limit: float
    fixed: Mapping[str, tuple[Any, ...]] = field(default_factory=lambda: MappingProxyType({}))
    trainers: Mapping[str, PlanTrainer] = field(default_factory=lambda: NO_TRAINERS)
    calibration: TimeFactors | None = None

    def __post_init__(self) -> None:
        for name in ("global_batch", "sequence"):
            if getattr(self, name) < 1:
                raise ShapeError(f"{name} must be at least 1, not {getattr(self, name)}", field=name)
        if self.gpus < 1:
            raise ShapeError(
                f"a plan needs GPUs: {self.cluster.nodes} nodes with {self.cluster.per_node} each have none",
                field="cluster",
            )
        if not self.memory_limit > 0:
            raise InputError(
                f"a memory limit must be more than 0, not {self.memory_limit:g} bytes", field="memory_limit"
            )

    def estimate(self, configuration: Configuration, schedule: Schedule | None = None) -> Estimate:
        """Return the estimate of a configuration, without an error bar; see :func:`pipeplan.planner.estimate`."""
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
    """Return so many nodes of a cluster with so many GPUs each."""
    if (nodes, per_node) == (cluster.nodes, cluster.per_node):
        return cluster
    return replace(cluster, nodes=nodes, per_node=per_node, domain=min(cluster.joined, per_node * nodes))


def default_limit(cluster: Cluster) -> float:
    """Return the default memory limit: a GPU's memory less :data:`RESERVE_BYTES`; bytes."""
    return max(cluster.gpu.memory_bytes - RESERVE_BYTES, cluster.gpu.memory_bytes / 2)


Value = Callable[[PlanRequest, float], float]
"""Of a request (which says the GPUs) and seconds of a step; it grows with the seconds."""

TIE = 1e-6
"""Weight of the step's time beside the number of GPUs: it decides among equal numbers only."""

LATE = 1e6
"""Factor on a step that misses the deadline: more than any number of GPUs."""


def value_of(objective: Objective, deadline: float | None) -> Value:
    """Return the function that an objective minimises.

    ``step-time`` and ``tokens`` a second are the same order where the batch is given: seconds of a step. ``cost`` is seconds
    of a step times GPUs, whatever a GPU's hour costs. ``gpus`` is the number of GPUs where the step meets the deadline, the
    quicker of equal ones first.

    Raises
    ------
    InputError
        For ``gpus`` without a deadline, a deadline without ``gpus``, or one that is not more than 0.
    """
    if (objective == "gpus") != (deadline is not None):
        rule = "the objective gpus needs a deadline: seconds that a step may take; for N tokens in T seconds that is "
        raise InputError(f"{rule}T x batch x sequence / N; no other objective takes one", field="deadline")
    if objective == "gpus":
        assert deadline is not None
        if not deadline > 0:
            raise InputError(f"a deadline must be more than 0 seconds, not {deadline:g}", field="deadline")
        return lambda request, seconds: (
            request.gpus * (1 + TIE * seconds / deadline) if seconds <= deadline else LATE * seconds / deadline
        )
    if objective == "cost":
        return lambda request, seconds: request.gpus * seconds
    return lambda _, seconds: seconds


def parts(cluster: Cluster, objective: Objective) -> list[Cluster]:
    """The cluster, or all parts of it that an objective compares: the smallest first.

    Those are a node's GPUs halved as often as they can be, and 1, 2, 3, 4, 6, 8, 12 ... nodes up to all.
    """
    if objective in {"step-time", "tokens"} or cluster.gpus < 1:
        return [cluster]
    counts = {base << shift for base in (1, 3) for shift in range(cluster.nodes.bit_length())}
    nodes = sorted({count for count in counts if count <= cluster.nodes} | {cluster.nodes})
    halves, inner = [], cluster.per_node
    while inner % 2 == 0:
        inner //= 2
        halves.append(part_of(cluster, 1, inner))
    whole = [part_of(cluster, count, cluster.per_node) for count in nodes]
    return [*reversed(halves), *whole]


def with_cluster(request: PlanRequest, cluster: Cluster) -> PlanRequest:
    """Return the same request for a part of the cluster."""
    return replace(request, cluster=cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProgress:
    """How far a plan is.

    Attributes
    ----------
    phase
        What it does, in a word or two.
    share
        Of its budget in seconds that is spent, 0 to 1.
    estimated
        Configurations so far.
    best
        The best that fits so far.
    """

    phase: str
    share: float
    estimated: int
    best: Estimate | None


PlanListener = Callable[[PlanProgress], None]
"""Receives how far a plan is; may raise KeyboardInterrupt, upon which the plan answers with what it has."""
