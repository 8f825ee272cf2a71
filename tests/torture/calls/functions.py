"""The public functions, each with a call that is meant in earnest and all the names that it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

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
    "plan": (("model.yaml", "h100-sxm:2x1"), {"global_batch": 4, "sequence": 64, "workers": 1, "seconds": 0.3}),
    "profile": ((), {"source": "traces"}),
    "read": (("order.json",), {}),
    "run": (("1f1b",), {"ranks": 2, "microbatches": 2, "steps": 1, "warmup": 0, "timeout": 30.0}),
    "save": (("order.json", "x.csv"), {}),
    "schedules": (("zbv",), {}),
    "search": ((), _BUDGET),
    "simulate": (("zbv",), _SHAPE),
    "steady_state": ((), {"ranks": 2, "microbatches": 2, "seconds": 0.2}),
}
"""Arguments by place and by name; a function without a line is called with none."""

_OF_THE_CALLER = ("progress",)
"""What the caller's own code is: it raises what it raises."""


@cache
def functions() -> tuple[str, ...]:
    """The public functions, and the two classes that people make."""
    import pipeplan

    found = [name for name in pipeplan.__all__ if inspect.isfunction(getattr(pipeplan, name))]
    return (*found, "Settings", "Training")


@cache
def names_of(function: str) -> tuple[str, ...]:
    """All names that a function takes, those of unpacked tables too."""
    import pipeplan

    called: Callable[..., Any] = getattr(pipeplan, function)
    names: list[str] = []
    for parameter in inspect.signature(called).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            names += _unpacked(called, parameter.name)
        elif parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return tuple(name for name in names if name not in _OF_THE_CALLER)


@cache
def places_of(function: str) -> tuple[str, ...]:
    """The names of what it takes by place."""
    import pipeplan

    parameters = inspect.signature(getattr(pipeplan, function)).parameters.values()
    return tuple(each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL))


def _unpacked(called: Callable[..., Any], name: str) -> list[str]:
    """The keys of the table that stands as ``**name: Unpack[Table]``; other annotations may be for type checkers alone."""
    said = str(inspect.signature(called).parameters[name].annotation)
    named = said.removeprefix("Unpack[").removesuffix("]")
    # A module may name the table for type checkers alone; the front of the API has it then.
    table = inspect.unwrap(called).__globals__.get(named) or getattr(import_module("pipeplan.api"), named)
    return list(table.__annotations__)
