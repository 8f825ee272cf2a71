"""What published rows call their schedules and layouts, as strategies and layers on each stage."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeplan.errors import InputError
from pipeplan.strategies import is_strategy, strategy


@dataclass(frozen=True, slots=True)
class Named:
    """A schedule of a row.

    Attributes
    ----------
    strategy
        Its name here.
    in_flight
        Activations that a rank may hold, in multiples of the ranks; None: no limit is part of the name.
    barrier
        Whether ranks meet at the step's end, where the name says so.
    """

    strategy: str
    in_flight: float | None = None
    barrier: bool | None = None


_NAMES = {
    "none": Named("1f1b"),
    "1f1b": Named("1f1b"),
    "1f1b-i": Named("interleaved-1f1b"),
    "1f1b-r": Named("1f1b"),
    "zb-1p": Named("zb-auto", 1.0, barrier=False),
    "zb-2p": Named("zb-auto", 2.0, barrier=False),
    "zb-2p-synchronous": Named("zb-auto", 2.0, barrier=True),
    "zb-1p-synchronous": Named("zb-auto", 1.0, barrier=True),
    "zb-v": Named("zbv", barrier=False),
    "v-zb": Named("zbv", barrier=False),
    "zb": Named("zb-h1"),
}
"""Names of papers and of their tables that are no strategy's: the zero-bubble authors' ZB-1p and ZB-2p are what their
heuristic finds within p and 2p activations, and run without the optimizer's barrier (ICLR 2024, sections 3.1 and 4)."""


def scheduled(name: str | None, pipeline: int, chunks: int) -> Named:
    """The strategy of a row's schedule; where it names none, 1F1B, interleaved where ranks have chunks.

    Raises
    ------
    InputError
        For a schedule that nobody knows.
    """
    if pipeline == 1:
        return Named("1f1b")
    if name is None or name.lower() == "none":
        return Named("interleaved-1f1b" if chunks > 1 else "1f1b")
    short = re.sub(r"\s*\(.*\)", "", name).strip().lower()
    if short in _NAMES:
        return _NAMES[short]
    if is_strategy(short):
        found = strategy(short).name
        return Named("1f1b" if found == "interleaved-1f1b" and chunks == 1 else found)
    raise InputError(f"the schedule '{name}' is none that is known here", field="schedule")


def chunks_of(schedule: str | None, pipeline: int, layers: int, given: int | None, unsaid: bool) -> tuple[int, str]:
    """Chunks of a rank, and what was assumed.

    Interleaved without a number: the fewest that divide a rank's layers. No word of the schedule at all, and the row says
    that its chunks are not known (``unsaid``): a layer a chunk, which trainers that interleave run best with.
    """
    if given is not None:
        return int(given), ""
    if pipeline == 1 or (schedule is None and not unsaid):
        return 1, ""
    each = layers // pipeline
    if schedule is None:
        most = each if layers % pipeline == 0 else 1
        return most, f"schedule: interleaved, {most} chunks a rank of a layer each" if most > 1 else "schedule: 1f1b"
    found = strategy(scheduled(schedule, pipeline, 2).strategy)
    if found.fixed_chunks:
        return found.chunks, ""
    least = next((count for count in range(2, each + 1) if each % count == 0), 1)
    return least, f"chunks of a rank: {least}, the fewest that interleave its {each} layers evenly"


_ENDS = re.compile(r"(\d+) layers on the first and last stage, (\d+) on the others")
_ONE_LESS = re.compile(r"(\d+) layers a stage, one less on first and last")


def layout_from(text: str | None, pipeline: int, chunks: int, layers: int) -> tuple[int, ...] | None:
    """Layers on each stage from a row's words, which are of ranks; None: as even as they go.

    Where layers and two more divide by the stages, the first and the last stage have one less: with several chunks, what is
    said of ranks; without a word, what trainers do for the embedding's and the head's sake.

    Raises
    ------
    InputError
        For words that are not understood.
    """
    stages = pipeline * chunks
    if text:
        match = _ENDS.fullmatch(text) or _ONE_LESS.fullmatch(text)
        if match is None:
            raise InputError(f"the layout '{text}' is not understood", field="layout")
        if chunks == 1:
            others = int(match[match.re.groups])
            ends = int(match[1]) if match.re is _ENDS else others - 1
            return (ends, *[others] * (stages - 2), ends)
    if stages < 2 or layers % stages == 0 or (layers + 2) % stages:
        return None
    each = (layers + 2) // stages
    return (each - 1, *[each] * (stages - 2), each - 1)
