"""The suite ``mutants``: schedules broken in a known way, or changed and not broken; judged by :mod:`.oracle`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from pipeplan.checking import Finding as Checked
from pipeplan.checking import check
from pipeplan.checking.structure import SHOWN
from pipeplan.costs import Communication, Settings
from pipeplan.formats.pipeplan_json import parse_json, schedule_json
from pipeplan.formats.pytorch_csv import parse_torch_csv, torch_csv
from pipeplan.formats.rows import parse_rows
from pipeplan.foundation.errors import DeadlockError, FormatError, InvalidScheduleError, NotationError, PipeplanError
from pipeplan.model import MemoryRule, Schedule, Timeline, format_schedule, from_ops
from pipeplan.model.op import NO_GROUP, NO_MICROBATCH
from pipeplan.passes import insert_communication, without_communication
from pipeplan.passes.communication import Receives
from pipeplan.simulation import simulate
from tests.torture import Found
from tests.torture.schedules.mutations import mutated
from tests.torture.schedules.oracle import MESSAGES, STAGE_WIDE, Finding, Oracle, runs
from tests.torture.schedules.shapes import Rows, random_schedule, rows_of, shown, timed_rows


def attempt(seed: int) -> None:
    """One mutant: the checker, the simulator and the formats hold it for what the oracle does."""
    random = Random(f"mutant {seed}")
    whole = random_schedule(random)
    rows, done = mutated(random, rows_of(whole))
    oracle = Oracle(whole.placement, whole.microbatches, whole.slices, rows)
    schedule = _built(oracle, whole.name)
    if schedule is None:
        return
    what = f"{whole!r} after {done}:\n{shown(rows)}\n"
    findings = _check(random, oracle, schedule, what)
    _simulate(oracle, schedule, what)
    _write_and_read(schedule, what, valid=not findings)
    if not findings:
        _communicate(schedule, what)


def _built(oracle: Oracle, name: str) -> Schedule | None:
    """The schedule of the rows, or None where an op is out of range: that is refused, and nothing else."""
    ops = [op for row in oracle.rows for op in row]
    fits = all(
        0 <= op.stage < oracle.placement.stages
        and NO_MICROBATCH <= op.microbatch < oracle.microbatches
        and 0 <= op.slice < oracle.slices
        for op in ops
    )
    try:
        columns = [from_ops(row) for row in oracle.rows]
        made = Schedule.from_rows(oracle.placement, oracle.microbatches, columns, slices=oracle.slices, name=name)
    except InvalidScheduleError as error:
        if fits:
            raise Found(f"all ops are in range, and a schedule of them is refused: {error}") from None
        return None
    if not fits:
        raise Found(f"an op is out of range, and a schedule is made of it: {made!r}")
    return made


# The checker


def _check(random: Random, oracle: Oracle, schedule: Schedule, what: str) -> set[Finding]:
    """What the checker finds is what the oracle finds: rule, rank and op."""
    memory = _memory(random, schedule) if random.random() < 0.5 else None
    buffers = random.choice((None, None, 1, 2, 4))
    expected = oracle.findings(memory, buffers=buffers)
    report = check(schedule, memory=memory, buffers=buffers)
    reported = {_finding(schedule, problem) for problem in report.problems if problem.where}
    _same(reported, expected, schedule, what)
    for problem in report.problems:
        if problem.rule == "deadlock":
            _hold_a_cycle(oracle, schedule, problem, what, meet=False)
    if report.valid:
        _meet(oracle, schedule, what)
    return expected


def _same(reported: set[Finding], expected: set[Finding], schedule: Schedule, what: str) -> None:
    stops = {finding for finding in expected if finding.rule == "deadlock"}
    ends = {finding for finding in reported if finding.rule == "deadlock"}
    if bool(stops) != bool(ends) or len(ends) > 1:
        raise Found(f"{what}the checker finds {_listed(ends)}, and the oracle {_listed(stops)}")
    reported, expected = reported - ends, _cut_short(reported, expected) - stops
    if reported != expected:
        missed, invented = expected - reported, reported - expected
        raise Found(f"{what}the checker misses {_listed(missed)}, and invents {_listed(invented)}")


def _cut_short(reported: set[Finding], expected: set[Finding]) -> set[Finding]:
    """What is expected of a checker that lists a few places of each problem: what it found, where it found so many."""
    many = {rule for rule, count in Counter(finding.rule for finding in reported).items() if count >= SHOWN}
    return {finding for finding in expected if finding.rule not in many or finding in reported}


def _listed(findings: set[Finding]) -> str:
    return "; ".join(sorted(map(str, findings))) or "nothing"


def _finding(schedule: Schedule, problem: Checked) -> Finding:
    """A problem in the oracle's words."""
    if problem.position is None:
        return Finding(problem.rule, int(problem.where.removeprefix("rank ")), None, problem.message.split()[0])
    rank = int(schedule.rank[problem.position])
    number = problem.position - int(schedule.offsets[rank])
    return Finding(problem.rule, rank, number, str(schedule.op(problem.position)))


