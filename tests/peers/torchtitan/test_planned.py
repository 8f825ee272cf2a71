"""What a plan gives to paste, read by torchtitan's own ConfigManager."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torchtitan.config import ConfigManager
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.distributed.parallel_dims import ParallelDims

from pipeplan.planner import TrainerFlags, flags_of
from tests.peers.plans import PLANS, plan
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


def flags(name: str) -> TrainerFlags:
    return flags_of(*plan(name))["torchtitan"]


def parsed(text: str) -> Any:
    arguments = ["--module", "tests.peers.torchtitan.planned", "--config", "planned", *words(text)]
    return ConfigManager().parse_args(arguments)


@pytest.mark.parametrize("name", [name for name in PLANS if name not in WITHOUT_FLAGS])
def test_it_is_accepted_and_says_what_was_planned(name: str):
    _, machines, configuration = plan(name)
    config = parsed(flags(name).text)
    said = config.parallelism
    assert said.tensor_parallel_degree == configuration.tensor
    assert said.pipeline_parallel_degree == configuration.pipeline
    assert said.context_parallel_degree == configuration.context
    assert said.expert_parallel_degree == configuration.expert * configuration.expert_tensor
    assert said.data_parallel_shard_degree * said.data_parallel_replicate_degree == configuration.data
    assert said.enable_sequence_parallel == configuration.sequence_parallel or configuration.tensor == 1
    assert config.training.global_batch_size == configuration.global_batch
    assert config.training.seq_len == configuration.sequence
    policy = config.activation_checkpoint
    assert type(policy) is POLICIES.get(name, type(None))
    assert config.compile.enable
    assert config.compile.enable_async_tensor_parallel == (name == "asynchronous")
    dims = ParallelDims.from_config(said, machines.gpus)
    assert dims.dp_shard * dims.dp_replicate == configuration.data


def test_every_layer_of_an_uneven_layout_is_on_its_stage(tmp_path: Path):
    layout = plan("uneven")[2].layers or ()
    stages = parsed(flags("uneven").text).parallelism.module_fqns_per_model_part
    assert [sum(name.startswith("layers.") for name in stage) for stage in stages] == list(layout)


def test_what_it_has_no_place_for_is_said(ran: Callable[[str], None]):
    assert "multi-token prediction" in " ".join(flags("latent attention").warnings)
    shape, machines, configuration = plan("latent attention")
    without = flags_of(replace(shape, mtp_layers=0), machines, configuration)["torchtitan"]
    assert parsed(without.text).parallelism.pipeline_parallel_schedule == "Interleaved1F1B"
    ran(f"its parser on the flags of {len(PLANS)} plans")
