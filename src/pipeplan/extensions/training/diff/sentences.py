"""Sentences on the difference between a run and its plan, for the terminal, the page and JSON."""

from __future__ import annotations

import shlex

import numpy as np

from pipeplan.extensions.training.diff.difference import (
    KIND_WORDS,
    Diff,
    exposed_in_words,
    op_times,
    plus_sign,
    whole_times,
)
from pipeplan.extensions.training.diff.op_differences import OpDifference, RankDifference
from pipeplan.foundation.readable import Times, percent
from pipeplan.model import crosses_ranks, dependencies

NOTHING = 5e-4
"""Smallest difference that is reported, as a share of the planned makespan."""

WORTH_MENDING = 0.02
"""Smallest change for which planning with the run's costs is advised."""

GOOD_PART = 0.3
"""Smallest share of the difference that ops have to explain to be named as its cause."""

_NAMED = 3
"""Maximum number of groups of ops in a sentence."""


def sentences_of(diff: Diff) -> tuple[str, ...]:
    """Return the headline, the causes of the difference, and advice, one sentence each."""
    causes: tuple[str, ...] = ()
    if _differs(diff):
        causes = (_parts(diff), _groups(diff), _stragglers(diff), _waiting(diff), _ranks(diff))
    sentences = (headline_of(diff), *causes, *exposed_in_words(diff), _order(diff), *advice_of(diff))
    return tuple(filter(None, sentences))


def advice_of(diff: Diff) -> tuple[str, ...]:
    """Return the sentences that ask for an action: clocks that differ, and how to plan on the run's costs."""
    return tuple(filter(None, (_clocks(diff), _advice(diff))))


def _differs(diff: Diff) -> bool:
    return max(abs(diff.from_costs), abs(diff.from_waiting)) > _least(diff)


def headline_of(diff: Diff) -> str:
    """Return the run's step time, how far it is from the plan, and the largest part of the difference."""
    times = whole_times(diff)
    planned, measured = times.text(diff.planned_makespan), times.text(diff.measured_makespan)
    cause = _main_cause(diff) if _differs(diff) else ""
    if abs(diff.change) < NOTHING:
        return f"The run took {measured}, as planned{cause and f': {cause} is made up for elsewhere'}."
    plan = f"the plan at the run's pace ({planned})" if diff.scale != 1 else f"the planned {planned}"
    return f"The run took {measured}, {_longer(diff.change)} than {plan}{cause and f': above all {cause}'}."


def _main_cause(diff: Diff) -> str:
    """Return the ops or the waits with the largest effect, in the direction of the whole difference."""
    times, sign = whole_times(diff), 1 if diff.error >= 0 else -1
    if sign * diff.from_costs >= sign * diff.from_waiting:
        least = GOOD_PART * abs(diff.error)
        for effect, who, _ in _group_items(diff)[:1]:
            if abs(effect) >= least:
                return f"{who} ({_signed(effect, times)})"
        late = [op for op in diff.slowest if _is_straggler(op, diff.measured_makespan)]
        costs = _signed(diff.from_costs, times)
        if late and sum(op.measured - op.typical for op in late) >= least:
            return f"single ops such as {late[0].op} on rank {late[0].rank} ({costs})"
        return f"{'slower' if sign > 0 else 'faster'} ops of many kinds and stages ({costs})"
    messages = diff.path_messages - diff.planned_path_messages
    gaps = diff.path_gaps - diff.planned_path_gaps
    what = "waits between ranks" if sign * messages >= sign * gaps else "gaps between the ops of a rank"
    more = [sign * (rank.idle_measured - rank.idle_planned) for rank in diff.ranks]
    most = (
        "" if max(more) - min(more) <= _least(diff) else f", the most on rank {diff.ranks[more.index(max(more))].rank}"
    )
    return f"{what} ({_signed(diff.from_waiting, times)}){most}"