def _hold_a_cycle(oracle: Oracle, schedule: Schedule, problem: Checked, what: str, *, meet: bool) -> None:
    """The ops of a deadlock each stand where their ranks stop for ever: at it, or in the pair that begins there."""
    assert problem.position is not None
    stops = dict(oracle.stuck(meet=meet))
    for position in (problem.position, *problem.others):
        rank = int(schedule.rank[position])
        number = position - int(schedule.offsets[rank])
        paired = int(schedule.joined[position])
        if stops.get(rank) not in {number, number - paired}:
            raise Found(f"{what}{schedule.place(position)} is said to be in a deadlock, and ranks stop at {stops}")


def _meet(oracle: Oracle, schedule: Schedule, what: str) -> None:
    """Where both ends of a message block, it runs if the oracle says so, for the checker and for the simulator."""
    if not oracle.kinds & MESSAGES:
        return
    stuck = oracle.stuck(meet=True)
    report = check(schedule, sends="blocking")
    blocked = [problem for problem in report.problems if problem.rule == "rendezvous"]
    if bool(stuck) != bool(blocked):
        raise Found(f"{what}ranks that meet stop at {stuck}, and the checker says {blocked}")
    for problem in blocked:
        _hold_a_cycle(oracle, schedule, problem, what, meet=True)
    outcome = _simulated(schedule, "blocking")
    if (outcome is DeadlockError) != bool(stuck) or outcome not in {None, DeadlockError}:
        raise Found(f"{what}ranks that meet stop at {stuck}, and the simulator says {outcome}")


def _memory(random: Random, schedule: Schedule) -> MemoryRule:
    """Sizes and limits under which some ranks hold too much, some just enough."""
    activation = np.array([random.choice((1.0, 2.0, 0.5)) for _ in range(schedule.stages)])
    freed = activation * np.array([random.choice((0.0, 0.5, 1.0, 1.5)) for _ in activation])
    limit = np.array([random.choice((0.5, 1.0, 2.0, 3.0, 5.0, 20.0, np.inf)) for _ in range(schedule.ranks)])
    some: dict[str, Any] = {}
    if random.random() < 0.5:
        some = {"recompute_keeps": 0.25 * activation, "offloaded": 0.75 * activation}
    return MemoryRule(activation, freed, limit, **some)


# The simulator

UNBLOCKED: tuple[Communication, ...] = ("edge", "contended")


def _simulated(schedule: Schedule, communication: Communication) -> type[PipeplanError] | None:
    costs = Settings(offload_times=0.5, p2p_time=0.25).costs(schedule.placement)
    try:
        made = simulate(schedule, costs, communication=communication)
    except PipeplanError as error:
        return type(error)
    times = np.concatenate((made.timeline.start, made.timeline.end))
    if len(times) and (not np.isfinite(times).all() or times.min() < 0):
        raise Found(f"{schedule!r}:\n{shown(schedule)}\nis simulated with times that are none")
    return None


