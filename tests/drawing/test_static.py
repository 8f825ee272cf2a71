import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from itertools import cycle, pairwise

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from pipeplan.costs import Limits
from pipeplan.drawing import DARK, LIGHT, order_of, view_of
from pipeplan.drawing.axes import legend_entries
from pipeplan.drawing.front import FrontView, save_front
from pipeplan.drawing.labels import fit_labels, text_widths
from pipeplan.drawing.sizes import SIZES
from pipeplan.drawing.static import compact, draw, figure_of, html_of, png_of, save_picture
from pipeplan.drawing.style import width_of, wrapped
from pipeplan.drawing.view import IdleGaps, View, Windows
from pipeplan.foundation.errors import InputError, UnknownNameError
from pipeplan.model import Kind, Reason
from pipeplan.model.memory import MemoryUse
from tests.drawing.examples import one_f_one_b, overlapped, schedule_named, view_named


def fills(ax):
    """The compound paths of axes by colour, without the idle lanes and the labels."""
    result: dict[str, list[PathCollection]] = {}
    for collection in ax.collections:
        if isinstance(collection, PathCollection) and collection.get_offset_transform() is not ax.transData:
            red, green, blue, _ = (round(255 * float(part)) for part in collection.get_facecolor()[0])
            result.setdefault(f"#{red:02x}{green:02x}{blue:02x}", []).append(collection)
    return result


def boxes(collection):
    """The rectangles of a compound path: left, right, top, bottom each."""
    (path,) = collection.get_paths()
    corners = path.vertices.reshape(-1, 5, 2)
    return np.column_stack((corners[:, 0, 0], corners[:, 1, 0], corners[:, 0, 1], corners[:, 2, 1]))


def extent(ax):
    """What axes take with all their labels, in pixels."""
    box = ax.get_tightbbox()
    assert box is not None
    return box


def legend_of(ax):
    legend = ax.get_legend()
    assert legend is not None
    return legend


def test_there_is_one_path_a_color_and_its_boxes_are_the_timeline():
    ax = draw(view_of(one_f_one_b()))
    paths = fills(ax)
    assert set(paths) == {LIGHT.lane, LIGHT.shades(Kind.F, 1)[0], LIGHT.shades(Kind.B, 1)[0]}
    assert all(len(collections) == 1 for collections in paths.values())
    forwards = boxes(paths[LIGHT.shades(Kind.F, 1)[0]][0])
    assert forwards[:, :2].tolist() == [[0, 1], [1, 2], [1, 2], [4, 5]]
    assert np.round(forwards[:, 2:].mean(axis=1)).tolist() == [0, 0, 1, 1]
    assert boxes(paths[LIGHT.shades(Kind.B, 1)[0]][0])[:, :2].tolist() == [[4, 6], [7, 9], [2, 4], [5, 7]]


def test_overlapped_forwards_are_above_their_backwards():
    paths = fills(draw(view_of(overlapped())))
    forward = boxes(paths[LIGHT.shades(Kind.F, 1)[0]][0])[2]
    backward = boxes(paths[LIGHT.shades(Kind.B, 1)[0]][0])[0]
    assert forward[:2].tolist() == backward[:2].tolist() == [2, 5]
    assert forward[2] < forward[3] == backward[2] == 0 < backward[3]


@pytest.mark.parametrize(
    ("name", "chunks", "ranks", "microbatches", "size"),
    [("interleaved-1f1b", 4, 4, 8, "column"), ("zb-h1", None, 8, 32, "page"), ("dualpipe", None, 16, 128, "slide")],
)
def test_labels_fit_their_boxes(name, chunks, ranks, microbatches, size):
    page, view = SIZES[size], view_named(name, ranks, microbatches, chunks)
    per_time, lane = 0.9 * page.width / view.makespan, page.lane_height(ranks)
    for labels in fit_labels(view.bars, per_time, lane, page.font, page.smallest):
        room = (view.bars.end - view.bars.start)[labels.bars] * per_time
        height = np.where(view.bars.part[labels.bars] == 0, lane, lane / 2)
        assert page.smallest <= labels.size <= page.font
        assert (text_widths(labels.text) * labels.size < room).all()
        assert (0.73 * labels.size < height).all()


def test_draw_uses_the_axes_it_is_given_and_shows_nothing():
    ax = Figure().add_subplot()
    assert draw(view_of(one_f_one_b()), ax) is ax
    assert ax.get_xlim() == (0, 9)
    assert ax.get_title(loc="left") == "1f1b"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["rank 0", "rank 1"]
    code = "import sys, pipeplan.drawing.static; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_views_share_one_time_axis_and_each_has_its_memory():
    views = [view_named("1f1b", 4, 8, memory=True), view_named("zb-h1", 4, 8, memory=True)]
    axes = figure_of(views, size="page").axes
    assert len(axes) == 4
    assert {ax.get_xlim() for ax in axes} == {(0, 33)}
    assert [ax.get_xlabel() for ax in axes] == ["", "", "", "time"]
    assert {len(ax.get_lines()) for ax in axes[1::2]} == {4}


