"""Where an axis is cut because a few values lie far beyond the others."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

_FAR = 2.2
"""How many times the range of the others must fit into that of all."""

_FEW = 0.25
"""The largest share of values that may be cut off."""


def cut_above(values: Sequence[float]) -> float | None:
    """The largest value that is shown, where few lie so far beyond it that the others could not be told apart."""
    known = sorted(set(values))
    least = known[0]
    first = max(1, len(known) - max(1, int(_FEW * len(known))) - 1)
    for value in known[first:-1]:
        if known[-1] - least > _FAR * (value - least) > 0:
            return value
    return None


def mark_cut(ax: Axes, color: str, size: float, *, upper: bool) -> None:
    """Two strokes across the end of the left axis, or of the lower one: the axis goes no further, the values do."""
    slanted = [(-0.5, -0.35), (0.5, 0.35)]
    for near in (1.0, 1.9):
        across = [x * 0.9 * size for x, _ in slanted]
        along = [y * 0.9 * size - near * 0.45 * size for _, y in slanted]
        ends = list(zip(across, along, strict=True)) if upper else list(zip(along, across, strict=True))
        corner = (0, 1) if upper else (1, 0)
        begin, end = (_pixels(ax, corner, offset) for offset in ends)
        to_share = ax.transAxes.inverted().transform
        (x0, y0), (x1, y1) = to_share(begin), to_share(end)
        ax.plot([x0, x1], [y0, y1], transform=ax.transAxes, color=color, linewidth=1.0, clip_on=False, zorder=5)


def _pixels(ax: Axes, corner: tuple[float, float], offset: tuple[float, float]) -> tuple[float, float]:
    x, y = ax.transAxes.transform(corner)
    scale = ax.figure.dpi / 72
    return x + offset[0] * scale, y + offset[1] * scale