def _parts(diff: Diff) -> str:
    """Return which parts of the difference are op times and waiting."""
    times, least = whole_times(diff), _least(diff)
    costs, waiting, error = diff.from_costs, diff.from_waiting, diff.error
    longer = "longer" if costs > 0 else "less time"
    more = "more" if waiting > 0 else "less"
    if abs(waiting) <= least:
        return f"All of that comes from ops that took {longer} than planned."
    if abs(costs) <= least:
        return f"All of that comes from ranks that waited {more} than planned."
    if costs * waiting > 0:
        return (
            f"Of these {times.text(abs(error))}, {times.text(abs(costs))} ({percent(costs / error)}) come from ops that "
            f"took {longer}, and {times.text(abs(waiting))} ({percent(waiting / error)}) from ranks that waited {more}."
        )
    return (
        f"Ops that took {longer} make the step {times.text(abs(costs))} {_longer_or_shorter(costs)}; ranks that waited "
        f"{more} make it {times.text(abs(waiting))} {_longer_or_shorter(waiting)}."
    )


def _groups(diff: Diff) -> str:
    """Return a sentence on the kinds of ops that changed the step most, over all stages if those changed alike."""
    whole = whole_times(diff)
    if not abs(diff.from_costs) > _least(diff):
        return ""
    worst = _group_items(diff)[:_NAMED]
    named = ", ".join(f"{who} ({figures}, alone {_signed(effect, whole)})" for effect, who, figures in worst)
    return f"The ops that matter most: {named}." if worst else ""


def _group_items(diff: Diff) -> list[tuple[float, str, str]]:
    """Return the groups of ops that changed the step the way all op times did, the largest effect first.

    Each has its effect, its name, and its times beside the plan's.
    """
    ops = op_times(diff)
    alike = {
        entry.kind: entry
        for entry in diff.whole_kinds
        if entry.most <= 1.1 * entry.least and sum(kind.kind == entry.kind for kind in diff.kinds) > 2
    }
    # Where the median is as planned, the effect is that of single ops, which are told of by themselves.
    items = [
        (
            entry.effect,
            f"{KIND_WORDS[entry.kind]} on every stage",
            f"{_range(entry.least, entry.most)} times its plan",
        )
        for entry in alike.values()
        if _range(entry.least, entry.most) != "1.00"
    ]
    items += [
        (
            entry.effect,
            f"{KIND_WORDS[entry.kind]} on stage {entry.stage}",
            f"{ops.number(entry.measured)} for {ops.text(entry.planned)}",
        )
        for entry in diff.kinds
        if entry.kind not in alike and ops.number(entry.measured) != ops.number(entry.planned)
    ]
    same = [item for item in items if item[0] * diff.from_costs > 0 and abs(item[0]) > _least(diff)]
    return sorted(same, key=lambda item: -abs(item[0]))


def _stragglers(diff: Diff) -> str:
    """Return a sentence on single ops that took much longer than the others of their kind and stage."""
    ops, whole = op_times(diff), whole_times(diff)
    late = [op for op in diff.slowest if _is_straggler(op, diff.measured_makespan)]
    if not late:
        return ""
    named = [
        f"{op.op} on rank {op.rank} at {whole.text(op.start)} ({ops.text(op.measured)}; others {ops.text(op.typical)})"
        for op in late[:_NAMED]
    ]
    return f"Single ops took far longer than the others of their kind: {', '.join(named)}."


def _is_straggler(op: OpDifference, makespan: float) -> bool:
    return op.measured > 1.5 * op.typical and op.measured - op.typical > 0.01 * makespan


def _waiting(diff: Diff) -> str:
    """Return a sentence on the waits of the critical path, if waiting was not as planned."""
    if abs(diff.from_waiting) <= _least(diff):
        return ""
    times = whole_times(diff)
    return (
        f"On the critical path of the run, {times.text(diff.path_messages)} lie between ops of different ranks (planned: "
        f"{_or_none(diff.planned_path_messages, times)}) and {times.text(diff.path_gaps)} between ops of one rank "
        f"(planned: {_or_none(diff.planned_path_gaps, times)}).{_late(diff, times)}"
    )


def _late(diff: Diff, times: Times) -> str:
    """Return a sentence on a run whose first op starts late."""
    first, planned = float(diff.measured.start.min()), float(diff.planned.start.min())
    return f" Its first op starts at {times.text(first)}." if first - planned > _least(diff) else ""