@pytest.mark.parametrize(("size", "name"), list(zip(SIZES, cycle(["dualpipe", "1f1b", "zb-h1"]))))
def test_nothing_is_clipped_and_nothing_overlaps(size, name):
    figure = figure_of(view_named(name, 8, 32, memory=True), size=size)
    figure.draw_without_rendering()
    lanes, memory = figure.axes
    entries = figure.legends[0].get_window_extent()
    for box in (extent(lanes), extent(memory), entries):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert entries.y1 <= extent(memory).y0
    assert legend_of(memory).get_window_extent().y1 <= lanes.get_window_extent().y0
    titles = {child.get_text(): child.get_window_extent() for child in lanes.get_children() if isinstance(child, Text)}
    about = next(box for text, box in titles.items() if text.startswith("8 ranks, 32 microbatches"))
    figures = next(box for text, box in titles.items() if text.startswith("makespan"))
    assert titles[name].x1 < figures.x0
    assert about.y1 <= titles[name].y0
    assert lanes.get_window_extent().y1 <= about.y0


LONG = "a-schedule-with-a-name-that-no-column-of-a-paper-has-room-for " * 4


@pytest.fixture(scope="module")
def many_ops() -> View:
    return view_named("zbv", 4, 160, memory=True)


@pytest.mark.parametrize(
    ("title", "count", "size"),
    [
        *((LONG.strip(), count, size) for count in (1, 4) for size in SIZES),
        ("interleaved-1f1b-overlap", 4, "column"),
        ("x" * 300, 1, "column"),
    ],
)
def test_captions_are_whole_and_lie_within_the_page(many_ops, size, title, count):
    costs = "costs of a model with a long name, measured on a machine with a longer one"
    views = [replace(many_ops, title=title, costs=costs)] * count
    figure = figure_of(views, size=size)
    figure.draw_without_rendering()
    page = figure.bbox.padded(0.5)
    # Ticks beyond the end of an axis have texts, which are not drawn.
    ticks = {label for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for label in axis.get_ticklabels()}
    texts = [text for text in figure.findobj(Text) if text.get_text() and text not in ticks]
    boxes = {text.get_text(): text.get_window_extent() for text in texts}
    outside = {text: box for text, box in boxes.items() if not page.contains(*box.p0) or not page.contains(*box.p1)}
    assert outside == {}
    # Lines of a caption are texts of their own, from top to bottom.
    downwards = sorted(boxes, key=lambda text: -boxes[text].y0)
    captions = "".join("".join(downwards).split())
    if count < 3 or size == "column":
        assert not [text for text in boxes if "…" in text]
        assert "".join(title.split()) in captions
        assert "".join(costs.split()) in captions
    assert "averagedover" in captions, "the note on ops that are too narrow to draw"


def test_lines_are_as_full_as_their_room_allows_and_lose_nothing():
    words = "some ops are too narrow to draw: lanes show shares of the ranks' time"
    for room in (40.0, 90.0, 2000.0):
        lines = wrapped(words, 10, room)
        assert " ".join(lines) == words
        assert all(width_of(line, 10) <= room or " " not in line for line in lines)
        assert all(width_of(f"{one} {two.split()[0]}", 10) > room for one, two in pairwise(lines))
    assert wrapped("a" * 50, 10, 100.0)[0] == "a" * len(wrapped("a" * 50, 10, 100.0)[0])
    assert "".join(wrapped("a" * 50, 10, 100.0)) == "a" * 50
    assert wrapped("", 10, 100.0) == []


@pytest.mark.parametrize("size", SIZES)
def test_a_plain_picture_has_neither_title_nor_memory(size):
    view = view_named("zbv", 4, 8, memory=True)
    full, plain = (figure_of(view, size=size, plain=plain) for plain in (False, True))
    written = [text.get_text() for text in plain.findobj(Text)]
    assert not any(word in text for text in written for word in ("zbv", "makespan", "peak"))
    assert len(plain.axes) == 1 < len(full.axes)
    assert plain.get_figheight() <= full.get_figheight()
    assert len(plain.legends) == 1
    several = figure_of([view, replace(view, title="other")] * 2, size=size, plain=True)
    names = {text.get_text() for text in several.findobj(Text)}
    assert {"zbv", "other"} <= names, "several views keep their names"
    assert not any("schedules" in name or "peak" in name for name in names)


