"""Objects that nobody means, by the name of what they are given to."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tests.torture.commands.values import SCHEDULERS, SMALL

_NAN = float("nan")
_INF = float("inf")


class _Index:
    """As numpy's integers are: no int, and as good as one."""

    def __index__(self) -> int:
        return 2


class _Word(str):
    """A text of a class of its own."""


_MADE: tuple[Callable[[], Any], ...] = (
    lambda: iter([1, 2]),
    lambda: (each for each in (1.0, 2.0)),
    lambda: _around([]),
    object,
    _Index,
    lambda: np.array([1.0, 2.0]),
    lambda: np.array(2.0),
    lambda: np.array([[1.0, 2.0]]),
    lambda: np.array(["x"]),
    lambda: np.array([1, None], dtype=object),
    lambda: np.array([_NAN, 1.0]),
    lambda: np.array([]),
    lambda: np.array([1, 2], dtype=np.int8),
    lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
)
"""What is made anew for each call."""

OBJECTS: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        3,
        1.5,
        2.0,
        -0.0,
        _NAN,
        _INF,
        -_INF,
        1e308,
        -1e308,
        5e-324,
        2**31,
        2**63,
        10**30,
        -(10**30),
        10**400,
    ),
    *(
        "",
        " ",
        "x",
        "zbv",
        "1f1b",
        "2",
        "1.5",
        "nan",
        "12GiB",
        "8act",
        "all",
        "\x00",
        "\ud800",
        "\u202e",
        "\x1b[31m",
        "x" * 5000,
        "a\nb",
        "0-3",
    ),
    *(
        b"",
        b"x",
        [],
        [1],
        [1, 2],
        [1.0, 2.0],
        [1, "x"],
        [None],
        [[1, 2]],
        [1] * 300,
        [_NAN, 1],
        [-1, 1],
        [10**400, 1],
        ["1GiB", "2GiB"],
        (),
        (1.0, 2.0),
    ),
    *(
        {},
        {"a": 1},
        {1: 2},
        set(),
        {1, 2},
        frozenset({1}),
        range(2),
        int,
        len,
        Ellipsis,
        NotImplemented,
        1 + 2j,
    ),
    *(
        np.float64(2),
        np.int64(2),
        np.float32(0.1),
        np.bool_(True),
        np.str_("zbv"),
        Decimal("1.5"),
        Decimal("NaN"),
        Fraction(1, 3),
    ),
    *(
        Path("."),
        Path("missing"),
        Path("order.json"),
        Path("folder/x.json"),
        date(2026, 1, 1),
        _Word("zbv"),
        bytearray(b"x"),
        memoryview(b"x"),
    ),
)

_PATHS = (
    *(
        "",
        ".",
        "folder",
        "missing",
        "missing/x.json",
        "order.json",
        "order.json/",
        "x.json",
        "x.csv",
        "x.png",
        "x.html",
        "x.trace.json",
        "x.exe",
    ),
    *(
        "x\x00.json",
        "\ud800.json",
        "x" * 300 + ".json",
        "loop.json",
        "empty.json",
        "config.yaml",
        "traces",
        "torch-csv.csv",
        "json.json",
        b"x.json",
    ),
    *(
        Path("order.json"),
        Path("x.yaml"),
        Path("missing/x.json"),
        Path("costs.costs.json"),
        "configuration.yaml",
        "model.yaml",
        "cluster.yaml",
    ),
)
_FILES = ("source", "target", "path", "store", "calibration", "calibrate", "gpu", "measured", "csv")
_NAMES = (
    "order.json",
    "json.json",
    "torch-csv.csv",
    "zbv",
    "1f1b",
    "gpipe",
    "dualpipev",
    "nonsense",
    "traces",
    "config.yaml",
)


def hostile(name: str, luck: random.Random, known: tuple[Any, ...]) -> Any:
    """An object for a parameter of this name; ``known`` are those of pipeplan's own types."""
    while True:
        value = _value(name, luck, known)
        if _is_bounded(name, value):
            return value


def _value(name: str, luck: random.Random, known: tuple[Any, ...]) -> Any:
    if name == "dask":
        return luck.choice((*SCHEDULERS, *(each for each in OBJECTS if not isinstance(each, str | bytes))))
    way = luck.random()
    if way < 0.12:
        return luck.choice(known)
    if way < 0.25:
        return luck.choice(_MADE)()
    if name in _FILES and way < 0.7:
        return luck.choice(_PATHS)
    if name in ("schedule", "schedules", "planned", "start") and way < 0.5:
        return luck.choice(_NAMES)
    return luck.choice(OBJECTS)


def _is_bounded(name: str, value: Any) -> bool:
    """Whether what a value asks for is refused, or small; no output is a stream."""
    most = SMALL.get(f"--{name}")
    number = isinstance(value, int | float | np.number | Decimal | Fraction) and not isinstance(value, bool)
    if most is not None and number:
        return value != value or not most < value <= 10**17
    return True


def _around(inner: list[Any]) -> list[Any]:
    """A list that holds itself."""
    inner.append(inner)
    return inner
