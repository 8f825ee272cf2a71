"""Tables 5 and 6 of the zero-bubble paper, on its own profiles: a prediction on real costs."""

import pytest

from pipeplan.costs import Settings
from pipeplan.simulation import simulate
from pipeplan.strategies import strategy
from tests.conformance import conformance

CHUNKS = {"1.5B": 3, "6.2B": 4, "14.6B": 3, "28.3B": 2}
SMALL = {
    "model": "1.5B",
    "ranks": 8,
    "microbatches": 24,
    "forward_us": 18522,
    "backward_input_us": 18086,
    "backward_weight_us": 9337,
    "p2p_us": 601,
    "bubble_rate": {"1F1B": 0.2431, "1F1B-I": 0.1055},
}


def span_bubble(row, name: str, chunks: int) -> float:
    rule = strategy(name)
    schedule = rule(rule.shape(row["ranks"], row["microbatches"], chunks))
    costs = Settings(
        forward_times=row["forward_us"],
        backward_input_times=row["backward_input_us"],
        backward_weight_times=row["backward_weight_us"],
        p2p_time=row["p2p_us"],
    ).costs(schedule.placement)
    return simulate(schedule, costs).timeline.bubble.span


def assert_row(row) -> None:
    assert span_bubble(row, "1f1b", 1) == pytest.approx(row["bubble_rate"]["1F1B"], abs=1e-4)
    interleaved = span_bubble(row, "interleaved-1f1b", CHUNKS[row["model"]])
    assert interleaved == pytest.approx(row["bubble_rate"]["1F1B-I"], rel=0.04)


def test_a_row_of_the_table():
    assert_row(SMALL)


@pytest.mark.parametrize("index", range(6))
def test_1f1b_and_interleaved(index):
    assert_row(conformance("zero_bubble_table5.json")["rows"][index])