def test_memory_curves_and_caps_are_drawn():
    timeline = one_f_one_b()
    use = MemoryUse(timeline.schedule, np.array([1.0, 2, 1, 0, 1, 0, 1, 0]), None, np.zeros(2))
    memory = figure_of(
        view_of(timeline, use, limit=Limits(np.array([3.0, 2.0]), in_activations=True)), size="page"
    ).axes[1]
    labels = [text.get_text() for text in legend_of(memory).get_texts()]
    assert labels == ["rank 0: peak 2", "rank 1: peak 1", "limit of rank 0: 3", "limit of rank 1: 2"]
    first = memory.get_lines()[0]
    assert np.asarray(first.get_xdata()).tolist() == [0, 1, 1, 6, 6, 9, 9, 9]
    assert np.asarray(first.get_ydata()).tolist() == [1, 1, 2, 2, 1, 1, 0, 0]


def test_the_legend_names_what_is_there():
    view = view_named("dualpipe", 4, 8)
    titles = [entry.title for entry in legend_entries([view], LIGHT)]
    assert titles == [
        "forward",
        "backward",
        "backward for inputs",
        "backward for weights",
        "directions 0 and 1",
        "idle",
    ]
    one = np.zeros(1)
    gaps = IdleGaps(
        lane=one.astype(int),
        start=one,
        end=one + 1,
        reason=np.array([2]),
        cause=np.array([-1]),
        reasons=tuple(reason.key for reason in Reason),
    )
    assert legend_entries([replace(view, gaps=gaps)], LIGHT)[-1].title == "idle: waiting for messages"


def test_gaps_are_drawn_in_the_color_of_their_reason():
    gaps = IdleGaps(
        lane=np.array([0]),
        start=np.array([2.0]),
        end=np.array([4.0]),
        reason=np.array([1]),
        cause=np.array([5]),
        reasons=tuple(reason.key for reason in Reason),
    )
    paths = fills(draw(replace(view_of(one_f_one_b()), gaps=gaps)))
    assert boxes(paths[LIGHT.reasons["compute"]][0])[0, :2].tolist() == [2, 4]


@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_pictures_are_the_same_bytes_each_time(kind, begins):
    files = BytesIO(), BytesIO()
    for file in files:
        save_picture(view_named("dualpipe", 4, 6, memory=True), file, size="column", format=kind)
    assert files[0].getvalue().startswith(begins)
    assert files[0].getvalue() == files[1].getvalue()


@pytest.mark.parametrize(("size", "theme"), [("slide", LIGHT), ("column", DARK)])
def test_a_front_has_the_size_and_the_theme_of_its_options(size, theme):
    view = FrontView("front", "memory", "time", [(1.0, 2.0), (2.0, 1.0)], [1.0, 1.0], [("zbv", 1.5, 2.5)])
    file = BytesIO()
    save_front(view, file, size=size, theme=theme.name, format="png")
    width = int(np.frombuffer(file.getvalue()[16:20], ">u4")[0])
    assert width == round(SIZES[size].width / 72 * SIZES[size].dpi)
    file.seek(0)
    assert to_hex(imread(file)[0, 0]) == theme.page


def test_what_cannot_be_drawn_says_so():
    view = view_of(one_f_one_b())
    with pytest.raises(UnknownNameError, match="picture size"):
        figure_of(view, size="poster")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="ms and us cannot share"):
        figure_of([replace(view, unit="us"), replace(view, unit="ms")])


def test_notebooks_show_views_timelines_schedules_and_several():
    timeline = one_f_one_b()
    shown = html_of([view_of(timeline), timeline])
    assert shown.startswith('<img style="max-width: 100%" alt="1f1b: simulated, makespan 9, bubble 33.3%; 1f1b: ')
    assert "data:image/svg+xml;base64," in shown
    assert "the order of 8 ops on 2 ranks" in html_of(timeline.schedule)
    assert "data:image/png;base64," in html_of(order_of(schedule_named("1f1b", 16, 128)))
    assert png_of(timeline.schedule).startswith(b"\x89PNG")


def test_windows_in_which_a_limit_makes_a_rank_idle_are_outlined():
    view = view_named("1f1b", 3, 4)
    at = [np.array([value]) for value in (2, 1.0, 4.0, 0.5, 0.5)]
    windows = Windows(lane=at[0], start=at[1], end=at[2], idle=at[3], least=at[4], kind=("first",))
    plain, marked = (draw(replace(view, windows=shown)) for shown in (None, windows))
    outlines = [path for path in marked.collections if LIGHT.limit in map(to_hex, path.get_edgecolor())]
    assert len(marked.collections) == len(plain.collections) + 1
    (path,) = outlines[0].get_paths()
    assert path.get_extents().extents == pytest.approx([1.0, 2 - 0.43, 4.0, 2 + 0.43])


def test_svg_is_made_smaller_without_another_picture():
    assert compact('<path d="M 1.23456 -0.001 \nL 2 3.100001 \nz\n"/>') == '<path d="M1.23 0L2 3.1z"/>'
    assert compact('<use x="1.23456" y="7"/>') == '<use x="1.23" y="7"/>'
    for other in ('transform="scale(0.0651 -0.0651)"', 'id="m0.12345"', "<!-- 1.23456 -->"):
        assert compact(other) == other
