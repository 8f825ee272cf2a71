"""Communication inside ops, such as the all-to-all of experts: how much of it is exposed, and how much pairs hide."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, UnsetType

from pipeplan.answers.simulating.result import Result
from pipeplan.foundation.readable import Times, percent
from pipeplan.foundation.records import Record
from pipeplan.simulation import inner_communication


class CommunicationInOps(Record, frozen=True, kw_only=True):
    """Communication inside ops, of overlapped pairs and of ops that run alone.

    Attributes
    ----------
    kinds
        Its kinds in words: ``all-to-all``.
    exposed, hidden
        Its time without and beside computation, a number per rank.
    """

    kinds: str
    exposed: list[float]
    hidden: list[float]


def communication_in_ops(result: Result) -> CommunicationInOps | UnsetType:
    """Return the communication inside the ops of a simulation; UNSET if their segments are unknown or never communicate."""
    segments = result.costs.segments
    if segments is None or not segments.communication or result.timeline.source == "measured":
        return UNSET
    exposed, hidden = inner_communication(result.timeline, segments)
    return CommunicationInOps(kinds=segments.communication, exposed=exposed.tolist(), hidden=hidden.tolist())


def in_columns(communication: CommunicationInOps | UnsetType) -> dict[str, list[float]]:
    """Return the exposed and the hidden time of each rank by the title of its column; empty if they are unknown."""
    if communication is UNSET:
        return {}
    return {"exposed in ops": communication.exposed, "hidden in ops": communication.hidden}


def communication_in_words(communication: CommunicationInOps | UnsetType, unit: str) -> Iterator[str]:
    """Yield a sentence on the communication of all ranks; none if it is unknown."""
    if communication is UNSET:
        return
    exposed, hidden = sum(communication.exposed), sum(communication.hidden)
    times = Times.of([exposed, hidden], unit)
    yield (
        f"Communication in the ops of all ranks ({communication.kinds}): exposed {times.text(exposed)}, "
        f"hidden {times.text(hidden)} ({percent(hidden / (exposed + hidden))})."
    )
