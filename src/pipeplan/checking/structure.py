"""Is everything there, once, and on the right rank? Is what was offloaded brought back?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeplan.checking.problem import Problem
from pipeplan.model import (
    BACKWARD_KINDS,
    HOST_KINDS,
    NO_GROUP,
    NO_MICROBATCH,
    STAGE_WIDE_KINDS,
    Bools,
    Ints,
    Kind,
    Op,
    Schedule,
    among,
)

SHOWN = 20
"""How many places of one problem are listed."""


def check_structure(schedule: Schedule) -> Iterator[Problem]:
    """Complete, without duplicates, every op on its stage's rank, overlapped pairs well formed, offloads with reloads."""
    if schedule.keys > 100 * len(schedule) + 1_000_000:
        yield Problem(
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


def counts_by_key(schedule: Schedule, kind: Kind) -> Ints:
    """How often a kind stands for each (stage, microbatch, slice), by :attr:`Schedule.key`; shape (keys,)."""
    keys = schedule.key[schedule.where(kind)]
    return np.bincount(keys[keys >= 0], minlength=schedule.keys)


def _microbatch_given(schedule: Schedule) -> Iterator[Problem]:
    columns = schedule.columns
    without = columns.microbatch == NO_MICROBATCH
    stage_wide = among(columns.kind, STAGE_WIDE_KINDS)
    for position in np.flatnonzero(without != stage_wide)[:SHOWN].tolist():
        yield Problem("microbatch", schedule.place(position), "only ops of a whole stage have no microbatch", position)


def _duplicates(schedule: Schedule) -> Iterator[Problem]:
    for kind in sorted(schedule.kinds):
        if kind.is_stage_wide:
            continue
        repeated = np.flatnonzero(counts_by_key(schedule, kind) > 1)
        if not repeated.size:
            continue
        where = schedule.where(kind)
        for key in repeated[:SHOWN].tolist():
            first, second = where[schedule.key[where] == key][:2].tolist()
            message = f"occurs a second time; the first is at {schedule.place(first)}"
            yield Problem("duplicate", schedule.place(second), message, second)


def _absent(schedule: Schedule) -> Iterator[Problem]:
    forward, full, inputs, weights = (counts_by_key(schedule, kind) > 0 for kind in (Kind.F, Kind.B, Kind.I, Kind.W))
    yield from _list_keys(schedule, ~forward, Kind.F, "is missing: its stage never runs forward on this microbatch")
    yield from _list_keys(schedule, ~(full | inputs | weights), Kind.B, "is missing, and so are I and W in its place")
    yield from _list_keys(schedule, full & (inputs | weights), Kind.B, "occurs beside I or W: backward would run twice")
    yield from _list_keys(
        schedule, inputs & ~weights & ~full, Kind.W, "is missing, though I is there: no weight gradient"
    )
    yield from _list_keys(schedule, weights & ~inputs & ~full, Kind.I, "is missing, though W is there")


def _offloads(schedule: Schedule) -> Iterator[Problem]:
    """What a microbatch leaves on a stage is kept, recomputed, or offloaded and reloaded: one of these."""
    if schedule.kinds.isdisjoint(HOST_KINDS):
        return
    gone, back, again = (counts_by_key(schedule, kind) > 0 for kind in (*HOST_KINDS, Kind.R))
    lost = "is missing: what its OFFLOAD copied to the host never comes back for the backward"
    yield from _list_keys(schedule, gone & ~back, Kind.RELOAD, lost, rule="offload")
    nothing = "is missing: its RELOAD would bring back what was never copied to the host"
    yield from _list_keys(schedule, back & ~gone, Kind.OFFLOAD, nothing, rule="offload")
    twice = "recomputes what its OFFLOAD and RELOAD bring back: a microbatch does one of the two on a stage"
    yield from _list_keys(schedule, again & (gone | back), Kind.R, twice, rule="offload")


def _list_keys(
    schedule: Schedule, wrong: Bools, kind: Kind, message: str, *, rule: str = "incomplete"
) -> Iterator[Problem]:
    keys = np.flatnonzero(wrong)
    per_stage = schedule.microbatches * schedule.slices
    for key in keys[:SHOWN].tolist():
        stage, rest = divmod(key, per_stage)
        op = Op(kind, stage, *divmod(rest, schedule.slices))
        copy = int(schedule.placement.copy_of(np.array([op.microbatch], np.int32), schedule.microbatches)[0])
        yield Problem(rule, f"rank {schedule.placement.rank_of[copy][stage]}", f"{op} {message}")
    if len(keys) > SHOWN:
        yield Problem(rule, "", f"{len(keys) - SHOWN} more {kind.name} like these")


def _wrong_ranks(schedule: Schedule) -> Iterator[Problem]:
    columns = schedule.columns
    right = schedule.placement.ranks_of(columns.stage, np.maximum(columns.microbatch, 0), schedule.microbatches)
    wrong = right != schedule.rank
    if schedule.placement.copies > 1:
        wrong &= columns.microbatch != NO_MICROBATCH
    for position in np.flatnonzero(wrong)[:SHOWN].tolist():
        message = f"its stage is held by rank {right[position]} for this microbatch"
        yield Problem("rank", schedule.place(position), message, position)


def _overlaps(schedule: Schedule) -> Iterator[Problem]:
    group, kind = schedule.columns.group, schedule.columns.kind
    grouped = np.flatnonzero(group != NO_GROUP)
    if not grouped.size:
        return
    second = schedule.joined
    first = np.append(second[1:], False) & ~second
    lone = ~(first | second)
    for position in grouped[lone[grouped]][:SHOWN].tolist():
        yield Problem("overlap", schedule.place(position), "overlaps with an op that is not next to it", position)
    after = np.flatnonzero(second)
    pair = (kind[after - 1] == Kind.F) & among(kind[after], BACKWARD_KINDS)
    for position in after[~(pair & first[after - 1])][:SHOWN].tolist():
        yield Problem(
            "overlap", schedule.place(position), "an overlapped pair is one forward and one backward", position
        )
