"""What a run and its plan differ by, in sentences: the same in the terminal, on the page and in JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import numpy as np

from pipeplan.api.differing.difference import KIND_WORDS, Diff, op_times, plus_sign, whole_times
from pipeplan.api.differing.op_differences import OpDifference, RankDifference
from pipeplan.model import crosses_ranks, dependencies
from pipeplan.readable import Times, percent

NOTHING = 5e-4
"""Of the planned makespan: what is less is rounded away, and nobody is told of it."""

WORTH_MENDING = 0.02
"""From this change on the reader is told how to plan on what the run took."""

_NAMED = 3
"""How many groups of ops are named."""


def sentences_of(found: Diff) -> tuple[str, ...]:
    """How long the run took, what made the difference, and what to do about it; a sentence each."""
    return tuple(_sentences(found))


def _sentences(found: Diff) -> Iterator[str]:
    yield _headline(found)
    if max(abs(found.from_costs), abs(found.from_waiting)) > _least(found):
        yield _parts(found)
        if named := _groups(found):
            yield named
        if stragglers := _stragglers(found):
            yield stragglers
        if abs(found.from_waiting) > _least(found):
            yield _waiting(found)
        if ranks := _ranks(found):
            yield ranks
    yield _order(found)
    if clocks := _clocks(found):
        yield clocks
    if advice := _advice(found):
        yield advice


def _headline(found: Diff) -> str:
    times = whole_times(found)
    planned, measured = times.text(found.planned_makespan), times.text(found.measured_makespan)
    if abs(found.change) < NOTHING:
        return f"The run took {measured}, as planned."
    if found.scale != 1:
        return f"The run took {measured}, {_longer(found.change)} than the plan at the run's pace ({planned})."
    return f"The run took {measured}, {_longer(found.change)} than the planned {planned}."


def _parts(found: Diff) -> str:
    """How the difference is made of op times and of waiting."""
    times, least = whole_times(found), _least(found)
    costs, waiting, error = found.from_costs, found.from_waiting, found.error
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


def _groups(found: Diff) -> str:
    """The kinds of ops whose times changed the step most, over all stages where those changed alike."""
    ops, whole = op_times(found), whole_times(found)
    if not abs(found.from_costs) > _least(found):
        return ""
    alike = {
        each.kind: each
        for each in found.whole_kinds
        if each.most <= 1.1 * each.least and sum(kind.kind == each.kind for kind in found.kinds) > 2
    }
    # Where the median is as planned, the effect is that of single ops, which are told of by themselves.
    items = [
        (
            each.effect,
            f"{KIND_WORDS[each.kind]} on every stage ({_range(each.least, each.most)} times its plan, "
            f"alone {_signed(each.effect, whole)})",
        )
        for each in alike.values()
        if _range(each.least, each.most) != "1.00"
    ]
    items += [
        (
            each.effect,
            f"{KIND_WORDS[each.kind]} on stage {each.stage} ({ops.number(each.measured)} for {ops.text(each.planned)}, "
            f"alone {_signed(each.effect, whole)})",
        )
        for each in found.kinds
        if each.kind not in alike and ops.number(each.measured) != ops.number(each.planned)
    ]
    same = [item for item in items if item[0] * found.from_costs > 0 and abs(item[0]) > _least(found)]
    worst = sorted(same, key=lambda item: -abs(item[0]))[:_NAMED]
    return f"The ops that matter most: {', '.join(words for _, words in worst)}." if worst else ""


def _stragglers(found: Diff) -> str:
    """Single ops that took much longer than the others of their kind and stage."""
    ops, whole = op_times(found), whole_times(found)
    late = [op for op in found.slowest if _is_straggler(op, found.measured_makespan)]
    if not late:
        return ""
    named = [
        f"{op.op} on rank {op.rank} at {whole.text(op.start)} ({ops.text(op.measured)}; others {ops.text(op.typical)})"
        for op in late[:_NAMED]
    ]
    return f"Single ops took far longer than the others of their kind: {', '.join(named)}."


def _is_straggler(op: OpDifference, makespan: float) -> bool:
    return op.measured > 1.5 * op.typical and op.measured - op.typical > 0.01 * makespan


def _waiting(found: Diff) -> str:
    times = whole_times(found)
    return (
        f"On the critical path of the run, {times.text(found.path_messages)} lie between ops of different ranks (planned: "
        f"{_or_none(found.planned_path_messages, times)}) and {times.text(found.path_gaps)} between ops of one rank "
        f"(planned: {_or_none(found.planned_path_gaps, times)}).{_late(found, times)}"
    )


def _late(found: Diff, times: Times) -> str:
    """What lies before all of that: a run whose first op starts late."""
    first, planned = float(found.measured.start.min()), float(found.planned.start.min())
    return f" Its first op starts at {times.text(first)}." if first - planned > _least(found) else ""


def _clocks(found: Diff) -> str:
    """What cannot be: ops that start before what they need has ended. Then the clocks of ranks are apart."""
    measured = found.measured
    needed = dependencies(measured.schedule).arrival
    crossing = np.flatnonzero(crosses_ranks(measured.schedule, needed))
    early = measured.end[needed[crossing]] - measured.start[crossing]
    if not len(early) or early.max() <= _least(found):
        return ""
    worst = int(early.argmax())
    op, before = (measured.schedule.op(int(each)) for each in (crossing[worst], needed[crossing[worst]]))
    return (
        f"The clocks of the ranks are apart: {op} starts {whole_times(found).text(float(early[worst]))} before {before}, "
        "which it needs, has ended. What is said of waiting is wrong by as much."
    )


def _ranks(found: Diff) -> str:
    """The rank that was busy the most beyond its plan, and the one that idled the most beyond it."""
    times = whole_times(found)
    busy = max(found.ranks, key=lambda each: each.busy_measured - each.busy_planned)
    idle = max(found.ranks, key=lambda each: each.idle_measured - each.idle_planned)
    said = []
    if busy.busy_measured - busy.busy_planned > 0.01 * found.measured_makespan:
        alike = all(_alike(each, busy, found) for each in found.ranks)
        who = "every rank was busy" if alike else f"rank {busy.rank} was busy the most"
        said.append(f"{who} beyond its plan, {times.text(busy.busy_measured)} for {times.text(busy.busy_planned)}")
    if idle.idle_measured - idle.idle_planned > 0.01 * found.measured_makespan:
        said.append(
            f"rank {idle.rank} idled the most beyond its plan, {times.text(idle.idle_measured)} for "
            f"{times.text(idle.idle_planned)}"
        )
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _alike(one: RankDifference, other: RankDifference, found: Diff) -> bool:
    """Whether two ranks were busy for as long as each other, in the plan and in the run."""
    least = _least(found)
    planned, measured = one.busy_planned - other.busy_planned, one.busy_measured - other.busy_measured
    return abs(planned) <= least and abs(measured) <= least


def _order(found: Diff) -> str:
    departure, times = found.departure, whole_times(found)
    if departure is None:
        return "The ops ran in the planned order, and waited for what they were planned to wait for."
    where = f"{departure.op} on rank {departure.rank}, at {times.text(departure.start)}"
    if departure.reordered:
        return f"The first op out of the planned order is {where}: {departure.planned}, and {departure.happened}."
    return (
        f"The ops ran in the planned order; the first that waited for something else is {where}. Planned: "
        f"{departure.planned}. In the run: {departure.happened}."
    )


def _advice(found: Diff) -> str:
    """How to plan on what the run took, where that is worth it."""
    if found.measured.source != "measured" or not (found.notes or abs(found.change) >= WORTH_MENDING):
        return ""
    source = shlex.quote(found.measured_from) if found.measured_from else "RUN"
    far = bool(found.whole_kinds) and (
        min(each.least for each in found.whole_kinds) > 2 or max(each.most for each in found.whole_kinds) < 0.5
    )
    first = "The planned times are hardly those of this model and machine. " if far else ""
    if any("times are assumed" in note for note in found.notes):
        first = "The planned times were assumed. "
    return f"{first}To plan on what the run took: pipeplan profile --from {source} -o costs.yaml"


def _least(found: Diff) -> float:
    return NOTHING * found.planned_makespan


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
