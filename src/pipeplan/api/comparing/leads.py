"""Changes after which another schedule is the fastest: slower transfers or less memory, found by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal, NamedTuple

import msgspec

from pipeplan.api.simulating.result import Result
from pipeplan.costs import Settings
from pipeplan.errors import PipeplanError
from pipeplan.model import tolerances
from pipeplan.readable import Times, change, size_text
from pipeplan.records import Record
from pipeplan.strategies import Strategy, is_strategy, strategy

MOST_WORK = 300_000
"""Budget in simulated ops, half a second of work; a larger comparison reports no transfers."""

_EACH = 1_000
"""Fixed cost of a simulation, expressed in ops."""

_BUILDING = 30
"""Cost of an op in a schedule that is generated from its costs, relative to a fixed order."""

_GRID = 6
"""Number of transfer times that are tried before the place between two of them is narrowed down."""

_BETWEEN = tuple(share / 64 for share in (1, 2, 4, 8, 16, 24, 32, 40, 48, 56))
"""Shares of the crossover at which a short earlier lead would show; denser near the current transfer time."""

_BESIDE = 0.01
"""Share by which transfers are lengthened to confirm that a generated schedule stays faster, since its order changes with
every transfer time."""

_HALVINGS = 10
"""Bisection steps between two transfer times, which locate the crossover to a thousandth of their distance."""

_DIGITS = 3
"""Significant digits of the reported transfer time, if one so short lies in the interval."""

_REACH = 2.0
"""Longest transfer that is tried, in forwards of one microbatch on a rank."""

_MOST_TIED = 3
"""Maximum number of tied schedules that are tried as the leader."""

_MOST_STEPS = 3
"""Maximum number of memory limits that are reported."""

Again = Callable[[Result, Settings], Result]
"""Function that simulates a schedule of the comparison on other settings."""

Timed = Callable[[Result, Settings], float]
"""Function that returns the makespan of a result's order on other settings."""


class Lead(Record, frozen=True):
    """Schedule that would be the fastest after a change.

    Attributes
    ----------
    change
        ``transfer``: transfers take longer than ``at``, up to which the leader leads; ``memory``: ranks have no more than
        ``at``.
    leader
        The schedule that leads before: of several equally fast ones, the one that leads for longest, or needs the least
        memory.
    at
        Transfer time, or memory in activations or bytes, in the units of the comparison.
    schedule, makespan
        Name and makespan of the next leader at ``at``. None if the first one still leads at ``at``, the longest transfer
        that was tried.
    left_out
        Schedules that are generated from their costs, and have too many ops to be regenerated.
    """

    change: Literal["transfer", "memory"]
    leader: str
    at: float
    schedule: str | None
    makespan: float | None
    left_out: tuple[str, ...] = ()


def leads_of(results: Sequence[Result], settings: Settings, again: Again, timed: Timed) -> tuple[Lead, ...]:
    """Return the changes after which another schedule leads, the transfer first.

    ``results`` are sorted: the best first, those over their limit last.
    """
    fitting = [result for result in results if result.fits]
    if len(fitting) < 2:
        return ()
    race = _Race(settings, again, timed)
    return (*_with_slower_transfers(fitting, race), *_with_less_memory(fitting, settings, again))


def made_from_costs(result: Result) -> bool:
    """Return whether the schedule is generated from its costs, so that other costs give another order."""
    return is_strategy(result.name) and strategy(result.name).looks_at_costs


@dataclass(slots=True)
class _Race:
    """Makespans of the schedules of a comparison by transfer time, each simulated once."""

    settings: Settings
    again: Again
    timed: Timed
    makespans: dict[tuple[str, float], float] = field(default_factory=dict)

    def makespan(self, result: Result, more: float) -> float:
        """Return the makespan with transfers that take ``more`` time; infinite if the schedule does not exist then."""
        if not more:
            return result.makespan
        key = (result.name, more)
        if key not in self.makespans:
            slower = replace(self.settings, p2p_time=self.settings.p2p_time + more)
            try:
                made = made_from_costs(result)
                self.makespans[key] = self.again(result, slower).makespan if made else self.timed(result, slower)
            except PipeplanError:
                self.makespans[key] = float("inf")
        return self.makespans[key]

    def near(self, leader: Result, rivals: Sequence[Result], low: float, high: float) -> list[Result]:
        """Return the rivals that can be faster than the leader between two transfer times."""
        # Makespans only grow with transfers.
        most = self.makespan(leader, high)
        return [
            rival
            for rival in rivals
            if (rival.bound.value if made_from_costs(rival) else self.makespan(rival, low)) < most
        ]

    def winner(self, leader: Result, rivals: Sequence[Result], more: float) -> Result | None:
        """Return the rival that is faster than the leader and the others, and not only at this very transfer time."""
        for rival in sorted(rivals, key=lambda candidate: self.makespan(candidate, more)):
            if not self._shorter(rival, leader, more):
                return None
            lucky = made_from_costs(rival) or made_from_costs(leader)
            if not lucky or self._shorter(rival, leader, more + _BESIDE * (leader.costs.transfer.time() + more)):
                return rival
        return None

    def _shorter(self, one: Result, other: Result, more: float) -> bool:
        return self.makespan(one, more) < self.makespan(other, more) * (1 - tolerances.ROUNDING)


