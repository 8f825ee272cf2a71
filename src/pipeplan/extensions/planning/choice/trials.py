"""Estimates as independent tasks for any process, and the rounds in which they run."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from pipeplan.extensions.planning.choice.finalists import laid_out
from pipeplan.extensions.planning.choice.request import PlanRequest, part_of
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.seconds import UNCALIBRATED, TimeFactors
from pipeplan.extensions.planning.hardware import Cluster, Link
from pipeplan.extensions.planning.results import Estimate
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.foundation.sweeps import SweepTask


@dataclass(frozen=True, slots=True)
class Scaled:
    """Correction factors of a machine (None: 1), by which the time of some kinds of work is multiplied."""

    kinds: tuple[str, ...]
    by: float
    calibration: TimeFactors | None = None

    def factor(self, kind: str) -> float:
        """Return the factor of a kind of work."""
        # A factor multiplies time; a change of speed is its inverse.
        own = (self.calibration or UNCALIBRATED).factor(kind)
        return own * self.by if kind in self.kinds else own


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedInput:
    """Trial change of one input of an estimate, such as a bandwidth or the speed of a kind of work.

    Attributes
    ----------
    input
        Name of the input.
    factor
        Factor on the input.
    links
        Links whose bandwidth the factor applies to: ``inside`` or ``between`` nodes.
    kinds
        Kinds of work (of a calibration) that the factor applies to.
    cost
        Whether the input is the time of these kinds; otherwise it is their speed.
    op_gap
        Overhead between ops in seconds; None: unchanged.
    """

    input: str
    factor: float
    links: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    cost: bool = False
    op_gap: float | None = None

    def on_cluster(self, cluster: Cluster) -> Cluster:
        """Return the cluster with this change applied."""
        changed: dict[str, Any] = {}
        for name in self.links:
            link: Link = getattr(cluster, name)
            peer = None if link.peer_bandwidth is None else link.peer_bandwidth * self.factor
            changed[name] = replace(link, bandwidth=link.bandwidth * self.factor, peer_bandwidth=peer)
        return replace(cluster, **changed)

    def on_factors(self, calibration: TimeFactors | None) -> TimeFactors | None:
        """Return the correction factors with the change."""
        if not self.kinds:
            return calibration
        return Scaled(self.kinds, self.factor if self.cost else 1.0 / self.factor, calibration)

    def on_configuration(self, configuration: Configuration) -> Configuration:
        """Return the configuration with the change."""
        return configuration if self.op_gap is None else replace(configuration, op_gap=self.op_gap)


@dataclass(frozen=True, slots=True)
class LayoutTask:
    """Layout search for a finalist: bytes per GPU, seconds, and whether stages may recompute differently."""

    memory_limit: float
    seconds: float
    by_stage: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """Configuration to estimate on a part of the cluster, with a changed input or a layout search if there is one."""

    configuration: Configuration
    nodes: int
    per_node: int
    change: ChangedInput | None = None
    layout: LayoutTask | None = None

    @property
    def key(self) -> str:
        """Key of the answer in a store."""
        text = f"{self.per_node}x{self.nodes} {self.configuration} {self.change} {self.layout}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def tried(trial: Trial, *, model: ModelShape, cluster: Cluster, calibration: TimeFactors | None) -> Estimate:
    """Return the estimate of a trial."""
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
    estimate = request.estimate(configuration)
    if trial.layout is None:
        return estimate
    return laid_out(request, estimate, seconds=trial.layout.seconds, by_stage=trial.layout.by_stage)


def identity(model: ModelShape, cluster: Cluster, calibration: TimeFactors | None) -> Mapping[str, Any]:
    """Return the inputs that the answers of trials depend on besides the trials themselves."""
    return {"what": "plan", "model": str(model), "cluster": str(cluster), "calibration": str(calibration)}


class Rounds:
    """Iterator over a sweep's tasks that pauses at the end of each round.

    A sweep asks for more tasks whenever one finishes. While tasks of the round are in progress, the iterator stops; the next
    round begins when all of them are done.
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
        """Return the next task of this round, or the first of the next one."""
        while not self._queue:
            if self._under_way:
                raise StopIteration
            new = {trial.key: trial for trial in next(self._rounds) if trial.key not in self._drawn}
            self._queue.extend(new.values())
            self._drawn.update(new)
        self._under_way += 1
        trial = self._queue.popleft()
        return SweepTask(trial.key, trial)
