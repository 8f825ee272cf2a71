"""What would change which schedule of a comparison leads, slower transfers or less memory: simulated, not guessed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import msgspec

from pipeplan.api.results import Result
from pipeplan.costs import Settings
from pipeplan.errors import PipeplanError
from pipeplan.model import tolerances
from pipeplan.readable import Times, change, size_text
from pipeplan.records import Record
from pipeplan.strategies import Strategy, is_strategy, strategy

MOST_WORK = 300_000
"""Ops that are timed to find out, half a second of work; a comparison that would need more says nothing of transfers."""

_EACH = 1_000
"""What one more simulation costs besides its ops, in ops."""

_BUILDING = 30
"""How many times as long an op takes in a schedule that is made from its costs."""

_GRID = 6
"""Transfer times that are looked at before the place between two of them is narrowed down."""

_BETWEEN = tuple(share / 64 for share in (1, 2, 4, 8, 16, 24, 32, 40, 48, 56))
"""Shares of the place that was found at which a short lead before it would be seen; more of them near to what is now."""

_BESIDE = 0.01
"""How much further a schedule that is made from its costs has to be shorter too: another order can be had for any others."""

_HALVINGS = 10
"""Times that the place between two transfer times is halved: it is then known to a thousandth of what lay between them."""

_DIGITS = 3
"""Digits of the transfer time that is named, if the place that was found allows for one so short."""

_REACH = 2.0
"""How much slower transfers are looked at, in forwards of one microbatch on a rank."""

_MOST_TIED = 3
"""Equally short ones that are tried as the leader."""

_MOST_STEPS = 3
"""Limits below each other that are named."""

Again = Callable[[Result, Settings], Result]
"""Simulates a schedule of the comparison on other settings."""

Timed = Callable[[Result, Settings], float]
"""The makespan of the order that a result has on other settings."""


class Lead(Record, frozen=True):
    """The schedule that would be the shortest.

    Attributes
    ----------
    change
        ``transfer``: where a transfer takes longer than ``at``, up to which the leader leads; ``memory``: where a rank has
        no more than ``at``.
    leader
        The schedule that leads before: of several that are equally short, the one that keeps the lead for longest, or needs
        least memory.
    at
        A time, or memory in activations or bytes, as the comparison has them.
    schedule, makespan
        Which one it is, and how long it takes at ``at``. None where ``at`` is as far as was looked, and the first one still
        leads.
    left_out
        Schedules that are made from their costs and were too many ops to be made again: they stand as they are.
    """

    change: Literal["transfer", "memory"]
    leader: str
    at: float
    schedule: str | None
    makespan: float | None
    left_out: tuple[str, ...] = ()


def leads_of(results: Sequence[Result], settings: Settings, again: Again, timed: Timed) -> tuple[Lead, ...]:
    """What would lead, the transfer first; empty where nothing else fits or the comparison is too large.

    Parameters
    ----------
    results
        The best first, those over their limit last.
    settings
        That they were simulated on.
    """
    fitting = [result for result in results if result.fits]
    if len(fitting) < 2:
        return ()
    race = _Race(settings, again, timed)
    return (*_with_slower_transfers(fitting, race), *_with_less_memory(fitting, settings, again))


def made_from_costs(result: Result) -> bool:
    """Whether other costs or limits would give another order."""
    return is_strategy(result.name) and strategy(result.name).looks_at_costs


@dataclass(slots=True)
class _Race:
    """Makespans by transfer time, each simulated once."""

    settings: Settings
    again: Again
    timed: Timed
    known: dict[tuple[str, float], float] = field(default_factory=dict)

    def makespan(self, result: Result, more: float) -> float:
        """With transfers that take ``more`` time; infinite where the schedule cannot be had then."""
        if not more:
            return result.makespan
        key = (result.name, more)
        if key not in self.known:
            slower = replace(self.settings, p2p_time=self.settings.p2p_time + more)
            try:
                made = made_from_costs(result)
                self.known[key] = self.again(result, slower).makespan if made else self.timed(result, slower)
            except PipeplanError:
                self.known[key] = float("inf")
        return self.known[key]

    def near(self, leader: Result, rivals: Sequence[Result], low: float, high: float) -> list[Result]:
        """The rivals that can be shorter than the leader between two transfer times: none is shorter with slower ones."""
        most = self.makespan(leader, high)
        return [
            rival
            for rival in rivals
            if (rival.bound.value if made_from_costs(rival) else self.makespan(rival, low)) < most
        ]

    def winner(self, leader: Result, rivals: Sequence[Result], more: float) -> Result | None:
        """The rival that is shorter than the leader, and than the others, and not by the luck of one transfer time."""
        for rival in sorted(rivals, key=lambda each: self.makespan(each, more)):
            if not self._shorter(rival, leader, more):
                return None
            lucky = made_from_costs(rival) or made_from_costs(leader)
            if not lucky or self._shorter(rival, leader, more + _BESIDE * (leader.costs.transfer.time() + more)):
                return rival
        return None

    def _shorter(self, one: Result, other: Result, more: float) -> bool:
        return self.makespan(one, more) < self.makespan(other, more) * (1 - tolerances.ROUNDING)


def _with_slower_transfers(fitting: Sequence[Result], race: _Race) -> Iterator[Lead]:
    """When another schedule takes over, or how far none does."""
    now = fitting[0].costs.transfer.time()
    reach = _REACH * float(fitting[0].costs.forward.sum()) / fitting[0].schedule.ranks
    runners = _runners(fitting)
    if runners is None:
        return
    left_out = tuple(result.name for result in fitting if result not in runners)
    found = [_lead_of(leader, runners, race, now, reach) for leader in _tied(runners)[:_MOST_TIED]]
    yield msgspec.structs.replace(max(found, key=lambda lead: lead.at), left_out=left_out)


def _lead_of(leader: Result, runners: Sequence[Result], race: _Race, now: float, reach: float) -> Lead:
    """Which one takes over from a leader as transfers get slower, and up to which transfer it leads."""
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
    """About where in these transfers a rival is shorter for the first time, and which one; None where none is."""
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
    """The part, before or after ``middle``, in which the lead is lost."""
    earlier = race.winner(leader, race.near(leader, rivals, lost.before, middle), middle)
    return lost._replace(before=middle) if earlier is None else lost._replace(after=middle, winner=earlier)


def _in_few_digits(
    race: _Race, leader: Result, rivals: Sequence[Result], lost: _Lost, now: float
) -> tuple[float, Result]:
    """The end of the lead beside today's transfer, in few digits where such a transfer is among those that remain."""
    short = float(f"{now + lost.after:.{_DIGITS}g}") - now
    if lost.before < short < lost.after:
        lost = _halved(race, leader, rivals, lost, short)
    return lost.before, lost.winner


