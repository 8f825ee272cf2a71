import json
import math

import msgspec
import pytest

from pipeplan.errors import CostError
from pipeplan.strict_json import json_text


class Record(msgspec.Struct, kw_only=True, tag_field="format", tag="a-record"):
    name: str
    values: list[float]
    gap: float | msgspec.UnsetType | None = msgspec.UNSET


def test_plain_values_and_records():
    record = Record(name="zwölf", values=[1.5, 2.0])
    plain = {"format": "a-record", "name": "zwölf", "values": [1.5, 2.0]}
    assert json.loads(json_text(record)) == plain
    assert json.loads(json_text({"inside": (record, None)})) == {"inside": [plain, None]}
    assert json_text({"a": [1, 2]}) == '{"a": [1, 2]}'
    assert json_text({"a": [1, 2]}, compact=True) == '{"a":[1,2]}'
    assert json_text({"a": 1}, indent=1) == '{\n "a": 1\n}'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("indent", [None, 1])
def test_what_is_not_finite_is_refused_and_named(value, indent):
    for document, place in (
        ({"results": [{"gap": 0.5}, {"gap": value}]}, r"results\.1\.gap"),
        ({"plan": Record(name="", values=[0.0, value])}, r"plan\.values\.1"),
        (Record(name="", values=[], gap=value), "gap"),
    ):
        with pytest.raises(CostError, match=f"^{place} is {value}, which JSON cannot hold"):
            json_text(document, indent=indent)
