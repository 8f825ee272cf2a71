"""Is everything there, once, and on the right rank? Is what was offloaded brought back?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeplan.checking.finding import Finding
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
"""How many places of one problem are listed."""


def check_structure(schedule: Schedule) -> Iterator[Finding]:
    """Complete, without duplicates, every op on its stage's rank, overlapped pairs well formed, offloads with reloads."""
    if schedule.keys > 100 * len(schedule) + 1_000_000:
        yield Finding(
            "incomplete",
            "",
            f"{schedule.stages} stages x {schedule.microbatches} microbatches x {schedule.slices} slices need "
            f"{schedule.keys} forwards, and there are {len(schedule)} ops in all",
        )
        return
    yield from _microbatch_given(schedule)
    yield from _duplicates(schedule)
    yield from _absent(schedule)
    yield from _offloads(schedule)
    yield from _wrong_ranks(schedule)
    yield from _overlaps(schedule)


def present(schedule: Schedule, kind: Kind) -> Bools:
    """Return whether a kind stands for each (stage, microbatch, slice), by :attr:`Schedule.key`; shape (keys,)."""
    stands: Bools = positions_of(schedule).table(kind) != MISSING
    return stands


def _microbatch_given(schedule: Schedule) -> Iterator[Finding]:
    columns = schedule.columns
    if schedule.kinds.isdisjoint(STAGE_WIDE_KINDS) and columns.microbatch.min(initial=0) > NO_MICROBATCH:
        return
    without = columns.microbatch == NO_MICROBATCH
    stage_wide = among(columns.kind, STAGE_WIDE_KINDS)
    for position in np.flatnonzero(without != stage_wide)[:SHOWN].tolist():
        yield Finding("microbatch", schedule.place(position), "only ops of a whole stage have no microbatch", position)


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
            message = f"occurs a second time; the first is at {schedule.place(first)}"
            yield Finding("duplicate", schedule.place(second), message, second)


def _absent(schedule: Schedule) -> Iterator[Finding]:
    forward, full, inputs, weights = (present(schedule, kind) for kind in (Kind.F, Kind.B, Kind.I, Kind.W))
    yield from _list_keys(schedule, ~forward, Kind.F, "is missing: its stage never runs forward on this microbatch")
    yield from _list_keys(schedule, ~(full | inputs | weights), Kind.B, "is missing, and so are I and W in its place")
    yield from _list_keys(schedule, full & (inputs | weights), Kind.B, "occurs beside I or W: backward would run twice")
    yield from _list_keys(
        schedule, inputs & ~weights & ~full, Kind.W, "is missing, though I is there: no weight gradient"
    )
    yield from _list_keys(schedule, weights & ~inputs & ~full, Kind.I, "is missing, though W is there")


def _offloads(schedule: Schedule) -> Iterator[Finding]:
    """What a microbatch leaves on a stage is kept, recomputed, or offloaded and reloaded: one of these."""
    if schedule.kinds.isdisjoint(HOST_KINDS):
        return
    gone, back, again = (present(schedule, kind) for kind in (*HOST_KINDS, Kind.R))
    lost = "is missing: what its OFFLOAD copied to the host never comes back for the backward"
    yield from _list_keys(schedule, gone & ~back, Kind.RELOAD, lost, rule="offload")
    nothing = "is missing: its RELOAD would bring back what was never copied to the host"
    yield from _list_keys(schedule, back & ~gone, Kind.OFFLOAD, nothing, rule="offload")
    twice = "recomputes what its OFFLOAD and RELOAD bring back: a microbatch does one of the two on a stage"
    yield from _list_keys(schedule, again & (gone | back), Kind.R, twice, rule="offload")


def _list_keys(
    schedule: Schedule, wrong: Bools, kind: Kind, message: str, *, rule: str = "incomplete"
) -> Iterator[Finding]:
    keys = np.flatnonzero(wrong)
    per_stage = schedule.microbatches * schedule.slices
    for key in keys[:SHOWN].tolist():
        stage, rest = divmod(key, per_stage)
        op = Op(kind, stage, *divmod(rest, schedule.slices))
        copy = int(schedule.placement.copy_of(np.array([op.microbatch], np.int32), schedule.microbatches)[0])
        yield Finding(rule, f"rank {schedule.placement.rank_of[copy][stage]}", f"{op} {message}")
    if len(keys) > SHOWN:
        yield Finding(rule, "", f"{len(keys) - SHOWN} more {kind.name} like these")


def _wrong_ranks(schedule: Schedule) -> Iterator[Finding]:
    for position in schedule.misplaced[:SHOWN].tolist():
        op = schedule.op(position)
        right = schedule.placement.ranks_of(
            np.array([op.stage]), np.array([max(op.microbatch, 0)]), schedule.microbatches
        )
        message = f"its stage is held by rank {right[0]} for this microbatch"
        yield Finding("rank", schedule.place(position), message, position)


def _overlaps(schedule: Schedule) -> Iterator[Finding]:
    group, kind = schedule.columns.group, schedule.columns.kind
    if is_constant(group) and group[0] == NO_GROUP:
        return
    grouped = np.flatnonzero(group != NO_GROUP)
    second = schedule.joined
    first = np.append(second[1:], False) & ~second
    lone = ~(first | second)
    for position in grouped[lone[grouped]][:SHOWN].tolist():
        yield Finding("overlap", schedule.place(position), "overlaps with an op that is not next to it", position)
    after = np.flatnonzero(second)
    pair = (kind[after - 1] == Kind.F) & among(kind[after], BACKWARD_KINDS)
    for position in after[~(pair & first[after - 1])][:SHOWN].tolist():
        yield Finding(
            "overlap", schedule.place(position), "an overlapped pair is one forward and one backward", position
        )
