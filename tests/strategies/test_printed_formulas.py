"""The formulas that the catalogue prints, read as they stand, against the functions that other tests compare with runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import product

import pytest

from pipeplan.foundation.errors import PipeplanError
from pipeplan.strategies import STRATEGIES, Shape, Strategy, interleaved

WITHOUT_FORMULA = {"zb-auto", "zbv-heuristic"}
"""Strategies whose figures depend on costs, so that the catalogue describes them in words."""

FUNCTIONS = ("min", "max", "ceil")
LETTERS = re.compile(r"\d+|[pmvkguw]{1,3}|[LFBIWR]|//|[-+*/(),]")

CONDITIONS = {
    "m < p": "m < p",
    "a group < p": "min(g, L) < p",
    "last group < p": "0 < L < g and L < p",
    "last group of k < p": "L < p <= m",
    "all groups < p": "v > 1 and g < min(p, m)",
    "last group of fewer than p slices": "L < p",
    "last group of L < p slices": "L < p",
    "p = 1": "p == 1",
    "p = m = 1": "p == m == 1",
    "p = m = 2": "p == m == 2",
    "direct": "direct",
    "direct, or p = 2": "direct or p == 2",
}
"""Conditions in front of a case, as expressions."""


def expression(text: str) -> str:
    """Return the expression with which a text begins, with signs of multiplication."""
    depth, parts = 0, list[str]()
    for word in re.findall(r"\d+|[a-z]+|//|\S", text):
        depth += (word == "(") - (word == ")")
        if (depth == 0 and word == ",") or not (word in FUNCTIONS or LETTERS.fullmatch(word)):
            break
        for token in [word] if word in FUNCTIONS or word.isdigit() or word == "//" else word:
            before = parts[-1] if parts else "+"
            multiplied = (before.isalnum() and before not in FUNCTIONS) or before == ")"
            parts += ["*"] * (multiplied and (token.isalnum() or token == "("))
            parts.append(token)
    return "".join(parts)


def printed(text: str, values: dict[str, float]) -> float:
    """Return the value of a printed formula: the first case, unless a later one whose condition holds replaces it."""
    total = math.nan
    for number, case in enumerate(text.split("; ")):
        condition, colon, rest = case.rpartition(": ")
        if colon and condition in CONDITIONS and not evaluated(CONDITIONS[condition], values):
            continue
        body = rest.removeprefix("at most ")
        if (formula := expression(body)) == "" or (number and not colon):
            continue
        value = evaluated(formula, values)
        least = re.search(r"sum to (\S+) or more, no formula otherwise", body)
        if least and values["neighbors"] < evaluated(expression(least[1]), values):
            value = math.inf
        if " per group" in body:
            value *= values["groups"]
        total = total + value if body.endswith(" more") else value
    return total


def evaluated(formula: str, values: dict[str, float]) -> float:
    return float(eval(formula, {"__builtins__": {}, "min": min, "max": max, "ceil": math.ceil}, values))


def values_of(entry: Strategy, shape: Shape) -> dict[str, float]:
    """Return the values of a formula's letters; a microbatch that is cut into slices counts as that many."""
    p, m, v, k = shape.ranks, shape.microbatches, shape.chunks, shape.slices
    units = m * k
    group = shape.group_size or m
    if entry.slices > 1:
        group = min(k * math.ceil(p / k), units)
    elif entry.name == "hanayo":
        group = shape.group_size or math.ceil(m / max(m // p, 1))
    elif entry.placement == "loop" and entry.grouped:
        group = interleaved.group_size(shape, entry.name)
    elif entry.name == "chimera":
        group = min(p, m)
    last = units % group or group
    if entry.name == "hanayo" and not shape.group_size:
        last = m // max(m // p, 1)
    letters: dict[str, float] = {"p": p, "m": m, "v": v, "k": k, "g": group, "L": last, "w": v // 2, "u": m // p}
    if entry.name in ("chimera", "hanayo"):
        letters["k"] = last
    if entry.name == "kfkb":
        letters["k"] = shape.group_size or 2
    letters |= {"F": 1, "B": 2, "I": 1, "W": 1, "R": 1, "direct": shape.variant == "direct"}
    neighbors = [2 * group] * (units // group > 1) + [group + last] * (units > group and last < group)
    return letters | {"groups": math.ceil(units / group), "neighbors": min(neighbors, default=math.inf)}


def shapes(entry: Strategy) -> Iterator[Shape]:
    """Yield shapes of every number of ranks, chunks and slices that divides the others, or does not."""
    for ranks, microbatches, chunks, slices, variant in product(
        range(1, 7),
        (*range(1, 9), 13),
        (None,) if entry.fixed_chunks else (1, 2, 4),
        (1, 2, 3, 4) if entry.slices > 1 else (None,),
        entry.variants or (None,),
    ):
        for group in (None, *range(1, microbatches + 1, 2)) if entry.grouped else (None,):
            try:
                shape = entry.shape(ranks, microbatches, chunks, group_size=group, slices=slices, variant=variant)
                entry.requires(shape)
            except PipeplanError:
                continue
            yield shape


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name not in WITHOUT_FORMULA])
def test_no_schedule_exceeds_a_printed_formula(name: str) -> None:
    entry = STRATEGIES[name]
    for shape in shapes(entry):
        values = values_of(entry, shape)
        for formula in (entry.bubble, entry.memory):
            text, value = printed(formula.text, values), formula.value(shape)
            assert text >= value - 1e-9, (shape, formula.text, text, value)
            if "at most" not in formula.text and "less" not in formula.text:
                assert text == pytest.approx(value), (shape, formula.text, text, value)
