"""What a schedule wants of each stage of a rank beside its passes: what is recomputed, what leaves for the host."""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.model import Kind, Schedule


@dataclass(frozen=True, slots=True)
class Part:
    """What a schedule wants of one stage beside passes.

    Attributes
    ----------
    recomputed
        Microbatches whose forward keeps its inputs alone, and runs again at R.
    offloaded
        Microbatches that leave for the host's memory at OFFLOAD and come back at RELOAD.
    sends
        Whether its outputs go to another rank.
    """

    recomputed: frozenset[int]
    offloaded: frozenset[int]
    sends: bool


def parts_of(schedule: Schedule, rank: int) -> dict[int, Part]:
    """Of every stage of a rank."""
    recomputed, offloaded = (_of_kind(schedule, rank, kind) for kind in (Kind.R, Kind.OFFLOAD))
    rank_of = schedule.placement.rank_of[0]
    return {
        stage: Part(
            recomputed=frozenset(microbatch for of, microbatch in recomputed if of == stage),
            offloaded=frozenset(microbatch for of, microbatch in offloaded if of == stage),
            sends=stage + 1 < schedule.stages and rank_of[stage + 1] != rank,
        )
        for stage in schedule.placement.stages_on(rank)
    }


def leaving(schedule: Schedule, rank: int) -> tuple[tuple[int, int], ...]:
    """Stage and microbatch of a rank's OFFLOADs, in their order."""
    return _of_kind(schedule, rank, Kind.OFFLOAD)


def _of_kind(schedule: Schedule, rank: int, kind: Kind) -> tuple[tuple[int, int], ...]:
    row = schedule.row(rank)
    chosen = row.kind == kind
    return tuple(zip(row.stage[chosen].tolist(), row.microbatch[chosen].tolist(), strict=True))
