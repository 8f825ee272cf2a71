"""Branch and bound finds what estimating everything finds."""

from math import inf

import pytest

from pipeplan.extensions.planning import Configuration, Estimate, estimate
from pipeplan.extensions.planning.choice.branching import Branching, Space
from pipeplan.extensions.planning.choice.candidates import configurations
from pipeplan.extensions.planning.choice.request import value_of
from tests.extensions.planning.requests import request

SECONDS = value_of("step-time", None)


def _searched(requested, limit, **options):
    known: dict[Configuration, Estimate] = {}
    leasts: list[float] = []
    branching = Branching([Space.of(requested)], SECONDS, limit, **options)
    leasts.append(branching.least)
    while branching.price(50):
        pass
    while not branching.exhausted:
        assert branching.least <= branching.best
        leasts.append(branching.least)
        for group in branching.round(16):
            leasts.append(branching.least)
            known[group.configuration] = result = estimate(
                requested.model, requested.cluster, group.configuration, with_error_bar=False
            )
            branching.learn(group, result)
    assert max(leasts, default=0.0) <= branching.best
    return branching, known


@pytest.mark.parametrize("limit", [75e9, 18e9])
def test_the_best_of_all_is_found_with_a_part_of_the_estimates(limit):
    requested = request(
        "llama3-8b", global_batch=8, fix={"micro": 1, "zero": 1, "offload": 0, "schedule": "1f1b,zb-h1,zbv"}
    )
    space, all_configurations = Space.of(requested), list(configurations(requested))
    every = [
        estimate(requested.model, requested.cluster, laid, with_error_bar=False)
        for entry in all_configurations
        for laid in space.layouts(entry)
    ]
    fitting = [entry.step_time for entry in every if entry.peak_bytes <= limit]
    branching, known = _searched(requested, limit)
    assert branching.exhausted
    assert branching.best == branching.least == min(fitting, default=inf)
    assert len(known) < len(every)
    assert branching.legal == len(all_configurations)


def test_what_is_within_the_slack_is_estimated_too():
    requested = request("llama3-8b", global_batch=8)
    _, few = _searched(requested, 70e9, slack=1.0)
    _, more = _searched(requested, 70e9, slack=1.2)
    assert set(few) < set(more)


def test_nothing_fits_into_too_little():
    branching, known = _searched(request("llama3-8b"), 1e9)
    assert branching.exhausted
    assert branching.best == inf
    assert not known
    assert branching.over_memory == branching.legal
