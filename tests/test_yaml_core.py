"""What plain values are in YAML's core schema, and what is refused."""

import math

import pytest

from pipeplan.yaml_core import MOST_DEPTH, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
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
    ],
)
def test_plain_values(text, value):
    found = read_yaml(f"a: {text}\n")["a"]
    assert (found, type(found)) == (value, type(value))


def test_not_a_number_is_a_number_for_the_range_to_refuse():
    assert math.isnan(read_yaml("a: .nan")["a"])


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "the key 'a' stands twice"),
        ("a: {b: 1, b: 2}", "the key 'b' stands twice"),
        ("1: 1\n'1': 2", "the key '1' stands twice"),
        ("a: &x {b: 1}\nc: {<<: *x}", "merges groups of keys"),
        (bomb(9), "stand for more than the file has letters"),
        ("a: &x [*x]", "stands for nothing, or for what it is in"),
        ("a: *nobody", "stands for nothing"),
        ("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "nested too deeply"),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("a: 1\n---\na: 2", "expected a single document"),
    ],
)
def test_slips_and_bombs(text, message):
    with pytest.raises(ValueError, match=message):
        read_yaml(text)


def test_a_few_aliases_are_what_they_stand_for():
    assert read_yaml("a: &times [1, 2]\nb: *times\nc: &one 3\nd: *one") == {"a": [1, 2], "b": [1, 2], "c": 3, "d": 3}
