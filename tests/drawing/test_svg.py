"""SVG is made smaller without another picture."""

import pytest

from pipeplan.drawing.static import compact


def test_coordinates_lose_what_is_not_seen():
    assert compact('<path d="M 1.23456 -0.001 \nL 2 3.100001 \nz\n"/>') == '<path d="M1.23 0L2 3.1z"/>'
    assert compact('<use x="1.23456" y="7"/>') == '<use x="1.23" y="7"/>'


@pytest.mark.parametrize("kept", ['transform="scale(0.0651 -0.0651)"', 'id="m0.12345"', "<!-- 1.23456 -->"])
def test_everything_else_stays(kept):
    assert compact(kept) == kept
