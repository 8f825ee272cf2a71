"""What a plan is asked: a model, a cluster, a batch, what is decided already and what is minimised; and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from pipeplan.errors import InputError, ShapeError
from pipeplan.files import GIBIBYTE
from pipeplan.hardware import Cluster
from pipeplan.model import Schedule
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import Estimate
from pipeplan.planner.estimates.estimating import estimate
from pipeplan.planner.estimates.seconds import TimeFactors
from pipeplan.planner.planned import Objective
from pipeplan.planner.selection.choices import NO_TRAINERS, PlannedTrainer
from pipeplan.workload import ModelShape

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
    trainers: Mapping[str, PlannedTrainer] = field(default_factory=lambda: NO_TRAINERS)
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