def _runners(fitting: Sequence[Result]) -> list[Result] | None:
    """Those that can be simulated again and again; None where even the orders that stay as they are are too many ops."""
    orders = [result for result in fitting if not made_from_costs(result)]
    if sum(map(_work, fitting)) * _GRID <= MOST_WORK:
        return list(fitting)
    if not orders or orders[0] is not fitting[0] or sum(map(_work, orders)) * _GRID > MOST_WORK:
        return None
    return orders


def _tied(fitting: Sequence[Result]) -> list[Result]:
    """Those that are as short as the first one."""
    shortest = fitting[0].makespan * (1 + tolerances.ROUNDING)
    return [result for result in fitting if result.makespan <= shortest]


def _work(result: Result) -> int:
    return work_of(len(result.schedule), strategy(result.name) if is_strategy(result.name) else None)


def work_of(ops: int, made_by: Strategy | None) -> int:
    """What one simulation costs, in ops of one that is large and stands as it is."""
    return ops * (_BUILDING if made_by is not None and made_by.looks_at_costs else 1) + _EACH


def _with_less_memory(fitting: Sequence[Result], settings: Settings, again: Again) -> Iterator[Lead]:
    """The shortest one under each limit that rules out the one before."""
    in_bytes = fitting[0].memory.peak_bytes is not None
    leader = ahead = min(_tied(fitting), key=peak_of)
    for _ in range(_MOST_STEPS):
        smaller = [
            result
            for result in fitting
            if not made_from_costs(result) and peak_of(result) < peak_of(ahead) * (1 - tolerances.MEMORY)
        ]
        if not smaller:
            return
        best = min(smaller, key=lambda result: result.makespan)
        limit = peak_of(best)
        for other in _made_within(fitting, settings, again, limit, in_bytes=in_bytes):
            if other.makespan < best.makespan * (1 - tolerances.ROUNDING):
                best = other
        yield Lead("memory", leader.name, limit, best.name, best.makespan)
        ahead = best


def _made_within(
    fitting: Sequence[Result], settings: Settings, again: Again, limit: float, *, in_bytes: bool
) -> Iterator[Result]:
    """The schedules that are made from their costs, under a limit."""
    limited = replace(settings, memory_limit=limit if in_bytes else f"{limit}act")
    for result in fitting:
        if made_from_costs(result) and _work(result) <= MOST_WORK // 20:
            try:
                found = again(result, limited)
            except PipeplanError:
                continue
            if found.fits:
                yield found


def peak_of(result: Result) -> float:
    """What the rank holds that holds most: bytes where they are known, else activations."""
    bytes_ = result.memory.peak_bytes
    return float((result.memory.peak_activation if bytes_ is None else bytes_).max())


def changes_in_words(leads: Sequence[Lead], results: Sequence[Result]) -> tuple[str, ...]:
    """Return what would change which schedule is the first, a sentence each: the same in the terminal and on the page."""
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
    """A transfer time in three digits, no longer than it is: the leader still leads there."""
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
        for value in (peak_of(leader), *(step.at for step in steps))
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
    return Times.of((value for each in results for value in (each.makespan, each.lower_bound)), results[0].time_unit)
