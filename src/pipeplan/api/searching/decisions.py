"""What a found schedule decided beside the order of its ops, and what that costs and saves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pipeplan.model import HOST_KINDS, Kind, MemoryUse, Schedule, among
from pipeplan.simulation import memory_use

if TYPE_CHECKING:
    from pipeplan.solver import Choice, Problem

Spared = Literal["recompute", "offload"]
"""How memory is freed between a forward and its backward."""

_KINDS: dict[Spared, tuple[Kind, ...]] = {"recompute": (Kind.R,), "offload": HOST_KINDS}


@dataclass(frozen=True, slots=True)
class Price:
    """What recomputing or offloading costs and saves, against the same order with everything kept.

    Attributes
    ----------
    time
        The share by which the objective is longer.
    memory
        How much less the rank holds at most that saves the most: in bytes, or in activations.
    rank
        That rank.
    in_bytes
        The unit.
    """

    time: float
    memory: float
    rank: int
    in_bytes: bool

    def to_dict(self) -> dict[str, Any]:
        """``time``, ``memory``, ``rank``."""
        return {"time": self.time, "memory": self.memory, "rank": self.rank}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What a found schedule decided.

    Attributes
    ----------
    choices
        What the search was free to decide.
    microbatches
        Of the step.
    recomputed, offloaded
        How many microbatches each stage recomputes, and how many it offloads; shape (stages,).
    full_backwards, split_backwards, overlapped_pairs
        How many there are.
    prices
        What recomputing and offloading cost and save, where any microbatch is.
    """

    choices: tuple[Choice, ...]
    microbatches: int
    recomputed: tuple[int, ...]
    offloaded: tuple[int, ...]
    full_backwards: int
    split_backwards: int
    overlapped_pairs: int
    prices: dict[Spared, Price]

    def of(self, how: Spared) -> tuple[int, ...]:
        """How many microbatches of each stage are recomputed, or offloaded."""
        return self.recomputed if how == "recompute" else self.offloaded

    @property
    def frees_memory(self) -> bool:
        """Whether the search was free to hold less than all that backwards need."""
        return "recompute" in self.choices or "offload" in self.choices

    def to_dict(self) -> dict[str, Any]:
        """What the JSON of a result says of it."""
        return {
            "choices": list(self.choices),
            "recomputed": list(self.recomputed),
            "offloaded": list(self.offloaded),
            "full_backwards": self.full_backwards,
            "split_backwards": self.split_backwards,
            "overlapped_pairs": self.overlapped_pairs,
            "prices": {how: price.to_dict() for how, price in self.prices.items()},
        }


def decided_in(schedule: Schedule, problem: Problem) -> Decided:
    """What a schedule of a problem decided."""
    return Decided(
        choices=problem.choices.names,
        microbatches=schedule.microbatches,
        recomputed=_by_stage(schedule, Kind.R),
        offloaded=_by_stage(schedule, Kind.OFFLOAD),
        full_backwards=_count(schedule, Kind.B),
        split_backwards=_count(schedule, Kind.I),
        overlapped_pairs=int(schedule.joined.sum()),
        prices={how: _price(schedule, problem, kinds) for how, kinds in _KINDS.items() if schedule.has(kinds[0])},
    )


def _count(schedule: Schedule, kind: Kind) -> int:
    return int((schedule.columns.kind == kind).sum())


def _by_stage(schedule: Schedule, kind: Kind) -> tuple[int, ...]:
    """How many microbatches of each stage have such an op; a microbatch of which a slice has one counts."""
    columns = schedule.columns
    chosen = columns.kind == kind
    pairs = np.unique(columns.stage[chosen].astype(np.int64) * schedule.microbatches + columns.microbatch[chosen])
    counts: list[int] = np.bincount(pairs // schedule.microbatches, minlength=schedule.stages).tolist()
    return tuple(counts)


def _price(schedule: Schedule, problem: Problem, kinds: tuple[Kind, ...]) -> Price:
    kept = schedule.keep(~among(schedule.columns.kind, kinds))
    values = [problem.value(problem.simulated(each).timeline) for each in (schedule, kept)]
    peaks, in_bytes = zip(*(_peaks(memory_use(each, problem.costs)) for each in (schedule, kept)), strict=True)
    saved = peaks[1] - peaks[0]
    rank = int(np.argmax(saved))
    return Price(values[0] / values[1] - 1, float(saved[rank]), rank, in_bytes[0])


def _peaks(memory: MemoryUse) -> tuple[Any, bool]:
    in_bytes = memory.peak_bytes is not None
    return (memory.peak_bytes if in_bytes else memory.peak_activation), in_bytes