def _clocks(diff: Diff) -> str:
    """Return a sentence on ops that start before their inputs have ended, which means that the ranks' clocks differ."""
    measured = diff.measured
    needed = dependencies(measured.schedule).arrival
    crossing = np.flatnonzero(crosses_ranks(measured.schedule, needed))
    early = measured.end[needed[crossing]] - measured.start[crossing]
    if not len(early) or early.max() <= _least(diff):
        return ""
    worst = int(early.argmax())
    op, before = (measured.schedule.op(int(position)) for position in (crossing[worst], needed[crossing[worst]]))
    return (
        f"The clocks of the ranks differ: {op} starts {whole_times(diff).text(float(early[worst]))} before {before}, "
        "which it needs, has ended. Waiting times are wrong by as much."
    )


def _ranks(diff: Diff) -> str:
    """Return a sentence on the ranks that were busy, or idle, the most beyond their plan."""
    times = whole_times(diff)
    busy = max(diff.ranks, key=lambda rank: rank.busy_measured - rank.busy_planned)
    idle = max(diff.ranks, key=lambda rank: rank.idle_measured - rank.idle_planned)
    clauses = []
    if busy.busy_measured - busy.busy_planned > 0.01 * diff.measured_makespan:
        alike = all(_alike(rank, busy, diff) for rank in diff.ranks)
        who = "every rank was busy" if alike else f"rank {busy.rank} was busy the most"
        clauses.append(f"{who} beyond its plan, {times.text(busy.busy_measured)} for {times.text(busy.busy_planned)}")
    if idle.idle_measured - idle.idle_planned > 0.01 * diff.measured_makespan:
        clauses.append(
            f"rank {idle.rank} idled the most beyond its plan, {times.text(idle.idle_measured)} for "
            f"{times.text(idle.idle_planned)}"
        )
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _alike(one: RankDifference, other: RankDifference, diff: Diff) -> bool:
    """Return whether two ranks were busy for the same time, in the plan and in the run."""
    least = _least(diff)
    planned, measured = one.busy_planned - other.busy_planned, one.busy_measured - other.busy_measured
    return abs(planned) <= least and abs(measured) <= least


def _order(diff: Diff) -> str:
    departure, times = diff.departure, whole_times(diff)
    if departure is None:
        return "The ops ran in the planned order, and waited for what they were planned to wait for."
    where = f"{departure.op} on rank {departure.rank}, at {times.text(departure.start)}"
    if departure.reordered:
        return f"The first op out of the planned order is {where}: {departure.planned}, and {departure.happened}."
    return (
        f"The ops ran in the planned order; the first that waited for something else is {where}. Planned: "
        f"{departure.planned}. In the run: {departure.happened}."
    )


def _advice(diff: Diff) -> str:
    """Return advice on planning with the run's costs, if that is worth it."""
    if diff.measured.source != "measured" or not (diff.notes or abs(diff.change) >= WORTH_MENDING):
        return ""
    source = shlex.quote(diff.measured_from) if diff.measured_from else "RUN"
    far = bool(diff.whole_kinds) and (
        min(kind.least for kind in diff.whole_kinds) > 2 or max(kind.most for kind in diff.whole_kinds) < 0.5
    )
    first = "The planned times are hardly those of this model and machine. " if far else ""
    if any("times are assumed" in note for note in diff.notes):
        first = "The planned times were assumed. "
    return f"{first}To plan on what the run took: pipeplan profile --from {source} -o costs.yaml"


def _least(diff: Diff) -> float:
    return NOTHING * diff.planned_makespan


def _longer(share: float) -> str:
    return f"{percent(abs(share))} {_longer_or_shorter(share)}"


def _longer_or_shorter(effect: float) -> str:
    return "longer" if effect > 0 else "shorter"


def _or_none(value: float, times: Times) -> str:
    return times.text(value) if value > 0 else "none"


def _range(least: float, most: float) -> str:
    low, high = f"{least:.2f}", f"{most:.2f}"
    return low if low == high else f"{low} to {high}"


def _signed(value: float, times: Times) -> str:
    return plus_sign(value, times) + times.text(value)
