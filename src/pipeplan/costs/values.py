"""Values of settings: durations, memory limits and stages as text (``12h``, ``8act``, ``0-3,6``), and ranges of numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from pipeplan.costs.written_numbers import SECONDS, parse_size
from pipeplan.foundation.errors import CostError, InputError, ShapeError
from pipeplan.model import LARGEST, MOST_FORWARDS, MOST_RANKS, SMALLEST, in_digits, require_range, shortened

_ACTIVATIONS = re.compile(r"(?i)\s*([-+0-9.eE]+|[-+]?inf|nan)\s*(?:acts?|activations?)\s*")

_DURATION = re.compile(r"(?i)\s*([-+0-9.e]+)\s*(s|min|h|d|)\s*")


def parse_duration(value: float | str, field: str) -> tuple[float, bool]:
    """Return a duration in seconds, and True if it has a unit: ``20`` is (20, False), ``30d`` is (2592000, True).

    Raises InputError with the setting ``field`` if the text is not a positive duration.
    """
    match = _DURATION.fullmatch(str(value))
    try:
        number, unit = float(match[1]), match[2].lower()  # type: ignore[index]
    except (TypeError, ValueError):
        raise InputError(
            f"{field}: invalid duration '{shortened(str(value), 60)}': expected seconds, or a unit such as 12h or 30d",
            field=field,
        ) from None
    if not 0 < number < math.inf:
        raise InputError(f"{field} must be more than 0 and finite, not {shortened(str(value), 60)}", field=field)
    return number * SECONDS[unit or "s"], bool(unit)


def parse_limit(value: float | str) -> tuple[float, Literal["byte", "act"]]:
    """Return a limit as a number with its unit: ``8act`` is (8, "act"), ``12GiB`` is (12 * 2**30, "byte")."""
    text = str(value)
    activations = _ACTIVATIONS.fullmatch(text)
    more = ", or activations such as 8act"
    try:
        number = (
            float(activations[1]) if activations else parse_size(text, "memory limit", field="memory_limit", more=more)
        )
    except ValueError:
        raise CostError(
            f"memory limit: invalid size '{shortened(text, 60)}': expected a number of activations such as 8act",
            field="memory_limit",
        ) from None
    if not 0 < number < math.inf:
        shown = shortened(value, 60) if isinstance(value, str) else f"{value:g}"
        raise CostError(f"memory limit must be more than 0 and finite, not {shown}", field="memory_limit")
    require_range(f"memory limit {shortened(text, 60)}", number, field="memory_limit")
    return number, "act" if activations else "byte"


def ranges_in(text: str, name: str) -> list[tuple[int, int]]:
    """Return the first and last stage of every range in a text such as ``0-3,6``.

    Raises ShapeError with the setting ``name`` if the text is invalid.
    """
    # At most nine digits: no schedule has more stages, and int() of a long text would take quadratic time.
    matches = [re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", word) for word in re.split(r"[\s,]+", text.strip())]
    ranges = [(int(match[1]), int(match[2] or match[1])) for match in matches if match is not None]
    if len(ranges) < len(matches) or any(first > last for first, last in ranges):
        raise ShapeError(f"{name} must be none, all or stages such as 0-3,6, not '{shortened(text, 60)}'", field=name)
    return ranges


@dataclass(frozen=True, slots=True)
class Range:
    """Range of the numbers that a setting accepts.

    Attributes
    ----------
    least
        Minimum.
    open
        True if ``least`` itself is excluded.
    most
        Maximum; None for times and sizes, whose maximum is ``LARGEST``.
    divides
        True if other numbers are divided by them: then the minimum of positive values is ``SMALLEST``.
    """

    least: float
    open: bool = False
    most: float | None = None
    divides: bool = False

    def fault(self, value: float) -> str | None:
        """Return the end of an error message that begins with the setting's name; None for a valid number."""
        low = not value > self.least if self.open else not value >= self.least
        bound = f"{'more than' if self.open else 'at least'} {self.least:g}"
        if self.most is not None:
            if low:
                return f" must be {bound}, not {_in_figures(value)}"
            return f" must be at most {_in_figures(self.most)}, not {_in_figures(value)}" if value > self.most else None
        if low or value == math.inf:
            return f" must be {bound} and finite, not {_in_figures(value)}"
        if value > LARGEST:
            return f": {_in_figures(value)} is too large to compute with; choose a larger unit"
        if self.divides and 0 < value < SMALLEST:
            return f": {value:g} is too small to compute with; choose a smaller unit"
        return None


def _in_figures(value: float) -> str:
    whole = isinstance(value, int) or (1000 <= value <= 1e15 and value == int(value))
    return in_digits(int(value), ",") if whole else f"{value:g}"


COUNT = Range(1, most=MOST_FORWARDS)
"""Range of chunks and microbatches: at most the number of forwards in the largest schedule."""

RANKS = Range(1, most=MOST_RANKS)

POSITIVE = Range(0, open=True, divides=True)
NOT_NEGATIVE = Range(0)
DIVISOR = Range(0, divides=True)
AT_LEAST_ONE = Range(1)
SHARE = Range(0, most=1)
"""Range of shares."""
