"""Calls of the public functions with objects of every type: only errors of our own may come of it."""

from __future__ import annotations

import inspect
import random
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import pipeplan
from pipeplan.costs import SETTINGS
from pipeplan.documents import json_text
from pipeplan.errors import PipeplanError
from tests.torture.honest_files import put
from tests.torture.suite import Found, Suite
from tests.torture.values import PATHS, SMALL, TEXTS

Arguments = dict[str, Any]

_SHAPE: Arguments = {"ranks": 2, "microbatches": 3}
_BUDGET: Arguments = {"ranks": 2, "microbatches": 2, "evaluations": 20, "workers": 1}

HONEST: dict[str, tuple[tuple[Any, ...], Arguments]] = {
    "check": (("zbv",), _SHAPE),
    "compare": (("1f1b", "gpipe"), _SHAPE),
    "convert": (("order.json", "x.csv"), {}),
    "diff": (("json.json", "traces"), {}),
    "estimate": (("configuration.yaml",), {"workers": 1}),
    "explain": (("1f1b",), _SHAPE),
    "export": (("zbv", "torch-csv"), _SHAPE),
    "pareto": ((), {**_BUDGET, "points": 2}),
    "profile": ((), {"source": "traces"}),
    "read": (("order.json",), {}),
    "save": (("order.json", "x.csv"), {}),
    "schedules": (("zbv",), {}),
    "search": ((), _BUDGET),
    "simulate": (("zbv",), _SHAPE),
    "steady_state": ((), {"ranks": 2, "microbatches": 2, "seconds": 0.2}),
}
"""Honest arguments of each function, by place and by name."""

_SETTINGS = ("check", "compare", "explain", "export", "pareto", "search", "simulate", "steady_state")
"""Functions that take settings by name."""

OBJECTS: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 1.5, -0.0, float("nan"), float("inf"), 1e308, 5e-324, 2**31, 2**63, 10**400),
    *(b"", [], [1], [1.0, 2.0], [1, "x"], [None], [[1, 2]], [10**400, 1], ["1GiB", "2GiB"], (), (1.0, 2.0), {}),
    *({"a": 1}, {1, 2}, range(2), int, len, Ellipsis, 1 + 2j, np.float64(2), np.int64(2), np.bool_(True), object()),
    *(np.array([1.0, 2.0]), np.array(2.0), np.array([[1.0]]), np.array([]), np.array(["x"]), np.array([None])),
    *(Decimal("1.5"), Decimal("NaN"), Fraction(1, 3), Path("."), Path("order.json"), bytearray(b"x"), iter([1, 2])),
    *("zbv", "1f1b", "2", "nan", "\x00", *TEXTS),
)


def _attempt(seed: int, folder: Path) -> str:
    luck = random.Random(f"calls {seed}")
    put(folder)
    name = luck.choice(sorted(HONEST))
    function = getattr(pipeplan, name)
    places, names = list(HONEST[name][0]), dict(HONEST[name][1])
    known = [
        each.name
        for each in inspect.signature(function).parameters.values()
        if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD) and each.name != "progress"
    ]
    for _ in range(luck.choice((1, 1, 2, 3))):
        if places and luck.random() < 0.2:
            places[luck.randrange(len(places))] = luck.choice([*OBJECTS, *PATHS])
        else:
            chosen = luck.choice([*known, *(SETTINGS if name in _SETTINGS else ()), "ranks "])
            names[chosen] = _bounded(chosen, luck)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            answer = function(*places, **names)
        except PipeplanError as error:
            if not 0 < len(str(error)) < 4000 or "\n\n" in str(error):
                raise Found(f"a message that helps nobody, {str(error)[:200]!r}: pipeplan.{name}") from error
            return "refused"
        except (TypeError, ValueError):
            if {*names} - {*HONEST[name][1]} <= {*SETTINGS} and places == list(HONEST[name][0]):
                raise  # a setting is checked; other arguments are left to type checkers
            return "not a call"
    if hasattr(answer, "to_dict"):
        json_text(answer.to_dict())
    repr(answer)
    return "answered"


def _bounded(name: str, luck: random.Random) -> Any:
    """An object for a parameter, which does not ask for a long search."""
    most = SMALL.get(name)
    while True:
        value = luck.choice(OBJECTS)
        number = isinstance(value, int | float | np.number | Decimal | Fraction) and not isinstance(value, bool)
        if most is None or not number or value != value or not most < value <= 10**17:
            return value


CALLS = Suite(
    "calls", "calls of the public functions with objects of every type; only our own errors", _attempt, sample=25
)
