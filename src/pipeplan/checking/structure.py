"""Checks that every op occurs once, on the right rank, and that every offload has its reload."""

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
    Kind,
    Op,
    Schedule,
    among,
    is_constant,
    positions_of,
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
    per_stage = schedule.microbatches * schedule.slices
    for key in keys[:SHOWN].tolist():
        stage, rest = divmod(key, per_stage)
        op = Op(kind, stage, *divmod(rest, schedule.slices))
        copy = int(schedule.placement.copy_of(np.array([op.microbatch], np.int32), schedule.microbatches)[0])
        yield finding(rule, f"rank {schedule.placement.rank_of[copy][stage]}", f"{op} {message}")
    if len(keys) > SHOWN:
        yield finding(rule, "", f"{len(keys) - SHOWN} more {kind.name} like these")


def _wrong_ranks(schedule: Schedule) -> Iterator[Finding]:
    for position in schedule.misplaced[:SHOWN].tolist():
        op = schedule.op(position)
        right = schedule.placement.ranks_of(
            np.array([op.stage]), np.array([max(op.microbatch, 0)]), schedule.microbatches
        )
        message = f"is on the wrong rank: rank {right[0]} holds its stage for this microbatch"
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