def _simulate(oracle: Oracle, schedule: Schedule, what: str) -> None:
    """It stops where something is missing, late, or never comes; what doubled ops do, or three at once, is not defined."""
    wrong = {finding.rule for finding in oracle.structure()}
    outcome = {communication: _simulated(schedule, communication) for communication in UNBLOCKED}
    if len(set(outcome.values())) > 1:
        raise Found(f"{what}the simulator says {outcome}")
    if wrong & {"duplicate", "microbatch", "overlap"}:
        return
    timed = Oracle(oracle.placement, oracle.microbatches, oracle.slices, timed_rows([*map(list, oracle.rows)]))
    expected: type[PipeplanError] | None = None
    if any(oracle.order()) or any(timed.order()) or any(oracle.apart()):
        expected = InvalidScheduleError
    elif timed.stuck(meet=False):
        expected = DeadlockError
    if outcome["edge"] is not expected:
        raise Found(f"{what}the simulator says {outcome['edge']}, and should say {expected}")


# Formats


def _write_and_read(schedule: Schedule, what: str, *, valid: bool) -> None:
    """What is written is read again, right or wrong; a text without a placement where its rows say it."""
    for name, write, read in FORMATS:
        try:
            text = write(schedule)
        except (FormatError, NotationError) as error:
            if valid and name != "CSV":
                raise Found(f"{what}is valid, and not written as {name}: {error}") from None
            continue
        tells = name == "JSON" or (valid and _tells_its_placement(schedule))
        try:
            back = read(text, name="it", keep_duplicates=True)
        except PipeplanError as error:
            if tells:
                raise Found(f"{what}is written as {name} and not read: {error}") from None
            continue
        assert isinstance(back, Schedule)
        if not _same_rows(back, schedule) or (name == "JSON" and back != schedule):
            raise Found(f"{what}comes back from {name} as\n{format_schedule(back)}")
        if tells and valid and not check(back).valid:
            raise Found(f"{what}is not valid any more where it comes back from {name}: {check(back).problems[0]}")


def _text(schedule: Schedule) -> str:
    return format_schedule(schedule) + "\n"


FORMATS: tuple[tuple[str, Callable[[Schedule], str], Callable[..., Schedule | Timeline]], ...] = (
    ("JSON", schedule_json, parse_json),
    ("CSV", torch_csv, parse_torch_csv),
    ("rows", _text, parse_rows),
)


def _same_rows(one: Schedule, other: Schedule) -> bool:
    """Whether both run the same ops, and the same together."""
    return all(
        [[replace(op, group=NO_GROUP) for op in run] for run in runs(row)]
        == [[replace(op, group=NO_GROUP) for op in run] for run in runs(again)]
        for row, again in zip(one, other, strict=True)
    )


def _tells_its_placement(schedule: Schedule) -> bool:
    """Whether the rows alone say which rank holds what: one copy of the model, or one for each half of the microbatches."""
    copies = schedule.placement.copies
    return copies == 1 or (copies == 2 and schedule.microbatches % 2 == 0 and schedule.kinds.isdisjoint(STAGE_WIDE))


# Passes

WHEN: tuple[Receives, ...] = ("early", "late")


def _communicate(schedule: Schedule, what: str) -> None:
    """A right schedule with messages of ours is right, and without them it is what it was."""
    bare = without_communication(schedule)
    for receives in WHEN:
        lowered = insert_communication(bare, receives=receives)
        rows: Rows = rows_of(lowered)
        wrong = Oracle(lowered.placement, lowered.microbatches, lowered.slices, rows).findings()
        if wrong or not check(lowered).valid:
            raise Found(f"{what}with messages, received {receives}, is not right: {_listed(wrong)}")
        if without_communication(lowered) != bare:
            raise Found(f"{what}with messages, received {receives}, and without them again is another")
