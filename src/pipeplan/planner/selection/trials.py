"""Estimates as tasks that any process can do, and the rounds in which they are made."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from pipeplan.hardware import Cluster
from pipeplan.planner.answers import Estimate
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.seconds import UNCALIBRATED, TimeFactors
from pipeplan.planner.selection.finalists import laid_out
from pipeplan.planner.selection.request import PlanRequest, part_of
from pipeplan.sweeps import SweepTask
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
    calibration: TimeFactors | None = None

    def factor(self, kind: str) -> float:
        """Return the factor of a kind of work."""
        own = (self.calibration or UNCALIBRATED).factor(kind)
        return own * self.by if kind in self.kinds else own


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedInput:
    """A changed input of an estimate.

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

    def on_factors(self, calibration: TimeFactors | None) -> TimeFactors | None:
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
class LayoutTask:
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
    change: ChangedInput | None = None
    layout: LayoutTask | None = None

    @property
    def key(self) -> str:
        """Return the key of its answer in a store."""
        text = f"{self.per_node}x{self.nodes} {self.configuration} {self.change} {self.layout}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def task(self) -> SweepTask[Trial]:
        """Return it as a task of a sweep."""
        return SweepTask(self.key, self)


def tried(trial: Trial, *, model: ModelShape, cluster: Cluster, calibration: TimeFactors | None) -> Estimate:
    """The estimate of a trial."""
    part = part_of(cluster, trial.nodes, trial.per_node)
    configuration = trial.configuration
    if trial.change is not None:
        configuration = trial.change.on_configuration(configuration)
        part = trial.change.on_cluster(part)
        calibration = trial.change.on_factors(calibration)
    request = PlanRequest(
        model=model,
        cluster=part,
        global_batch=configuration.global_batch,
        sequence=configuration.sequence,
        memory_limit=inf if trial.layout is None else trial.layout.memory_limit,
        calibration=calibration,
    )
    found = request.estimate(configuration)
    if trial.layout is None:
        return found
    return laid_out(request, found, seconds=trial.layout.seconds, by_stage=trial.layout.by_stage)


def identity(model: ModelShape, cluster: Cluster, calibration: TimeFactors | None) -> Mapping[str, Any]:
    """Return what the answers of trials depend on beside the trials."""
    return {"what": "plan", "model": str(model), "cluster": str(cluster), "calibration": str(calibration)}


class Rounds:
    """An iterator of a sweep's tasks that pauses at the end of each round.

    A sweep asks again whenever something has finished, so the pause is a stop: where tasks of the round are under way,
    there is nothing more to draw for now.
    """

    def __init__(self, rounds: Iterator[list[Trial]]) -> None:
        self._rounds = rounds
        self._queue: deque[Trial] = deque()
        self._drawn: set[str] = set()
        self._under_way = 0

    def finished(self) -> None:
        """Count a task as finished."""
        self._under_way -= 1

    def __iter__(self) -> Rounds:
        return self

    def __next__(self) -> SweepTask[Trial]:
        """The next task of this round, or of the next one."""
        while not self._queue:
            if self._under_way:
                raise StopIteration
            new = {trial.key: trial for trial in next(self._rounds) if trial.key not in self._drawn}
            self._queue.extend(new.values())
            self._drawn.update(new)
        self._under_way += 1
        return self._queue.popleft().task
