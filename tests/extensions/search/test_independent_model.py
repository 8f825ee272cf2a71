"""The independent model itself: against every order there is, against pipeplan's simulator and checker, on known optima."""

from dataclasses import replace

import pytest

pytest.importorskip("ortools", reason="the independent model needs OR-Tools: the extra 'search'")

import pipeplan
from tests.conformance import conformance
from tests.extensions.search.case import Case, numbers, whole
from tests.extensions.search.independent_enumeration import Enumeration
from tests.extensions.search.independent_model import solve
from tests.extensions.search.known_cases import KNOWN
from tests.extensions.search.random_cases import random_case
from tests.extensions.search.replay import BrokenRuleError, Job, replay, rows_of, schedule_of
from tests.extensions.search.tags import tags

ONE = Case(
    placement="linear",
    rank_of=(0,),
    microbatches=2,
    forward=numbers(2),
    backward=numbers(3),
    inputs=numbers(2),
    weights=numbers(2),
    overlap=numbers(4),
    limits=numbers(1),
)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 90, 30))
def test_no_order_that_can_be_enumerated_is_better(first):
    for seed in range(first, first + 30):
        case = random_case(seed, cells=4, cells_of_span=4)
        everything, answer = Enumeration(whole(case)), solve(case)
        assert answer.status == ("infeasible" if everything.best is None else "optimal"), case.command()
        assert answer.value == everything.best, case.command()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 20, 10))
def test_pipeplan_simulates_and_accepts_the_orders_that_the_model_finds(first):
    for seed in range(first, first + 10):
        case = random_case(seed)
        answer = solve(case, seconds=1)
        if answer.rows is None or answer.reachable is None:
            continue
        schedule = schedule_of(answer.shop, answer.rows)
        assert list(map(list, rows_of(schedule))) == list(map(list, answer.rows))
        result = pipeplan.simulate(schedule, **case.settings())
        value = result.makespan if case.objective == "makespan" else result.timeline.spans.max()
        assert value == pytest.approx(float(answer.reachable), rel=1e-9)
        assert pipeplan.check(schedule, **case.settings()).valid
        assert result.fits


@pytest.mark.parametrize("number", [21, 22, 27, 36, 37])
def test_optima_that_others_have_proven(number):
    row = conformance("proven_optima.json")["rows"][number]
    ranks, v = row["ranks"], row["placement"] == "v"
    rank_of = tuple(range(ranks)) + tuple(reversed(range(ranks))) * v
    limit = row["limit_chunk_activations"] / 2 if v else row["limit_stage_activations"]

    def times(value):
        return numbers(*(value if isinstance(value, list) else [value] * len(rank_of)))

    forward, inputs, weights = (times(row[name]) for name in ("forward", "backward_input", "backward_weight"))
    case = Case(
        placement=row["placement"],
        rank_of=rank_of,
        microbatches=row["microbatches"],
        forward=forward,
        backward=tuple(one + other for one, other in zip(inputs, weights, strict=True)),
        inputs=inputs,
        weights=weights,
        transfer=numbers(row["p2p"])[0],
        limits=numbers(limit) * ranks,
    )
    answer = solve(case, seconds=60)
    assert answer.least == row["optimal_makespan"]


@pytest.mark.parametrize("name", KNOWN)
def test_optima_of_the_cases_that_were_wrong_once(name):
    case, least = KNOWN[name]
    answer = solve(case)
    assert answer.least == least


def test_a_forward_needs_its_memory_before_the_backward_beside_it_gives_any():
    alone, together = solve(ONE), solve(replace(ONE, limits=numbers(2)))
    assert (alone.value, together.value) == (10, 9)


def test_a_limit_below_one_microbatch_is_infeasible():
    assert solve(replace(ONE, limits=numbers("0.9"))).status == "infeasible"
    assert solve(replace(ONE, limits=numbers(1), activation=numbers(1), kept=numbers(0))).status == "optimal"


def test_the_span_counts_from_the_first_start():
    two = Case(
        placement="linear",
        rank_of=(0, 1),
        microbatches=1,
        forward=numbers(2, 1),
        backward=numbers(2, 10),
        inputs=numbers(1, 1),
        weights=numbers(1, 9),
        transfer=numbers("0.5")[0],
    )
    assert solve(two).least == 13.5
    assert solve(replace(two, objective="span")).least == 11


def test_replays_refuse_what_breaks_a_rule():
    shop = whole(ONE)
    jobs = {str(job.kind) + str(job.microbatch): job for kind in "FBIW" for job in (Job(kind, 0, 0), Job(kind, 0, 1))}

    def row(text):
        return [[tuple(jobs[name] for name in turn.split("+")) for turn in text.split()]]

    assert replay(shop, row("F0 B0 F1 I1 W1")).makespan == 11
    for text in (
        "F0 B0 F1",
        "F0 F1 B0 B1",
        "F0 B0 F1+B1",
        "B0 F0 F1 B1",
        "F0 B0 F1+I1 W1",
        "F0 I0 F1 B1 W0",
        "F0 B0 F1 B1 W1",
    ):
        with pytest.raises(BrokenRuleError):
            replay(shop, row(text))
    with pytest.raises(BrokenRuleError, match="F, B, I, W occur"):
        replay(whole(replace(ONE, split=False)), row("F0 B0 F1 I1 W1"))


def test_the_same_seed_gives_the_same_case():
    assert random_case(3) == random_case(3) != random_case(4)


def test_random_cases_are_of_every_kind():
    seen = {tag for seed in range(100) for tag in tags(random_case(seed))}
    assert len(seen) == 17
