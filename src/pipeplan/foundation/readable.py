"""Units of time, and number formats: times, shares, changes and sizes in tables, sentences and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

TIME_UNITS: Mapping[str, float] = MappingProxyType({"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0})
"""Units per second. Whole numbers, so that their ratios are exact."""


def units_in(unit: str, other: str) -> float:
    """Return how many of ``other`` make one ``unit``; both are keys of ``TIME_UNITS``."""
    return TIME_UNITS[other] / TIME_UNITS[unit]


_DIGITS = 4
"""Significant digits of the largest time of a table; the others have as many decimals, so that sums add up."""

_MOST_DECIMALS = 6


def transfers_in_words(communication: str, streams: str) -> str:
    """Return how transfers between ranks run; empty if each delays only its receiver."""
    return {
        "edge": "",
        "contended": "a link carries one transfer at a time, in the order in which they are sent",
        "streams": f"sends and receives run in order on one communication stream per {streams}",
        "blocking": "sends and receives occupy both ranks and start together",
    }[communication]


def percent(share: float) -> str:
    """Return a share of a whole: ``6.0%``; ``0.0%`` has no sign."""
    return _unsigned_zero(f"{100 * share:.1f}") + "%"


def change(share: float) -> str:
    """Return a relative change: ``+10.6%``, ``-4.3%``; ``0.0%`` if it rounds to zero."""
    text = f"{100 * share:+.1f}"
    return ("0.0" if float(text) == 0 else text) + "%"


@dataclass(frozen=True, slots=True)
class Times:
    """Number format of the times of one table, sentence or axis: one unit, the same decimals.

    ``unit`` is empty for times without one (a forward is 1), ``scale`` converts a time to that unit.
    """

    unit: str
    scale: float
    decimals: int

    @classmethod
    def of(cls, values: Iterable[float], unit: str) -> Times:
        """Return the format of some times: the largest is between 1 and 1000 of the chosen unit, with four digits.

        Times in an unknown unit, or in none, keep it. Decimals that are zero for every value are left out.
        """
        magnitudes = [abs(value) for value in values]
        largest = max(magnitudes, default=0.0)
        shown, scale = unit, 1.0
        if unit in TIME_UNITS and largest > 0:
            for candidate in sorted(TIME_UNITS, key=TIME_UNITS.__getitem__):  # seconds first
                shown, scale = candidate, units_in(unit, candidate)
                if largest * scale >= 1:
                    break
        decimals = 0
        if largest > 0:
            decimals = min(max(_DIGITS - 1 - math.floor(math.log10(largest * scale)), 0), _MOST_DECIMALS)
        while decimals and all(_whole(value * scale, decimals - 1) for value in magnitudes):
            decimals -= 1
        return cls(shown, scale, decimals)

    def number(self, value: float) -> str:
        """Return a time without its unit: ``2.02``, ``1,234``."""
        return _unsigned_zero(f"{value * self.scale:,.{self.decimals}f}")

    def parts(self, values: Iterable[float]) -> list[str]:
        """Return the numbers of parts, rounded so that they add up to the :meth:`number` of their sum."""
        written, total, before = [], 0.0, 0.0
        for value in values:
            total += value
            after = round(total * self.scale, self.decimals)
            written.append(_unsigned_zero(f"{after - before:,.{self.decimals}f}"))
            before = after
        return written

    def text(self, value: float) -> str:
        """Return a time with its unit: ``2.02 s``; without one ``28.2``."""
        return f"{self.number(value)} {self.unit}".rstrip()


def time_text(value: float, unit: str) -> str:
    """Return one time in its most readable unit: ``2.019 s`` for 2,019,403 us."""
    return Times.of((value,), unit).text(value)


_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_unit(largest: float) -> tuple[str, float]:
    """Return the unit in which sizes up to the largest are read best, and its bytes."""
    power = next((power for power in range(4) if largest < 1024.0 ** (power + 1)), 4)
    return _SIZE_UNITS[power], 1024.0**power


def size_text(size: float, *, up: bool = False) -> str:
    """Return bytes in their most readable unit: ``11.5 GiB``; ``up`` rounds up, for required sizes."""
    unit, scale = size_unit(abs(size))
    tenths = math.ceil(size / scale * 10) / 10 if up else size / scale
    return f"{tenths:,.1f} {unit}"


def size_texts(sizes: Sequence[float]) -> list[str]:
    """Return the bytes of one column, in the unit in which the largest is read best: ``11.5 GiB``, ``0.2 GiB``."""
    unit, scale = size_unit(max(map(abs, sizes), default=0.0))
    return [f"{size / scale:,.1f} {unit}" for size in sizes]


def memory_text(value: float, *, in_activations: bool) -> str:
    """Return an amount of memory with its unit: ``3 activations``, or ``3.1 GiB``."""
    return f"{value:,.4g} activation{'' if value == 1 else 's'}" if in_activations else size_text(value)


def sizes_text(one: float, other: float) -> tuple[str, str]:
    """Return two different numbers of bytes, to the byte if they would otherwise look the same."""
    texts = size_text(one), size_text(other)
    return texts if texts[0] != texts[1] else (f"{one:,.0f} bytes", f"{other:,.0f} bytes")


def _whole(value: float, decimals: int) -> bool:
    return math.isclose(value, round(value, decimals), rel_tol=1e-9, abs_tol=1e-12)


def _unsigned_zero(text: str) -> str:
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text
