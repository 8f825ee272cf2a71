"""What a step's time is spent on and what a GPU's memory holds: titles and colours, for tables, pictures and pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pipeplan.drawing.theme import Theme
from pipeplan.model import Kind


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a bar.

    Attributes
    ----------
    title
        What a legend calls it.
    like
        The kind of op or the reason for idling whose colour it has, so that a page speaks one language of colours.
    """

    title: str
    like: Kind | str

    def colour(self, theme: Theme) -> str:
        """In a theme, as ``#rrggbb``."""
        return theme.shades(self.like, 1)[0] if isinstance(self.like, Kind) else theme.reasons[self.like]


TIME_SHARES: Mapping[str, Share] = MappingProxyType(
    {
        "compute": Share("compute", Kind.F),
        "recompute": Share("recomputation", Kind.R),
        "tensor": Share("exposed tensor communication", Kind.W),
        "context": Share("exposed context communication", Kind.UNSHARD),
        "expert": Share("exposed expert communication", Kind.B),
        "bubble": Share("bubble", "start-up"),
        "overhead": Share("gaps between ops", "overhead"),
        "data": Share("exposed data communication", "transfer"),
        "optimizer": Share("optimizer", "memory"),
    }
)
"""By the names of :class:`pipeplan.planner.StepTime`."""

MEMORY_SHARES: Mapping[str, Share] = MappingProxyType(
    {
        "weights": Share("weights", Kind.F),
        "gradients": Share("gradients", Kind.B),
        "optimizer": Share("optimizer state", Kind.I),
        "activations": Share("activations", Kind.W),
        "transient": Share("transient", Kind.R),
        "buffers": Share("buffers", "start-up"),
    }
)
"""By the names of :class:`pipeplan.planner.RankMemory`."""