def _with_slower_transfers(fitting: Sequence[Result], race: _Race) -> Iterator[Lead]:
    """Yield the transfer time at which another schedule takes over, or up to which none does."""
    now = fitting[0].costs.transfer.time()
    reach = _REACH * float(fitting[0].costs.forward.sum()) / fitting[0].schedule.ranks
    runners = _runners(fitting)
    if runners is None:
        return
    left_out = tuple(result.name for result in fitting if result not in runners)
    tied = _tied(runners)
    leads = {leader.name: _lead_of(leader, runners, race, now, reach) for leader in tied[:_MOST_TIED]}
    longest = max(leads.values(), key=lambda lead: lead.at)
    # The schedule that takes over may be one of the tied that was not looked at, and then leads from the beginning.
    while (later := [leader for leader in tied if leader.name == longest.schedule]) and later[0].name not in leads:
        leads[later[0].name] = _lead_of(later[0], runners, race, now, reach)
        longest = max(leads.values(), key=lambda lead: lead.at)
    yield msgspec.structs.replace(longest, left_out=left_out)


def _lead_of(leader: Result, runners: Sequence[Result], race: _Race, now: float, reach: float) -> Lead:
    """Return which schedule takes over from a leader as transfers get slower, and up to which transfer it leads."""
    rivals = race.near(leader, [result for result in runners if result is not leader], 0.0, reach)
    lost = _first(race, leader, rivals, [reach * step / _GRID for step in range(1, _GRID + 1)])
    last = None
    while lost is not None:
        # Leads that are lost and won again before it are looked for: the first one that is lost counts.
        last, lost = lost, _first(race, leader, rivals, [lost.after * share for share in _BETWEEN])
    if last is None:
        return Lead("transfer", leader.name, now + reach, None, None)
    end, winner = _in_few_digits(race, leader, rivals, last, now)
    return Lead("transfer", leader.name, now + end, winner.name, race.makespan(winner, end))


class _Lost(NamedTuple):
    """Interval in which a lead is lost: held at ``before``, lost to the winner at ``after``."""

    before: float
    after: float
    winner: Result


def _first(race: _Race, leader: Result, rivals: Sequence[Result], transfers: Sequence[float]) -> _Lost | None:
    """Return the interval in which a rival is faster for the first time; None if none is."""
    low = 0.0
    for transfer in transfers:
        winner = race.winner(leader, race.near(leader, rivals, low, transfer), transfer)
        if winner is not None:
            lost = _Lost(low, transfer, winner)
            for _ in range(_HALVINGS):
                lost = _halved(race, leader, rivals, lost, (lost.before + lost.after) / 2)
            return lost
        low = transfer
    return None


def _halved(race: _Race, leader: Result, rivals: Sequence[Result], lost: _Lost, middle: float) -> _Lost:
    earlier = race.winner(leader, race.near(leader, rivals, lost.before, middle), middle)
    return lost._replace(before=middle) if earlier is None else lost._replace(after=middle, winner=earlier)


def _in_few_digits(
    race: _Race, leader: Result, rivals: Sequence[Result], lost: _Lost, now: float
) -> tuple[float, Result]:
    """Return the end of the lead, with few digits if such a transfer lies in the interval."""
    short = float(f"{now + lost.after:.{_DIGITS}g}") - now
    if lost.before < short < lost.after:
        lost = _halved(race, leader, rivals, lost, short)
    return lost.before, lost.winner


def _runners(fitting: Sequence[Result]) -> list[Result] | None:
    """Return the schedules that are cheap enough to simulate repeatedly; None if even the fixed orders have too many ops."""
    orders = [result for result in fitting if not made_from_costs(result)]
    if sum(map(_work, fitting)) * _GRID <= MOST_WORK:
        return list(fitting)
    if not orders or orders[0] is not fitting[0] or sum(map(_work, orders)) * _GRID > MOST_WORK:
        return None
    return orders


