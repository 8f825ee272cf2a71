import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeplan.drawing import View, view_of
from pipeplan.drawing.html import asset, html_page, packed, timeline_data
from pipeplan.foundation.errors import UnknownNameError
from tests.drawing.examples import one_f_one_b, view_named


def unpacked(column: list[float] | str) -> np.ndarray:
    """What a page reads."""
    if isinstance(column, list):
        return np.array(column)
    kind, data = column.split(":")
    return np.frombuffer(b64decode(data), f"<{kind}")


def embedded(page: str):
    (result,) = re.findall(r'<script type="application/json" id="pipeplan-data">(.*?)</script>', page, re.DOTALL)
    return json.loads(result)


def titled(title: str) -> View:
    return view_of(one_f_one_b(), title=title)


FLOATS = arrays(np.float64, st.integers(0, 40), elements=st.floats(allow_nan=False, allow_infinity=False))


@given(FLOATS | arrays(np.int32, st.integers(0, 40)))
def test_packed_columns_are_exactly_what_was_packed(column):
    assert np.array_equal(unpacked(packed(column)), column)


def test_the_page_holds_the_view():
    view = view_named("zb-h1", 4, 8, memory=True)
    data = embedded(html_page(view))
    (result,) = data["views"]
    plain = view.to_json_dict()
    assert result.keys() == plain.keys()
    for table in ("bars", "links"):
        for name, column in plain[table].items():
            assert unpacked(result[table][name]).tolist() == column
    assert result["lanes"]["label"] == plain["lanes"]["label"]
    assert unpacked(result["memory"]["level"]).tolist() == plain["memory"]["level"]


def test_each_theme_has_the_shades_that_the_views_need():
    data = timeline_data([view_named("1f1b", 2, 4), view_named("interleaved-1f1b", 2, 4, 2)])
    for theme in ("light", "dark"):
        assert {count: len(own["kinds"]["F"]["fill"]) for count, own in data["themes"][theme].items()} == {
            "1": 1,
            "2": 2,
        }


def test_nothing_is_loaded_from_anywhere():
    page = html_page(titled("plan"))
    markup = page.replace(asset("timeline.js"), "").replace(asset("timeline.css"), "")
    assert re.findall(r'(?:src|href)="([^"]*)"', markup) == ["data:,"]
    assert "url(" not in asset("timeline.css")
    assert "@import" not in asset("timeline.css")
    assert re.findall(r"https?://[^\"'`\s]*", page.replace("http://www.w3.org/", "")) == []


def test_only_the_built_script_may_run():
    page = html_page(titled("plan"))
    digest = b64encode(sha256(asset("timeline.js").encode()).digest()).decode()
    assert f"script-src &#x27;sha256-{digest}&#x27;" in page
    assert "default-src &#x27;none&#x27;" in page


def test_a_number_that_is_not_finite_is_refused():
    for column in (np.full(3, np.nan), np.full(30, np.inf)):
        with pytest.raises(ValueError, match="finite"):
            packed(column)


def test_a_page_has_the_title_of_its_views_and_the_theme_of_its_options():
    page = html_page([titled("one"), titled("two")], theme="dark")
    assert "<title>one, two</title>" in page
    assert 'data-begin="theme=dark"' in page
    assert 'data-begin=""' in html_page(titled("as the system"))
    with pytest.raises(UnknownNameError, match="did you mean 'dark'"):
        html_page(titled("neither"), theme="drak")  # type: ignore[arg-type]
