"""Memory limits: from ``12GiB`` or ``8act`` to a number for every rank."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pipeplan.errors import CostError
from pipeplan.model import Floats, require_range

if TYPE_CHECKING:
    from pipeplan.costs.settings import Settings
    from pipeplan.model import Placement


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The memory limit of every rank, shape (ranks,): in bytes with everything static included, or in activations."""

    values: Floats
    in_activations: bool


def limits_of(settings: Settings, placement: Placement) -> Limits | None:
    """See :meth:`Settings.limits <pipeplan.costs.settings.Settings.limits>`."""
    asked = settings.memory_limit
    if asked is None:
        return None
    given = asked if isinstance(asked, tuple) else (asked,) * placement.ranks
    if len(given) != placement.ranks:
        raise CostError(f"memory limit: {len(given)} values for {placement.ranks} ranks", field="memory_limit")
    parsed = [parse_limit(value) for value in given]
    units = {unit for _, unit in parsed}
    if len(units) > 1:
        raise CostError(
            "memory limit: give every rank's limit in bytes, or every rank's in activations", field="memory_limit"
        )
    if units == {"byte"} and settings.activation_bytes is None and not _bytes_of_layers(settings):
        raise CostError(
            f"memory limit {given[0]} is in bytes, but no activation bytes are given; "
            "give them, or a limit in activations, such as 8act",
            field="memory_limit",
        )
    return Limits(np.array([value for value, _ in parsed]), units == {"act"})


def _bytes_of_layers(settings: Settings) -> bool:
    return any(layer.activation_bytes for layer in settings.layers or ())


_LIMIT = re.compile(r"\s*([-0-9.eE+]+)\s*(act|activations?|[KMGT]i?B|B|)\s*")
_UNITS = {"": 1.0, "B": 1.0} | {
    f"{prefix}{binary}B": float((1024 if binary else 1000) ** power)
    for power, prefix in enumerate("KMGT", start=1)
    for binary in ("", "i")
}


def parse_limit(value: float | str) -> tuple[float, Literal["byte", "act"]]:
    """A limit as a number with its unit: ``8act`` is (8, "act"), ``12GiB`` (12 * 2**30, "byte").

    Raises
    ------
    CostError
        For text that is no size, and for a size that is not more than 0 and finite, or too large to compute with.
    """
    match = _LIMIT.fullmatch(str(value))
    try:
        number, unit = float(match.group(1)), match.group(2)  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        raise CostError(
            f"memory limit '{value}' is no size; write bytes, 12GiB or activations, 8act", field="memory_limit"
        ) from None
    if not 0 < number < math.inf:
        shown = value if isinstance(value, str) else f"{value:g}"
        raise CostError(f"memory limit must be more than 0 and finite, not {shown}", field="memory_limit")
    size = number if unit.startswith("act") else number * _UNITS[unit]
    require_range(f"memory limit {value}", size, field="memory_limit")
    return (size, "act") if unit.startswith("act") else (size, "byte")
