"""Best places of collectives in given rows: candidates by rules, then a local search on simulated runs.

On one rank, and for gathers of equal length, this is prefetching and caching with one disk; over all ranks, what delays
one rank is slack on another. So rules make candidates, decisions of single ranks are varied, and then single collectives are
moved. A placement is better if it fits where another does not, if its makespan is shorter, or, with the same makespan, if
its peak memory is lower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from pipeplan.costs import Communication, Costs, Limits
from pipeplan.model import COLLECTIVE_KINDS, Kind, Objective, Schedule, tolerances
from pipeplan.passes import Lookahead, ShardingRule, insert_communication, without_collectives
from pipeplan.simulation.placed import Placed
from pipeplan.simulation.posting import post_messages
from pipeplan.simulation.residency import PlainRows, Residency, most_stages
from pipeplan.simulation.simulator import Simulation, simulate

Value = tuple[float, float, float]
"""Memory over the limits, objective, and peak memory: the smaller, the better."""

HOLDS = (0, 1, 4)
"""Numbers of next ops whose gathers precede a reduction, in candidates by rules."""

MOST_WORK = 400_000
"""Op evaluations spent on the candidates of one schedule."""

HEAT, COOLING = 0.3, 30.0
"""First temperature of the annealing in mean collectives, and by how much it falls."""

FEWEST, MOST = 60, 600
"""Bounds of the number of candidates."""


def best_collectives(
    schedule: Schedule,
    costs: Costs,
    *,
    limits: Limits | None = None,
    communication: Communication = "edge",
    objective: Objective = "makespan",
    evaluations: int | None = None,
    starts: Iterable[Schedule] = (),
    seed: int = 0,
) -> Schedule:
    """Return the schedule with its collectives where they delay it least.

    Parameters
    ----------
    schedule
        The schedule, whose other ops keep their order; its own collectives are one of the candidates. If transfers need
        messages, and it has none, it gets them.
    costs, limits, communication, objective
        Costs, memory limits, model of transfers, and what to minimize.
    evaluations
        Number of simulated candidates; default: about ``MOST_WORK`` op evaluations.
    starts
        The same rows with collectives, than which the result is not worse.
    seed
        Seed of the random moves.
    """
    search = _Search(costs, limits, communication, objective)
    compute = without_collectives(schedule)
    plain = search.with_messages(compute)
    if evaluations is None:
        evaluations = min(max(MOST_WORK // max(len(plain), 1), FEWEST), MOST)
    random = np.random.default_rng(seed)
    if schedule.has(Kind.UNSHARD):
        search.offer(search.with_messages(schedule))
    for start in starts:
        search.offer(start)
    for placed in _by_rules(plain):
        search.offer(placed)
    if plain is not compute:
        # Collectives count as steps where messages are inserted behind them: other orders of messages.
        for placed in _by_rules(compute):
            search.offer(search.with_messages(placed))
    _by_paging(search, PlainRows(plain, costs.memory.rule(plain.placement, limits)), evaluations // 2, random)
    _collective_by_collective(search, evaluations, random)
    assert search.best is not None
    return search.best.schedule


class _Search:
    """The best simulated placement so far."""

    def __init__(self, costs: Costs, limits: Limits | None, communication: Communication, objective: Objective) -> None:
        self._costs, self._limits, self._communication, self._objective = costs, limits, communication, objective
        self.best: Simulation | None = None
        self.value: Value = (np.inf, np.inf, np.inf)
        self.evaluations = 0

    def with_messages(self, schedule: Schedule) -> Schedule:
        if schedule.has(Kind.SEND_F):
            return schedule
        if self._communication == "streams":
            return post_messages(schedule, self._costs)
        return insert_communication(schedule) if self._communication == "blocking" else schedule

    def offer(self, schedule: Schedule) -> Value:
        """Simulate a placement, take it if it is at least as good as the best one, and return its value."""
        return self.judged(schedule)[0]

    def judged(self, schedule: Schedule) -> tuple[Value, Simulation]:
        """Return the value and the simulation of a placement, which is taken if it is at least as good as the best one."""
        self.evaluations += 1
        simulation = simulate(schedule, self._costs, communication=self._communication, limits=self._limits)
        value = self._value(simulation)
        if value <= self.value:
            self.best, self.value = simulation, value
        return value, simulation

    def _value(self, simulation: Simulation) -> Value:
        timeline, memory, limits = simulation.timeline, simulation.memory, self._limits
        over = 0.0
        peaks = memory.peak_activation if memory.peak_bytes is None else memory.peak_bytes
        if limits is not None:
            held = memory.peak_activation if limits.in_activations else peaks
            excess = held - limits.values - tolerances.SEARCHED_MEMORY * np.maximum(limits.values, 1.0)
            over = float(np.maximum(excess, 0.0).sum())
        value = timeline.makespan if self._objective == "makespan" else timeline.longest_span
        # Sums of the same times in other orders are equal.
        return over, float(f"{value:.12g}"), float(peaks.max(initial=0.0))


def _by_rules(plain: Schedule) -> Iterator[Schedule]:
    """Yield the placements of trainers."""
    for active in range(1, most_stages(plain.placement) + 1):
        # More stages than a rank has make no difference, and long lookaheads little.
        lookaheads: list[Lookahead] = ["full", "auto", *range(1, min(active, 4))]
        for ahead in lookaheads if active > 1 else lookaheads[:1]:
            yield ShardingRule("pytorch", active, ahead)(plain)
    yield ShardingRule("megatron")(plain)


def _by_paging(search: _Search, rows: PlainRows, evaluations: int, random: np.random.Generator) -> None:
    """Offer placements with the same decisions on all ranks, and vary the best ones rank by rank."""
    placement, most = rows.schedule.placement, most_stages(rows.schedule.placement)
    alike = [Residency.alike(placement, *decisions) for decisions in _decisions(most)]
    values = [search.offer(rows.placed(residency)) for residency in alike]
    best = min(range(len(alike)), key=values.__getitem__)
    current, value = alike[best], values[best]
    while search.evaluations < evaluations and most > 1:
        neighbour = current.moved(random)
        reached = search.offer(rows.placed(neighbour))
        if reached <= value:
            current, value = neighbour, reached


def _decisions(stages: int) -> Iterator[tuple[int, int, int]]:
    """Yield decisions of a rank with so many stages."""
    for ahead in sorted({*range(1, min(stages, 4) + 1), stages}):
        for eager in sorted({0, min(ahead, 2), ahead} - {1}):
            for hold in HOLDS if stages > 1 else HOLDS[:1]:
                yield ahead, eager, hold


def _collective_by_collective(search: _Search, evaluations: int, random: np.random.Generator) -> None:
    """Anneal the best placement: move single collectives, keep stages gathered, and free them in between."""
    assert search.best is not None
    simulation, value = search.best, search.value
    current, delaying = Placed.of(simulation.schedule), None
    first, tried = search.evaluations, 0
    schedule = simulation.schedule
    unit = float(simulation.costs.durations(schedule)[schedule.where(*COLLECTIVE_KINDS)].mean())
    while search.evaluations < evaluations and tried < 4 * evaluations:
        tried += 1
        if delaying is None:
            delaying = current.delaying(simulation.timeline)
        neighbour = current.moved(random, delaying)
        if neighbour is None:
            continue
        share = (search.evaluations - first) / max(evaluations - first, 1)
        accepted = value[1] + unit * HEAT * COOLING**-share * float(random.exponential())
        reached, simulated = search.judged(neighbour.schedule)
        # Neither the peak nor, to a degree, the makespan decides on the way.
        if reached[0] <= value[0] and (reached[0] < value[0] or reached[1] <= accepted):
            current, simulation, value, delaying = neighbour, simulated, reached, None
