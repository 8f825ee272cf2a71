"""Archived views hold every number exactly, in few bytes; the page's reader is held to the same views by a file of them."""

import json
import re
import zlib
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeplan.drawing import View, view_of
from pipeplan.drawing.html import archived
from pipeplan.drawing.html.page import _Columns
from tests.drawing.examples import one_f_one_b, view_named

CASES = Path(__file__).parents[2] / "web_ui" / "tests" / "report" / "archived.json"
"""What web_ui/tests/report/archive.test.ts reads; written anew by this module run as a program."""

CODING = re.compile(r"@(\d+):(\d+):([itf])(\d)(?:/(\d+))?")


def examples() -> dict[str, View]:
    uneven = one_f_one_b()
    return {
        "whole times": view_named("zbv", 3, 4, memory=True),
        "no memory": view_of(uneven),
        "times without a common part": view_of(replace(uneven, start=uneven.start / 7, end=uneven.end / 7)),
        "a title like a column": view_of(uneven, title="@0:4:i1"),
    }


def read(text: str) -> dict[str, Any]:
    """What a page reads, with lists for columns."""
    data = zlib.decompress(b64decode(text))
    length = int.from_bytes(data[:4], "little")
    head, body = json.loads(data[4 : 4 + length]), data[4 + length :]
    times = column(head["times"], body, [])
    view = {name: filled(own, body, times) for name, own in head["view"].items()}
    return view | {name: head["view"][name] for name in ("title", "unit")}


def filled(value: Any, body: bytes, times: list[float]) -> Any:
    if isinstance(value, dict):
        return {name: filled(own, body, times) for name, own in value.items()}
    return column(value, body, times)


def column(value: Any, body: bytes, times: list[float]) -> Any:
    result = CODING.fullmatch(value) if isinstance(value, str) else None
    if result is None:
        return value
    offset, count, width = int(result[1]), int(result[2]), int(result[4])
    planes = np.frombuffer(body, np.uint8, count * width, offset).reshape(width, count)
    values = np.frombuffer(planes.T.tobytes(), f"<{'f' if result[3] == 'f' else 'i'}{width}")
    if result[3] == "f":
        return values.tolist()
    sums = np.cumsum(values.astype(np.int64))
    return [times[at] for at in sums] if result[3] == "t" else (sums / int(result[5] or 1)).tolist()


@given(
    arrays(np.float64, st.integers(0, 30), elements=st.floats(allow_nan=False, allow_infinity=False)),
    st.lists(st.integers(0, 30), max_size=30),
    arrays(np.int64, st.integers(0, 30), elements=st.integers(-(2**30), 2**30)),
)
@example(np.zeros(1), [], np.array([-(2**30), 2**30] * 3))  # differences of 2**31
def test_columns_are_exactly_what_they_were(numbers, places, whole):
    known = np.unique(numbers)
    of_times = [float(known[place % len(known)]) for place in places] if len(known) else []
    columns = _Columns(known)
    times = columns.times()
    written = [columns.add(own) for own in (np.array(of_times, np.float64), numbers / 3, whole)]
    opened_times = column(times, columns.bytes, [])
    assert opened_times == known.tolist()
    assert [column(own, columns.bytes, opened_times) for own in written] == [
        of_times,
        (numbers / 3).tolist(),
        whole.tolist(),
    ]


def test_the_page_is_held_to_the_views_of_now():
    kept = json.loads(CASES.read_text("utf-8"))
    assert kept.keys() == examples().keys()
    for name, view in examples().items():
        assert kept[name]["view"] == read(kept[name]["archived"]) == view.to_json_dict()


if __name__ == "__main__":
    cases = {name: {"archived": archived(view), "view": view.to_json_dict()} for name, view in examples().items()}
    CASES.write_text(json.dumps(cases) + "\n", "utf-8")
