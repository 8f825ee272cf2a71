"""Assumptions behind a prediction, and what a plan assumes where nobody says otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeplan.extensions.planning import Configuration, estimate, software
from pipeplan.extensions.planning.choice.assumptions import WORTH, assumptions
from pipeplan.extensions.planning.choice.trainers import requests_of
from pipeplan.extensions.planning.estimates.properties import TRAITS
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.workload import model
from tests.extensions.planning.requests import request

DENSE = (
    "llama3-8b",
    "h100-sxm:8x2",
    Configuration(sequence=8192, global_batch=64, tensor=4, data=4, sequence_parallel=True),
)
EXPERTS = (
    "mixtral-8x7b",
    "h100-sxm:8x2",
    Configuration(sequence=4096, global_batch=64, data=16, expert=8, software="megatron-core-overlapped"),
)


@pytest.mark.parametrize(("name", "machines", "configuration"), [DENSE, EXPERTS])
def test_each_assumption_has_an_opposite_that_changes_time_or_memory(name, machines, configuration):
    predicted = estimate(model(name), cluster(machines), configuration)
    found = assumptions(model(name), cluster(machines), predicted)
    assert found
    for entry in found:
        assert max(abs(entry.slower), abs(entry.more_memory_gib) / predicted.peak_memory_gib) >= WORTH
        assert entry.step_time_s == pytest.approx((1 + entry.slower) * predicted.step_time)
        assert entry.assumed != entry.instead
    assert ("experts get equally many tokens" in {entry.assumed for entry in found}) == (name == "mixtral-8x7b")
    assert {"gradients reduced in 32 bits", "products in bf16"} <= {entry.assumed for entry in found}


def test_the_opposite_of_an_opposite_is_the_row_of_the_software_itself():
    name, machines, configuration = DENSE
    narrow = replace(configuration, software="megatron-core+16-bit-gradients")
    predicted = estimate(model(name), cluster(machines), narrow)
    settings = {entry.assumed: entry.setting for entry in assumptions(model(name), cluster(machines), predicted)}
    assert settings["gradients reduced in 16 bits"] == "software=megatron-core"


def test_the_opposite_of_exposed_exchanges_is_the_schedule_that_hides_them_and_the_reverse():
    name, machines = "qwen3-30b-a3b", "h100-sxm:8x2"
    configuration = replace(EXPERTS[2], data=16, expert=16)
    exposed = estimate(model(name), cluster(machines), configuration)
    (found,) = (entry for entry in assumptions(model(name), cluster(machines), exposed) if "EP comm" in entry.assumed)
    assert (found.assumed, found.setting) == ("EP communication not overlapped", "schedule=1f1b-overlap")
    assert found.slower < 0
    hidden = estimate(model(name), cluster(machines), replace(configuration, schedule="1f1b-overlap"))
    (back,) = (entry for entry in assumptions(model(name), cluster(machines), hidden) if "EP comm" in entry.assumed)
    assert (back.assumed, back.setting) == ("EP communication overlapped", "schedule=1f1b")
    assert back.step_time_s == exposed.step_time
    whole = estimate(model(name), cluster(machines), replace(configuration, recompute=("full",)))
    assert not any("EP comm" in entry.assumed for entry in assumptions(model(name), cluster(machines), whole))


def test_plans_for_every_trainer_assume_gradients_in_32_bits_unless_the_software_is_fixed():
    for own in requests_of(request()).values():
        (name,) = own.fixed["software"]
        assert software(name).fp32_gradients
    (fixed,) = requests_of(request(fix={"trainer": "bridge", "software": "megatron-bridge-26.04"})).values()
    assert fixed.fixed["software"] == ("megatron-bridge-26.04",)
    assert "16-bit-gradients" in TRAITS