def _tied(fitting: Sequence[Result]) -> list[Result]:
    shortest = fitting[0].makespan * (1 + tolerances.ROUNDING)
    return [result for result in fitting if result.makespan <= shortest]


def _work(result: Result) -> int:
    return work_of(len(result.schedule), strategy(result.name) if is_strategy(result.name) else None)


def work_of(ops: int, made_by: Strategy | None) -> int:
    """Return the cost of one simulation, in ops of a large fixed order."""
    return ops * (_BUILDING if made_by is not None and made_by.looks_at_costs else 1) + _EACH


def _with_less_memory(fitting: Sequence[Result], settings: Settings, again: Again) -> Iterator[Lead]:
    """Yield the fastest schedule under each limit that rules out the one before."""
    in_bytes = fitting[0].memory.peak_bytes is not None
    leader = ahead = min(_tied(fitting), key=attrgetter("peak"))
    for _ in range(_MOST_STEPS):
        smaller = [
            result
            for result in fitting
            if not made_from_costs(result) and result.peak < ahead.peak * (1 - tolerances.MEMORY)
        ]
        if not smaller:
            return
        best = min(smaller, key=lambda result: result.makespan)
        limit = best.peak
        for other in _made_within(fitting, settings, again, limit, in_bytes=in_bytes):
            if other.makespan < best.makespan * (1 - tolerances.ROUNDING):
                best = other
        yield Lead("memory", leader.name, limit, best.name, best.makespan)
        ahead = best


def _made_within(
    fitting: Sequence[Result], settings: Settings, again: Again, limit: float, *, in_bytes: bool
) -> Iterator[Result]:
    """Yield the generated schedules that exist under a limit."""
    limited = replace(settings, memory_limit=limit if in_bytes else f"{limit}act")
    for result in fitting:
        if made_from_costs(result) and _work(result) <= MOST_WORK // 20:
            try:
                regenerated = again(result, limited)
            except PipeplanError:
                continue
            if regenerated.fits:
                yield regenerated


def changes_in_words(leads: Sequence[Lead], results: Sequence[Result]) -> tuple[str, ...]:
    """Return one sentence per change that would make another schedule the fastest."""
    slower = [_slower(results[0], lead) for lead in leads if lead.change == "transfer"]
    steps = [lead for lead in leads if lead.change == "memory"]
    return (*slower, *([_smaller(results, steps)] if steps else []))


def _slower(first: Result, lead: Lead) -> str:
    now, at = first.costs.transfer.time(), _rounded_down(lead.at)
    form = Times.of((at, now), first.timeline.unit)
    today = f" (now {form.text(now)})" if now else ""
    kept = f" ({' and '.join(lead.left_out)} not regenerated)" if lead.left_out else ""
    fastest = f"{lead.leader} is fastest for transfers up to {form.text(at)}{today}"
    if lead.schedule is None:
        return f"{fastest}, the longest that was simulated{kept}."
    return f"{fastest}; beyond that, {lead.schedule}{kept}."


def _rounded_down(transfer: float) -> float:
    """Return a transfer time rounded down to three digits, at which the leader still leads."""
    rounded = float(f"{transfer:.3g}")
    if rounded <= transfer * (1 + tolerances.ROUNDING):
        return rounded
    return float(f"{rounded - 10.0 ** (math.floor(math.log10(rounded)) - 2):.3g}")


def _smaller(results: Sequence[Result], steps: Sequence[Lead]) -> str:
    leader = next(result for result in results if result.name == steps[0].leader)
    times = times_of(results)
    in_bytes = leader.memory.peak_bytes is not None
    # Rounded up, so that a limit of this size admits the schedule.
    peaks = [
        size_text(value, up=True) if in_bytes else f"{math.ceil(value * 1000 - 1e-6) / 1000:.7g} activations"
        for value in (leader.peak, *(step.at for step in steps))
    ]
    faster = [
        f"{step.schedule} ({peak}, {_longer(leader, step, times)})" for peak, step in zip(peaks[1:], steps, strict=True)
    ]
    return f"{leader.name} needs {peaks[0]} per rank. Fastest with less: {', '.join(faster)}."


def _longer(first: Result, step: Lead, times: Times) -> str:
    assert step.makespan is not None
    return f"{times.text(step.makespan)}, {change(step.makespan / first.makespan - 1)}"


def times_of(results: Sequence[Result]) -> Times:
    """Return how the makespans and bounds of a comparison are written."""
    return Times.of(
        (value for result in results for value in (result.makespan, result.lower_bound)), results[0].time_unit
    )
