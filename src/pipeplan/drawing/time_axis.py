"""The time axis of a picture: one unit for the whole page, and round numbers in it."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, MaxNLocator

from pipeplan.drawing.labels import times_of
from pipeplan.drawing.sizes import Size
from pipeplan.drawing.style import fitted
from pipeplan.drawing.theme import Theme
from pipeplan.drawing.view import View
from pipeplan.readable import Times

_MOST_DECIMALS = 6


class TimeTicks(Formatter):
    """Ticks in the unit of some times, all with as many decimals as the finest of them needs."""

    def __init__(self, times: Times) -> None:
        super().__init__()
        self.times = times
        self._decimals = times.decimals

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the ticks of one axis."""
        shown = [value * self.times.scale for value in values]
        self._decimals = next((n for n in range(_MOST_DECIMALS) if all(_whole(value, n) for value in shown)), 6)
        return [self(value) for value in values]

    def __call__(self, value: float, pos: float | None = None) -> str:
        """One of them."""
        return f"{value * self.times.scale:,.{self._decimals}f}"


def time_label(views: Sequence[View], times: Times) -> str:
    """The name of the axis that some views share."""
    if all(view.source == "order" for view in views):
        return "place in the rank's order"
    return f"time ({times.unit})" if times.unit else "time"


def draw_time_axis(ax: Axes, views: Sequence[View], size: Size, theme: Theme) -> None:
    """Give the lower axis of axes round times, in the one unit of some views, and its name.

    Raises
    ------
    InputError
        For views whose times are in different units.
    """
    times, font = times_of(views), size.font
    write_times(ax.xaxis, times)
    ax.tick_params(axis="x", bottom=True, labelbottom=True, labelsize=0.9 * font, colors=theme.text)
    ax.tick_params(axis="x", length=font / 4, width=0.6)
    label = fitted(time_label(views, times), font, points_across(ax))
    ax.set_xlabel(label, fontsize=font, color=theme.text, labelpad=0.25 * font, parse_math=False)


def write_times(axis: Axis, times: Times, ticks: int = 8) -> None:
    """Give an axis of times round ticks, about so many."""
    axis.set_major_locator(MaxNLocator(ticks, steps=(1, 2, 2.5, 5, 10)))
    axis.set_major_formatter(TimeTicks(times))


def points_across(ax: Axes) -> float:
    """Return the width of axes in points."""
    return float(ax.get_window_extent().width * 72 / ax.figure.dpi)


def _whole(value: float, decimals: int) -> bool:
    return abs(round(value, decimals) - value) < 1e-9 * max(abs(value), 1.0)
