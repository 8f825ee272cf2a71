"""Checks that every op occurs once, on the right rank, after its sources, and that no ranks wait for each other.

Runtimes buffer sends to different degrees: gloo and PyTorch's ``isend`` always, NCCL up to the size of its buffers,
MPI's ``Ssend`` never. A schedule whose ranks can meet at every transfer runs on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from pipeplan.checking.findings import Finding, finding
from pipeplan.model import (
    BACKWARD_KINDS,
    HOST_KINDS,
    MISSING,
    NO_GROUP,
    NO_MICROBATCH,
    STAGE_WIDE_KINDS,
    Bools,
    Dependencies,
    Kind,
    Op,
    RowProgress,
    Schedule,
    among,
    disordered,
    is_constant,
    positions_of,
    progress,
    rendezvous,
)

SHOWN = 20
"""Maximum number of places listed for one problem."""


def check_structure(schedule: Schedule) -> Iterator[Finding]:
    """Yield missing, duplicate and misplaced ops, malformed overlapped pairs, and offloads without reloads."""
    if schedule.keys > 100 * len(schedule) + 1_000_000:
        yield finding(
            "incomplete",
            "",
            f"{schedule.stages} stages x {schedule.microbatches} microbatches x {schedule.slices} slices need "
            f"{schedule.keys} forwards, but the schedule has only {len(schedule)} ops",
        )
        return
    yield from _microbatch_given(schedule)
    yield from _duplicates(schedule)
    yield from _absent(schedule)
    yield from _offloads(schedule)
    yield from _wrong_ranks(schedule)
    yield from _overlaps(schedule)


def present(schedule: Schedule, kind: Kind) -> Bools:
    """Return a mask of the (stage, microbatch, slice) that have an op of a kind, by :attr:`Schedule.key`; shape (keys,)."""
    mask: Bools = positions_of(schedule).table(kind) != MISSING
    return mask


def _microbatch_given(schedule: Schedule) -> Iterator[Finding]:
    columns = schedule.columns
    if schedule.kinds.isdisjoint(STAGE_WIDE_KINDS) and columns.microbatch.min(initial=0) > NO_MICROBATCH:
        return
    without = columns.microbatch == NO_MICROBATCH
    stage_wide = among(columns.kind, STAGE_WIDE_KINDS)
    # Stage-wide ops must have no microbatch, and all others must have one.
    for position in np.flatnonzero(without != stage_wide)[:SHOWN].tolist():
        yield finding("microbatch", schedule.place(position), "only stage-wide ops have no microbatch", position)


def _duplicates(schedule: Schedule) -> Iterator[Finding]:
    positions = positions_of(schedule)
    for kind in sorted(schedule.kinds):
        if kind.is_stage_wide:
            continue
        where, keys = positions.where[kind], positions.keys(kind)
        if np.count_nonzero(positions.table(kind) != MISSING) == len(keys):
            continue
        repeated = np.flatnonzero(np.bincount(keys[keys >= 0], minlength=schedule.keys) > 1)
        for key in repeated[:SHOWN].tolist():
            first, second = where[keys == key][:2].tolist()
            message = f"occurs twice; the first is at {schedule.place(first)}"
            yield finding("duplicate", schedule.place(second), message, second)


def _absent(schedule: Schedule) -> Iterator[Finding]:
    forward, full, inputs, weights = map(partial(present, schedule), (Kind.F, Kind.B, Kind.I, Kind.W))
    yield from _list_keys(schedule, ~forward, Kind.F, "is missing: its stage never runs forward on this microbatch")
    yield from _list_keys(schedule, ~(full | inputs | weights), Kind.B, "is missing, and so are I and W")
    yield from _list_keys(
        schedule, full & (inputs | weights), Kind.B, "occurs besides I or W: backward would run twice"
    )
    yield from _list_keys(schedule, inputs & ~weights & ~full, Kind.W, "is missing: I is there, but no weight gradient")
    yield from _list_keys(schedule, weights & ~inputs & ~full, Kind.I, "is missing, but W is there")


def _offloads(schedule: Schedule) -> Iterator[Finding]:
    """Check that a microbatch's activation is either kept, recomputed, or offloaded and reloaded."""
    if schedule.kinds.isdisjoint(HOST_KINDS):
        return
    offloaded, reloaded, recomputed = map(partial(present, schedule), (*HOST_KINDS, Kind.R))
    lost = "is missing: the activation that its OFFLOAD copied to the host is not there for the backward"
    yield from _list_keys(schedule, offloaded & ~reloaded, Kind.RELOAD, lost, rule="offload")
    nothing = "is missing: its RELOAD has nothing to copy back from the host"
    yield from _list_keys(schedule, reloaded & ~offloaded, Kind.OFFLOAD, nothing, rule="offload")
    twice = "recomputes an activation that is also offloaded: use one of the two for a microbatch on a stage"
    yield from _list_keys(schedule, recomputed & (offloaded | reloaded), Kind.R, twice, rule="offload")


def _list_keys(
    schedule: Schedule, wrong: Bools, kind: Kind, message: str, *, rule: str = "incomplete"
) -> Iterator[Finding]:
    keys = np.flatnonzero(wrong)
    for key in keys[:SHOWN].tolist():
        op = op_of(schedule, kind, key)
        yield finding(rule, f"rank {rank_of(schedule, op)}", f"{op} {message}")
    if len(keys) > SHOWN:
        yield finding(rule, "", f"{len(keys) - SHOWN} more {kind.name} like these")


