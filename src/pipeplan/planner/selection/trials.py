"""One estimate as a task that any process can do: what is tried, under which name it is stored, and its answer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeplan.hardware import Cluster
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import Estimate
from pipeplan.planner.estimates.estimating import estimate
from pipeplan.planner.estimates.seconds import UNCALIBRATED, Factors
from pipeplan.planner.selection.finalists import laid_out
from pipeplan.sweeps import Task
from pipeplan.workload import ModelShape


@dataclass(frozen=True, slots=True)
class Scaled:
    """Factors of one's own machine, some kinds of work times another factor.

    Attributes
    ----------
    kinds, by
        Which, and by how much their time grows.
    calibration
        The machine's own factors; None: 1.
    """

    kinds: tuple[str, ...]
    by: float
    calibration: Factors | None = None

    def factor(self, kind: str) -> float:
        """Of a kind of work."""
        own = (self.calibration or UNCALIBRATED).factor(kind)
        return own * self.by if kind in self.kinds else own


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One input that is not as assumed.

    Attributes
    ----------
    input
        In words.
    factor
        On it.
    bandwidth_inside, bandwidth_between
        Factors on the bandwidth of the links.
    kinds
        Kinds of work (of a calibration) that the input is about.
    cost
        Whether the input is the time of these kinds; else it is their speed.
    op_gap
        Seconds that each op loses besides; None: as assumed.
    """

    input: str
    factor: float
    bandwidth_inside: bool = False
    bandwidth_between: bool = False
    kinds: tuple[str, ...] = ()
    cost: bool = False
    op_gap: float | None = None

    def on_cluster(self, cluster: Cluster) -> Cluster:
        """The cluster with it."""
        inside, between = cluster.inside, cluster.between
        if self.bandwidth_inside:
            inside = replace(
                inside,
                bandwidth=inside.bandwidth * self.factor,
                peer_bandwidth=_times(inside.peer_bandwidth, self.factor),
            )
        if self.bandwidth_between:
            between = replace(between, bandwidth=between.bandwidth * self.factor)
        return replace(cluster, inside=inside, between=between)

    def on_factors(self, calibration: Factors | None) -> Factors | None:
        """The machine's factors with it."""
        if not self.kinds:
            return calibration
        return Scaled(self.kinds, self.factor if self.cost else 1.0 / self.factor, calibration)

    def on_configuration(self, configuration: Configuration) -> Configuration:
        """The configuration with it."""
        return configuration if self.op_gap is None else replace(configuration, op_gap=self.op_gap)


def _times(bandwidth: float | None, factor: float) -> float | None:
    return None if bandwidth is None else bandwidth * factor


@dataclass(frozen=True, slots=True)
class Layout:
    """A finalist is to be laid out.

    Attributes
    ----------
    memory_limit
        Of a GPU; bytes.
    seconds
        To search.
    by_stage
        Whether stages may compute different modules again.
    """

    memory_limit: float
    seconds: float
    by_stage: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration to estimate.

    Attributes
    ----------
    configuration, nodes, per_node
        On so much of the cluster.
    change
        An input that is not as assumed; None: all are.
    layout
        How its layers are to be laid out; None: as the configuration says.
    """

    configuration: Configuration
    nodes: int
    per_node: int
    change: Change | None = None
    layout: Layout | None = None

    @property
    def key(self) -> str:
        """What it is stored by."""
        text = f"{self.per_node}x{self.nodes} {self.configuration} {self.change} {self.layout}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def task(self) -> Task[Trial]:
        """For a sweep."""
        return Task(self.key, self)


def tried(trial: Trial, *, model: ModelShape, cluster: Cluster, calibration: Factors | None) -> Estimate:
    """The estimate of a trial."""
    part = part_of(cluster, trial.nodes, trial.per_node)
    configuration = trial.configuration
    if trial.change is not None:
        configuration = trial.change.on_configuration(configuration)
        part = trial.change.on_cluster(part)
        calibration = trial.change.on_factors(calibration)
    found = estimate(model, part, configuration, calibration=calibration, with_error_bar=False)
    if trial.layout is None:
        return found
    return laid_out(
        model,
        part,
        found,
        memory_limit=trial.layout.memory_limit,
        seconds=trial.layout.seconds,
        calibration=calibration,
        by_stage=trial.layout.by_stage,
    )


def part_of(cluster: Cluster, nodes: int, per_node: int) -> Cluster:
    """So much of a cluster."""
    if (nodes, per_node) == (cluster.nodes, cluster.per_node):
        return cluster
    return replace(cluster, nodes=nodes, per_node=per_node, domain=min(cluster.joined, per_node * nodes))


def identity(model: ModelShape, cluster: Cluster, calibration: Factors | None) -> Mapping[str, Any]:
    """What the answers of trials depend on beside themselves."""
    return {"what": "plan", "model": str(model), "cluster": str(cluster), "calibration": str(calibration)}
