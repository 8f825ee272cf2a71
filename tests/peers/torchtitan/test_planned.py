"""What a plan gives to paste, read by torchtitan's own ConfigManager."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from torchtitan.config import ConfigManager
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.distributed.parallel_dims import ParallelDims

from pipeplan.formats import TrainerSettings, parse_torch_csv
from pipeplan.trainers import flags_of
from tests.peers.plans import PLANS, plan
from tests.peers.torchtitan.expected import differing, planned_settings, schedule_of, wrong
from tests.peers.torchtitan.exports import words

POLICIES = {
    "recomputed": FullAC.Config,
    "recomputed in part": FullAC.Config,
    "recomputed by stage": FullAC.Config,
    "by op": SelectiveAC.Config,
    "latent attention": FullAC.Config,
}
"""What recomputes at least what the plan does; nothing elsewhere."""

WITHOUT_FLAGS = ("latent attention",)
"""Multi-token prediction has no place in torchtitan's pipelines."""


def flags(name: str) -> TrainerSettings:
    return flags_of(*plan(name))["torchtitan"]


def parsed(text: str) -> Any:
    arguments = ["--module", "tests.peers.torchtitan.planned", "--config", "planned", *words(text)]
    return ConfigManager().parse_args(arguments)


def wrong_in(name: str, text: str) -> dict[str, str]:
    """What is not as a plan of this name has it in the configuration that a text of flags makes."""
    model, _, configuration = plan(name)
    config = parsed(text)
    parallelism, training = planned_settings(model, configuration, next(iter(flags(name).files), ""))
    others = {
        "activation_checkpoint": type(config.activation_checkpoint),
        "compile": config.compile.enable,
        "async tensor parallelism": config.compile.enable_async_tensor_parallel,
    }
    planned = {
        "activation_checkpoint": POLICIES.get(name, type(None)),
        "compile": True,
        "async tensor parallelism": name == "asynchronous",
    }
    return wrong(config.parallelism, parallelism) | wrong(config.training, training) | differing(others, planned)


READ = [name for name in PLANS if name not in WITHOUT_FLAGS]


@pytest.mark.parametrize("name", READ)
def test_every_value_is_the_planned_one(name: str):
    text = flags(name).text
    assert wrong_in(name, text) == {}
    ParallelDims.from_config(parsed(text).parallelism, plan(name)[1].gpus)


@pytest.mark.parametrize("name", [name for name in READ if plan(name)[2].pipeline > 1])
def test_the_csv_has_the_planned_order(name: str):
    [text] = flags(name).files.values()
    planned = schedule_of(plan(name)[2])
    assert parse_torch_csv(text) == planned


def test_what_it_has_no_place_for_is_said(ran: Callable[[str], None]):
    assert "multi-token prediction" in " ".join(flags("latent attention").warnings)
    shape, machines, configuration = plan("latent attention")
    without = flags_of(replace(shape, mtp_layers=0), machines, configuration)["torchtitan"]
    assert parsed(without.text).parallelism.pipeline_parallel_schedule == "Interleaved1F1B"
    ran(f"its parser on the flags of {len(PLANS)} plans")
