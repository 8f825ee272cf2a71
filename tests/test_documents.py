"""JSON as it is written, and YAML as it is read: what plain values are, and what is refused."""

import json
import math

import msgspec
import pytest

from pipeplan.foundation.documents import MOST_DEPTH, json_text, read_yaml
from pipeplan.foundation.errors import CostError


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


def test_plain_values():
    for text, value in [
        ("1:30", "1:30"),
        ("010", 10),
        ("-010", -10),
        ("0o10", 8),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("1e9", 1e9),
        (".5", 0.5),
        ("1.", 1.0),
        ("+", "+"),
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("2024-01-01", "2024-01-01"),
        ("0b11", "0b11"),
        ("=", "="),
        ("-.inf", -math.inf),
        ("'010'", "010"),
        ("[1, two, 3.5]", [1, "two", 3.5]),
    ]:
        result = read_yaml(f"a: {text}\n")["a"]
        assert (result, type(result)) == (value, type(value)), text


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(lines)


def test_slips_and_bombs():
    for text, message in [
        ("a: 1\na: 2", "duplicate key 'a' in lines 1 and 2; keep one of them"),
        ("a: {b: 1, b: 2}", "duplicate key 'b'"),
        ("1: 1\n'1': 2", "duplicate key '1'"),
        ("a: &x {b: 1}\nc: {<<: *x}", "YAML merge keys"),
        (bomb(9), "expand to more values than the file has characters"),
        ("a: &x [*x]", "is undefined or refers to itself"),
        ("a: *nobody", "is undefined"),
        ("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "nested too deeply"),
        (
            "a: !!python/object/apply:os.getcwd []",
            "unsupported YAML tag 'tag:yaml.org,2002:python/object/apply:os.getcwd'; remove it",
        ),
        ("a: 1\n---\na: 2", "line 2, column 1: a second document after '---'; keep one"),
    ]:
        with pytest.raises(ValueError, match=message):
            read_yaml(text)


def test_a_few_aliases_are_what_they_stand_for():
    assert read_yaml("a: &times [1, 2]\nb: *times\nc: &one 3\nd: *one") == {"a": [1, 2], "b": [1, 2], "c": 3, "d": 3}
