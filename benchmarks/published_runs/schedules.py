"""Schedule, chunks and layout of a run's row, in pipeplan's terms."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeplan.foundation.errors import InputError
from pipeplan.strategies import is_strategy, strategy


@dataclass(frozen=True, slots=True)
class NamedSchedule:
    """Schedule that a row names.

    Attributes
    ----------
    strategy
        Name of the strategy.
    in_flight
        Maximum activations per rank, as a multiple of the ranks; None: the name implies no limit.
    barrier
        Whether ranks synchronize at the end of the step; None: the name does not say.
    """

    strategy: str
    in_flight: float | None = None
    barrier: bool | None = None


_NAMES = {
    "none": NamedSchedule("1f1b"),
    "1f1b": NamedSchedule("1f1b"),
    "1f1b-i": NamedSchedule("interleaved-1f1b"),
    "1f1b-r": NamedSchedule("1f1b"),
    "zb-1p": NamedSchedule("zb-auto", 1.0, barrier=False),
    "zb-2p": NamedSchedule("zb-auto", 2.0, barrier=False),
    "zb-2p-synchronous": NamedSchedule("zb-auto", 2.0, barrier=True),
    "zb-1p-synchronous": NamedSchedule("zb-auto", 1.0, barrier=True),
    "zb-v": NamedSchedule("zbv", barrier=False),
    "v-zb": NamedSchedule("zbv", barrier=False),
    "zb": NamedSchedule("zb-h1"),
}
"""Names used in papers and their tables that are not strategies. The zero-bubble authors' ZB-1p and ZB-2p are the results of
their heuristic within p and 2p activations, run without the optimizer's barrier (ICLR 2024, sections 3.1 and 4)."""


def scheduled(name: str | None, pipeline: int, chunks: int) -> NamedSchedule:
    """Return the strategy of a row's schedule; without a name 1F1B, interleaved if ranks have several chunks."""
    if pipeline == 1:
        return NamedSchedule("1f1b")
    if name is None or name.lower() == "none":
        return NamedSchedule("interleaved-1f1b" if chunks > 1 else "1f1b")
    short = re.sub(r"\s*\(.*\)", "", name).strip().lower()
    if short in _NAMES:
        return _NAMES[short]
    if is_strategy(short):
        canonical = strategy(short).name
        return NamedSchedule("1f1b" if canonical == "interleaved-1f1b" and chunks == 1 else canonical)
    raise InputError(f"unknown schedule '{name}'", field="schedule")


def chunks_of(schedule: str | None, pipeline: int, layers: int, printed: int | None, unsaid: bool) -> tuple[int, str]:
    """Return the chunks per rank, and the assumption about it.

    An interleaved schedule without a number gets the fewest chunks that divide a rank's layers, or all layers and the two
    ends of the model. A row without a schedule
    whose chunks are marked as unknown (``unsaid``) gets one layer per chunk, with which interleaved trainers run best.
    """
    if printed is not None:
        return int(printed), ""
    if pipeline == 1 or (schedule is None and not unsaid):
        return 1, ""
    layers_per_rank = layers // pipeline
    if schedule is None:
        most = layers_per_rank if layers % pipeline == 0 else 1
        return most, f"schedule: interleaved, {most} chunks of one layer per rank" if most > 1 else "schedule: 1f1b"
    rule = strategy(scheduled(schedule, pipeline, 2).strategy)
    if rule.fixed_chunks:
        return rule.chunks, ""
    counts = range(2, layers_per_rank + 1)
    divides = (count for count in counts if layers_per_rank % count == 0 or (layers + 2) % (pipeline * count) == 0)
    least = next(divides, 1)
    return least, f"chunks per rank: {least}, the fewest that divide its {layers_per_rank} layers"


_ENDS = re.compile(r"(\d+) layers on the first and last stage, (\d+) on the others")
_ONE_LESS = re.compile(r"(\d+) layers a stage, one less on first and last")


def layout_from(text: str | None, pipeline: int, chunks: int, layers: int) -> tuple[int, ...] | None:
    """Return the layers of each stage from a row's text about its ranks or its stages (``9+10+10+9``); None: an even split.

    If the layers plus two are divisible by the stages, the first and the last stage have one layer less: with several chunks
    because the text describes ranks, without a text because trainers do so for the embedding and the head.
    """
    stages = pipeline * chunks
    if text and re.fullmatch(r"\d+(\+\d+)*", text):
        return tuple(map(int, text.split("+")))
    if text:
        match = _ENDS.fullmatch(text) or _ONE_LESS.fullmatch(text)
        if match is None:
            raise InputError(f"unknown layout '{text}'", field="layout")
        if chunks == 1:
            others = int(match[match.re.groups])
            ends = int(match[1]) if match.re is _ENDS else others - 1
            return (ends, *[others] * (stages - 2), ends)
    if stages < 2 or layers % stages == 0 or (layers + 2) % stages:
        return None
    inner = (layers + 2) // stages
    return (inner - 1, *[inner] * (stages - 2), inner - 1)
