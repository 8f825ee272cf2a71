"""Figures for the glossary: a small schedule per term, in which the term is marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import pipeplan
from docs.build.strategies import THEMES
from pipeplan.answers import Result
from pipeplan.answers.simulating.result import view_of_result
from pipeplan.drawing.from_timeline import order_of, view_of
from pipeplan.drawing.sizes import Size, ThemeName, size_named
from pipeplan.drawing.static import draw, figure_of, save_figure
from pipeplan.drawing.theme import Theme, theme_named
from pipeplan.drawing.view import Bars, View
from pipeplan.formats.rows import parse_rows
from pipeplan.model import Bools, Kind, Timeline
from pipeplan.simulation import critical_ops

FOLDER = "explanation/glossary"


@dataclass(frozen=True, slots=True)
class Mark:
    """A box around a part of a figure, in lanes and in units of time, with text inside or no text."""

    lane: float
    start: float
    end: float
    text: str = ""
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Drawing:
    """A view and the marks that show a term in it.

    Attributes
    ----------
    rows
        Empty lanes below the ranks, for marks with text.
    end
        Right end of the time axis; the makespan if it is 0.
    """

    view: View
    marks: tuple[Mark, ...] = ()
    rows: int = 0
    end: float = 0.0


def pages(themes: Sequence[ThemeName] = THEMES) -> Iterator[tuple[str, str | bytes]]:
    """Yield the path and the content of each figure in each theme."""
    for theme in themes:
        for name, make in DRAWINGS.items():
            yield f"{FOLDER}/{name}-{theme}.svg", _marked(make(), theme)
        for name, result in MEMORY.items():
            yield (
                f"{FOLDER}/{name}-{theme}.svg",
                _written(figure_of(view_of_result(result()), size="page", theme=theme)),
            )
        yield f"{FOLDER}/pareto-front-{theme}.svg", _front(theme)


def names() -> list[str]:
    """Return the names of all figures, which are the anchors of their terms."""
    return [*DRAWINGS, *MEMORY, "pareto-front"]


def _simulated(name: str, ranks: int, microbatches: int, **settings: object) -> Result:
    return pipeplan.simulate(name, ranks=ranks, microbatches=microbatches, **settings)  # type: ignore[arg-type]


def _one_f_one_b(**settings: object) -> Result:
    return _simulated("1f1b", 4, 4, **settings)


def _boxes(bars: Bars, chosen: Bools, text: Callable[[int], str] = lambda _: "") -> tuple[Mark, ...]:
    """Return a mark around each of the chosen bars."""
    return tuple(
        Mark(int(bars.lane[bar]), float(bars.start[bar]), float(bars.end[bar]), text(int(bar)))
        for bar in np.flatnonzero(chosen)
    )


def _rank() -> Drawing:
    view = view_of_result(_one_f_one_b())
    return Drawing(view, (Mark(2, 0, view.makespan),))


def _stage() -> Drawing:
    view = view_of_result(_one_f_one_b())
    bars = view.bars
    return Drawing(view, _boxes(bars, bars.stage == 1))


def _chunk() -> Drawing:
    view = view_of_result(_simulated("interleaved-1f1b", 2, 4, chunks=2))
    return Drawing(view, _boxes(view.bars, view.bars.chunk == 1))


def _placement() -> Drawing:
    view = view_of_result(_simulated("zbv", 3, 5))
    bars = view.bars
    return Drawing(view, _boxes(bars, (bars.microbatch == 0) & (bars.kind == Kind.F)))


def _microbatch() -> Drawing:
    view = view_of_result(_one_f_one_b())
    return Drawing(view, _boxes(view.bars, view.bars.microbatch == 1))


def _factor() -> Drawing:
    view = view_of_result(_simulated("1f1b", 3, 5, microbatch_factors=[1.0, 1.0, 2.5, 1.0, 1.0]))
    return Drawing(view, _boxes(view.bars, view.bars.microbatch == 2))


def _op() -> Drawing:
    view = view_of_result(_simulated("zb-h1", 2, 3))
    bars = view.bars
    return Drawing(view, _boxes(bars, (bars.microbatch == 0) & (bars.lane == 1)))


def _schedule() -> Drawing:
    return Drawing(order_of(_one_f_one_b().schedule, title="1f1b"))


def _timeline() -> Drawing:
    return Drawing(view_of_result(_one_f_one_b(forward_times=[1, 1, 1, 2])))


def _makespan() -> Drawing:
    view = view_of_result(_one_f_one_b())
    return Drawing(view, (Mark(4, 0, view.makespan, f"makespan: {view.makespan:g}"),), rows=1)


def _bubble() -> Drawing:
    result = _one_f_one_b()
    view, marks = view_of_result(result), list[Mark]()
    for rank in range(result.ranks):
        own = view.bars.lane == rank
        ends = [0.0, *sorted(view.bars.end[own])]
        starts = [*sorted(view.bars.start[own]), view.makespan]
        marks += [Mark(rank, end, start) for end, start in zip(ends, starts, strict=True) if start - end > 1e-9]
    return Drawing(view, tuple(marks))


def _warm_up() -> Drawing:
    view = view_of_result(_simulated("1f1b", 4, 8))
    bars, marks = view.bars, list[Mark]()
    for rank in range(4):
        forward = (bars.lane == rank) & (bars.kind == Kind.F)
        backward = (bars.lane == rank) & (bars.kind == Kind.B)
        marks += _boxes(bars, forward & (bars.start < bars.start[backward].min()))
        marks += _boxes(bars, backward & (bars.start > bars.start[forward].max()))
    return Drawing(view, tuple(marks))


def _critical_path() -> Drawing:
    result = _one_f_one_b(p2p_time=0.5)
    view = view_of_result(result)
    chosen = np.zeros(len(view.bars), bool)
    chosen[critical_ops(result.timeline, result.costs)] = True
    return Drawing(view, _boxes(view.bars, chosen))


def _lower_bound() -> Drawing:
    result = _one_f_one_b()
    bound, end = float(result.bound.value), result.makespan
    marks = (Mark(4, 0, bound, f"lower bound: {bound:g}"), Mark(4, bound, end, f"gap: {end / bound - 1:.0%}"))
    return Drawing(view_of_result(result), marks, rows=1)


def _transfer() -> Drawing:
    view = view_of_result(_simulated("1f1b", 2, 3, p2p_time=0.75))
    bars = view.bars
    forward = np.flatnonzero((bars.kind == Kind.F) & (bars.microbatch == 0))
    backward = np.flatnonzero((bars.kind == Kind.B) & (bars.microbatch == 0))
    marks = [
        Mark(int(bars.lane[other]), float(bars.end[one]), float(bars.start[other]))
        for ops in (forward[np.argsort(bars.start[forward])], backward[np.argsort(bars.start[backward])])
        for one, other in pairwise(ops)
    ]
    return Drawing(view, tuple(marks))


def _recomputation() -> Drawing:
    view = view_of_result(_simulated("1f1b", 2, 4, recompute="all"))
    return Drawing(view, _boxes(view.bars, view.bars.kind == Kind.R))


def _offload() -> Drawing:
    view = view_of_result(_simulated("1f1b", 4, 6, offload="0", offload_times=2))
    bars = view.bars
    return Drawing(view, _boxes(bars, (bars.kind == Kind.OFFLOAD) | (bars.kind == Kind.RELOAD)))


def _split_backward() -> Drawing:
    view = view_of_result(_simulated("zb-h1", 4, 6))
    return Drawing(view, _boxes(view.bars, view.bars.kind == Kind.W))


def _overlap() -> Drawing:
    view = view_of_result(_simulated("dualpipev", 2, 5))
    bars = view.bars
    return Drawing(view, _boxes(bars, (bars.group >= 0) & (bars.kind == Kind.F)))


def _slice() -> Drawing:
    view = view_of_result(_simulated("seq1f1b", 4, 4))
    bars = view.bars
    return Drawing(view, _boxes(bars, (bars.slice == 1) & (bars.microbatch == 0)))


def _two_copies() -> Drawing:
    view = view_of_result(_simulated("chimera", 4, 4))
    return Drawing(view, _boxes(view.bars, view.bars.copy == 1))


def _deadlock() -> Drawing:
    """Draw a schedule of two ranks up to the point where each waits for an op that the other has behind its next one."""
    schedule = parse_rows("0F0,0F1,0B0\n1F0,1B0,1F1\n")
    start = np.array([0, 1, 4, 1, 2, 4], float)
    view = view_of(Timeline(schedule, start, start + np.array([1, 1, 2, 1, 2, 1])), title="deadlock")
    marks = (Mark(0, 6, 12, "0B1 waits for 1B1"), Mark(1, 5, 12, "1F2 waits for 0F2"))
    return Drawing(view, marks, end=12)


DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "rank": _rank,
    "stage": _stage,
    "chunk": _chunk,
    "placement": _placement,
    "microbatch": _microbatch,
    "factor": _factor,
    "slice": _slice,
    "op": _op,
    "split-backward": _split_backward,
    "overlapped-pair": _overlap,
    "two-copies": _two_copies,
    "schedule": _schedule,
    "timeline": _timeline,
    "makespan": _makespan,
    "bubble": _bubble,
    "warm-up": _warm_up,
    "transfer": _transfer,
    "critical-path": _critical_path,
    "lower-bound": _lower_bound,
    "deadlock": _deadlock,
    "recomputation": _recomputation,
    "offload": _offload,
}

MEMORY: dict[str, Callable[[], Result]] = {
    "activation": lambda: _simulated("1f1b", 4, 8),
    "memory-limit": lambda: _simulated("gpipe", 4, 8, memory_limit="6act"),
}
"""Figures that show the memory of each rank over time."""


def _front(theme: ThemeName) -> bytes:
    front = pipeplan.pareto(ranks=4, microbatches=8, placement="v", points=5, evaluations=1500, workers=1)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "front.svg"
        front.save(path, theme=theme)
        return path.read_bytes()


def _marked(drawing: Drawing, theme: ThemeName) -> bytes:
    view, colors, page = drawing.view, theme_named(theme), size_named("page")
    lanes = len(view.lanes.label) + drawing.rows
    figure, ax = _axes(page, lanes, colors)
    draw(view, ax, theme=theme)
    ax.set_ylim(lanes - 0.5, -0.5)
    if drawing.end:
        ax.set_xlim(0, drawing.end)
    for mark in drawing.marks:
        corner, height = (mark.start, mark.lane - 0.46), mark.lanes - 0.08
        fill = colors.lane if mark.text else "none"
        box = Rectangle(corner, mark.end - mark.start, height, facecolor=fill, edgecolor=colors.limit, lw=1.8, zorder=5)
        ax.add_patch(box)
        ax.text(
            (mark.start + mark.end) / 2, mark.lane, mark.text,
            ha="center", va="center", fontsize=page.font, color=colors.text, zorder=6,
        )  # fmt: skip
    return _written(figure)


def _axes(page: Size, lanes: int, colors: Theme) -> tuple[Figure, Axes]:
    """Return axes as wide as a page, with a title above and a time axis below."""
    height, above, below, left = lanes * page.lane, 2 * page.font, 3.5 * page.font, 6.5 * page.font
    whole = above + height + below
    figure = Figure((page.width / 72, whole / 72), facecolor=colors.page)
    FigureCanvasAgg(figure)
    return figure, figure.add_axes((left / page.width, below / whole, 0.98 - left / page.width, height / whole))


def _written(figure: Figure) -> bytes:
    file = BytesIO()
    save_figure(figure, file, format="svg")
    return file.getvalue()
