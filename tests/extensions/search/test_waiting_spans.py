"""What is said of least spans, where a rank that begins later than it could has a shorter one than any that does not."""

import pytest

import pipeplan
from pipeplan.extensions.search import Problem
from pipeplan.extensions.search.answers.search_words import gain_of
from pipeplan.extensions.search.exact.engines import NOTHING_BETTER
from pipeplan.extensions.search.exact.proof import proven
from pipeplan.model import Placement
from tests.extensions.search.known_cases import OVERTAKING
from tests.extensions.search.test_exact import prove

pytest.importorskip("ortools")

PLACEMENT = Placement("custom", (OVERTAKING.rank_of,))
COSTS = pipeplan.Settings(**OVERTAKING.settings()).costs(PLACEMENT)

WAITING = """
0F0 0F1 2F0 2F1 2I0 2W0 2I1 0I0 0W0 2W1 0I1 0W1
1F0 1F1 3F0 3I0 3F1 3I1 1I0 1I1 3W0 3W1 1W0 1W1
"""
"""An order of least span, where its rank 1 begins at 3.25 in place of 2.25."""


def spans(begins: tuple[float, float]) -> list[float]:
    """Each rank's span, by the rules alone: ranks begin no sooner than this, and else ops start as soon as they can."""
    rows = [row.split() for row in WAITING.split("\n") if row]
    times = {"F": COSTS.forward, "I": COSTS.backward_input, "W": COSTS.backward_weight}
    end: dict[str, float] = {}
    clock, first = list(begins), [0.0, 0.0]
    while any(rows):
        for rank, row in enumerate(rows):
            op = row[0] if row else ""
            stage, kind, microbatch = int(op[:1] or 0), op[1:2], op[2:]
            needed = {
                "F": [f"{stage - 1}F{microbatch}"] * (stage > 0),
                "I": [f"{stage + 1}I{microbatch}" if stage < 3 else f"3F{microbatch}"],
                "W": [f"{stage}I{microbatch}"],
                "": ["none"],
            }[kind]
            if all(each in end for each in needed):
                here = [end[each] + 0.25 * (int(each[0]) != stage) for each in needed]
                start = max([clock[rank], *here])
                first[rank] = start if len(row) == 12 else first[rank]
                clock[rank] = end[op] = start + times[kind][stage]
                del row[0]
    return [last - begun for last, begun in zip(clock, first, strict=True)]


def test_a_rank_that_begins_later_has_a_shorter_span_than_what_is_found():
    assert max(spans((0.0, 0.0))) == 25.5
    assert max(spans((0.0, 3.25))) == 24.5
    found = prove(Problem(PLACEMENT, 2, COSTS, objective="span"))
    assert found.bound.value == 24.5 < found.value == 25.5
    assert not found.optimal


def test_what_is_proven_of_a_span_says_of_which_schedules():
    asked = {objective: Problem(PLACEMENT, 2, COSTS, objective=objective) for objective in ("makespan", "span")}
    assert proven(NOTHING_BETTER, asked["makespan"]) == "no schedule is better: the exact solver's proof"
    assert proven(NOTHING_BETTER, asked["span"]) == (
        "no schedule is better with ops that start as soon as they can: the exact solver's proof"
    )
    assert prove(asked["span"]).bound.reason == proven(NOTHING_BETTER, asked["span"])
    alone = pipeplan.search(ranks=1, microbatches=2, objective="span", evaluations=20).search
    assert alone is not None
    said = gain_of(alone, "")[0]
    assert said.endswith("proven optimal for this placement with ops that start as soon as they can.")