def op_of(schedule: Schedule, kind: Kind, key: int) -> Op:
    """Return the op of a kind with a :attr:`Schedule.key`."""
    stage, rest = divmod(key, schedule.microbatches * schedule.slices)
    return Op(kind, stage, *divmod(rest, schedule.slices))


def rank_of(schedule: Schedule, op: Op) -> int:
    """Return the rank that holds an op's stage for its microbatch; of a stage-wide op, that of the first copy."""
    copy = max(op.microbatch, 0) * schedule.placement.copies // schedule.microbatches
    return schedule.placement.rank_of[copy][op.stage]


def _wrong_ranks(schedule: Schedule) -> Iterator[Finding]:
    for position in schedule.misplaced[:SHOWN].tolist():
        right = rank_of(schedule, schedule.op(position))
        message = f"is on the wrong rank: rank {right} holds its stage for this microbatch"
        yield finding("rank", schedule.place(position), message, position)


def _overlaps(schedule: Schedule) -> Iterator[Finding]:
    group, kind = schedule.columns.group, schedule.columns.kind
    if is_constant(group) and group[0] == NO_GROUP:
        return
    grouped = np.flatnonzero(group != NO_GROUP)
    second = schedule.joined
    first = np.append(second[1:], False) & ~second
    lone = ~(first | second)
    for position in grouped[lone[grouped]][:SHOWN].tolist():
        yield finding("overlap", schedule.place(position), "overlaps with an op that is not next to it", position)
    after = np.flatnonzero(second)
    pair = (kind[after - 1] == Kind.F) & among(kind[after], BACKWARD_KINDS)
    for position in after[~(pair & first[after - 1])][:SHOWN].tolist():
        yield finding(
            "overlap", schedule.place(position), "an overlapped pair is one forward and one backward", position
        )


def check_order(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """Yield the ops whose source is missing or does not precede them on their rank."""
    for sources, absent, late in disordered(schedule, needs):
        for op in absent[:SHOWN].tolist():
            message = "waits for an op that is not in the schedule: the rank would wait forever"
            yield finding("order", schedule.place(op), message, op)
        for op in late[:SHOWN].tolist():
            source = int(sources[op])
            message = f"waits for {schedule.op(source)}, which does not come before it on its rank"
            yield finding("order", schedule.place(op), message, op)


def check_progress(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """Yield the cycle of ranks that wait for each other, if there is one.

    :func:`check_order` must have found no problem.
    """
    run = progress(schedule, needs)
    if not run.complete:
        yield spelled_deadlock(schedule, run)


def spelled_deadlock(schedule: Schedule, run: RowProgress) -> Finding:
    """Return a finding with the cycle of waits in which an incomplete run ended, op by op."""
    cycle, steps = blocking_cycle(schedule, run), []
    for op, blocker in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        needed = int(run.source[op])
        behind = "" if needed == blocker else f", which cannot run before {schedule.op(blocker)}"
        steps.append(f"{schedule.op(op)} on rank {schedule.rank[op]} waits for {schedule.op(needed)}{behind}")
    message = f"deadlock, ranks wait for each other: {'; '.join(steps)}"
    return finding("deadlock", schedule.place(cycle[0]), message, cycle[0], tuple(cycle[1:]))


def blocking_cycle(schedule: Schedule, run: RowProgress) -> list[int]:
    """Return the positions of the ops that block each other, each waiting for the rank of the next."""
    # Every blocked rank waits for one other blocked rank, so following the waits from any of them ends in a cycle.
    rank = int(np.flatnonzero(run.reached < schedule.offsets[1:])[0])
    seen: dict[int, int] = {}
    path: list[int] = []
    while rank not in seen:
        seen[rank] = len(path)
        path.append(_blocked(schedule, run, rank))
        rank = int(schedule.rank[run.source[path[-1]]])
    return path[seen[rank] :]


def _blocked(schedule: Schedule, run: RowProgress, rank: int) -> int:
    """Return the op that a rank cannot run: the one it reached, or the second op of that pair if only that one waits."""
    op = int(run.reached[rank])
    needed = run.source[op]
    return op if needed >= 0 and run.reached[schedule.rank[needed]] <= needed else op + 1


def check_rendezvous(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """Yield the cycle of ranks that block each other if sends block, if there is one.

    Messages and channels must be valid.
    """
    run = rendezvous(schedule, needs)
    if run.complete:
        return
    cycle = blocking_cycle(schedule, run)
    steps = []
    for op, blocker in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        # The other end directly follows the op that must be done first; see the docstring of rendezvous.
        other = int(run.source[op]) + 1
        does = "sends" if needs.arrival[other] == op else "receives"
        steps.append(
            f"rank {schedule.rank[op]} {does} at {schedule.op(op)} and blocks until rank {schedule.rank[other]} reaches "
            f"{schedule.op(other)}, which comes after {schedule.op(blocker)}"
        )
    message = "deadlock if sends block until they are received (buffered sends do not), ranks wait for each other: "
    yield finding("rendezvous", schedule.place(cycle[0]), message + "; ".join(steps), cycle[0], tuple(cycle[1:]))
