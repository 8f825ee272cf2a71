"""SVG is made smaller without another picture."""

from io import BytesIO

import pytest

from pipeplan.drawing import view_of
from pipeplan.drawing.static import save_picture
from pipeplan.drawing.svg import compact
from tests.drawing.examples import one_f_one_b, view_named


def test_coordinates_lose_what_is_not_seen():
    assert compact('<path d="M 1.23456 -0.001 \nL 2 3.100001 \nz\n"/>') == '<path d="M1.23 0L2 3.1z"/>'
    assert compact('<use x="1.23456" y="7"/>') == '<use x="1.23" y="7"/>'


def test_rectangles_are_written_by_their_edges():
    assert (
        compact('<path d="M 1 2 \nL 3 2 \nL 3 4 \nL 1 4 \nz\nM 9 9 \nL 8 7 \nz\n"/>')
        == '<path d="M1 2H3V4H1zM9 9L8 7z"/>'
    )


@pytest.mark.parametrize("kept", ['transform="scale(0.0651 -0.0651)"', 'id="m0.12345"', "<!-- 1.23456 -->"])
def test_everything_else_stays(kept):
    assert compact(kept) == kept


def test_a_picture_for_a_gallery_is_small():
    file = BytesIO()
    save_picture(view_named("zbv", 4, 8, memory=True), file, size="column", format="svg")
    assert len(file.getvalue()) < 90_000
    file = BytesIO()
    save_picture(view_of(one_f_one_b()), file, size="column", format="svg")
    assert len(file.getvalue()) < 40_000
