"""Pictures for the page on bounds: real schedules, with the windows marked in which a limit makes a rank idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import pipeplan
from docs.build.strategies import THEMES
from pipeplan.answers import Explanation
from pipeplan.answers.simulating.result import view_of_result
from pipeplan.drawing.sizes import Size, ThemeName, size_named
from pipeplan.drawing.static import draw, save_figure
from pipeplan.drawing.theme import theme_named
from pipeplan.foundation.readable import Times

MARKS = 1.1
"""The height of the bars below the lanes, in lanes."""


def pages(themes: Sequence[ThemeName] = THEMES) -> Iterator[tuple[str, str | bytes]]:
    """The path and the content of each picture."""
    for name, shown in shown_schedules().items():
        for theme in themes:
            yield f"explanation/bounds/{name}-{theme}.svg", _picture(shown, theme)


def shown_schedules() -> dict[str, Explanation]:
    """What the pictures are of: a published schedule, and one that is as long as its bound."""
    published = pipeplan.explain("v-min", ranks=4, microbatches=6, p2p_time=0.1, memory_limit="2act")
    tightest = pipeplan.search(
        placement="v", ranks=4, microbatches=6, p2p_time=0.1, memory_limit="1act", evaluations=3000, seed=0
    )
    return {"v-min": published, "one-activation": pipeplan.explain(tightest, memory_limit="1act")}


def _picture(shown: Explanation, theme: ThemeName) -> bytes:
    """The timeline, and below it a bar for each window, with how much of it is idle on the rank whose it is."""
    trips = shown.result.bound.round_trips
    assert trips is not None
    colors, page, ranks = theme_named(theme), size_named("page"), shown.result.schedule.ranks
    figure, ax = _axes(page, ranks + MARKS, colors.page)
    draw(view_of_result(shown.result), ax, theme=theme)
    ax.set_ylim(ranks - 0.5 + MARKS, -0.5)
    times = Times.of([shown.result.makespan], shown.result.timeline.unit)
    for each in shown.windows:
        length = each.end - each.start
        for bottom, height, fill in ((trips.rank - 0.47, 0.94, "none"), (ranks - 0.3, 0.7, colors.lane)):
            box = Rectangle((each.start, bottom), length, height, facecolor=fill, edgecolor=colors.limit, zorder=5)
            ax.add_patch(box)
        said = f"{each.kind}: {times.number(each.idle)} of {times.number(length)}"
        middle = (each.start + length / 2, ranks + 0.05)
        ax.text(*middle, said, ha="center", va="center", fontsize=page.smallest, color=colors.text, zorder=6)
    file = BytesIO()
    save_figure(figure, file, format="svg")
    return file.getvalue()


def _axes(page: Size, lanes: float, background: str) -> tuple[Figure, Axes]:
    """Axes as wide as a page, with so many lanes."""
    height, above, below, left = lanes * page.lane, 2 * page.font, 3.5 * page.font, 6.5 * page.font
    whole = above + height + below
    figure = Figure((page.width / 72, whole / 72), facecolor=background)
    FigureCanvasAgg(figure)
    return figure, figure.add_axes((left / page.width, below / whole, 0.98 - left / page.width, height / whole))
