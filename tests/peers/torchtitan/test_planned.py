"""What a plan gives to paste, read by torchtitan's own ConfigManager."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from torchtitan.config import ConfigManager
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.distributed.parallel_dims import ParallelDims

from pipeplan.extensions.planning import software
from pipeplan.extensions.planning.trainers import flags_of
from pipeplan.formats import TrainerSettings, parse_torch_csv
from tests.peers.plans import PLANS, Planned, drawn, plan
from tests.peers.planted import planted_flags
from tests.peers.torchtitan.expected import differing, planned_settings, schedule_of, wrong
from tests.peers.torchtitan.exports import PLANNED, words_of_plan

POLICIES = {
    "recomputed": FullAC.Config,
    "recomputed in part": FullAC.Config,
    "recomputed by stage": FullAC.Config,
    "by op": SelectiveAC.Config,
    "latent attention": FullAC.Config,
}
"""What recomputes at least what the plan does; nothing elsewhere."""

SPLITS = ("interleaved-zb", "zb-h1", "zbv")
"""Schedules with split backwards, which torch.compile does not support."""

WITHOUT_FLAGS = ("latent attention",)
"""Multi-token prediction has no place in torchtitan's pipelines."""


def flags(name: str) -> TrainerSettings:
    return flags_of(*plan(name))["torchtitan"]


def parsed(text: str) -> Any:
    return ConfigManager().parse_args([*words_of_plan(text)])


def wrong_in(
    planned: Planned, policy: type, settings: TrainerSettings, words: Sequence[str] | None = None
) -> dict[str, str]:
    """What is not as planned in the configuration that a script makes, or these words in place of its own."""
    model, _, configuration = planned
    config = ConfigManager().parse_args([*(words_of_plan(settings.text) if words is None else words)])
    parallelism, training = planned_settings(model, configuration, next(iter(settings.files), ""))
    own = software(configuration.software)
    others = {
        "activation_checkpoint": type(config.activation_checkpoint),
        "compile": config.compile.enable,
        "async tensor parallelism": config.compile.enable_async_tensor_parallel,
    }
    wanted = {
        "activation_checkpoint": policy,
        "compile": own.fused_activation and configuration.schedule not in SPLITS,
        "async tensor parallelism": "tensor" in own.hides and configuration.tensor > 1,
    }
    training["steps"] = int(PLANNED["STEPS"])
    return wrong(config.parallelism, parallelism) | wrong(config.training, training) | differing(others, wanted)


READ = [name for name in PLANS if name not in WITHOUT_FLAGS]


@pytest.mark.parametrize("name", READ)
def test_every_value_is_the_planned_one(name: str):
    settings = flags(name)
    assert wrong_in(plan(name), POLICIES.get(name, type(None)), settings) == {}
    ParallelDims.from_config(parsed(settings.text).parallelism, plan(name)[1].gpus)
    if plan(name)[2].pipeline > 1:
        [order] = settings.files.values()
        assert parse_torch_csv(order) == schedule_of(plan(name)[2])


PLANTED = ("interleaved by groups", "long", "one rank, all sharded", "asynchronous")
"""Plans in whose flags wrong values are planted."""

DEFAULTS = ("--parallelism.pipeline_parallel_schedule", "--training.steps")
"""Flags that may say what torchtitan assumes without them."""


def test_every_planted_value_is_found(ran: Callable[[str], None]):
    missed, count = [], 0
    for name in PLANTED:
        settings = flags(name)
        words = words_of_plan(settings.text)
        start = words.index("--training.steps")  # before it are names and folders, which no plan decides
        for flag, changed in planted_flags(words[start:]):
            count += 1
            with suppress(SystemExit):  # refused
                if not wrong_in(plan(name), POLICIES.get(name, type(None)), settings, (*words[:start], *changed)):
                    missed += [flag] if flag not in DEFAULTS else []
    assert missed == []
    ran(f"{count} wrong values planted in flags")


DRAWN = drawn(50, ("torchtitan", "torchtitan-eager", "torchtitan+hidden-tensor"), seed=1)
OF_MODULES = {(): type(None), ("full",): FullAC.Config, ("selective-op",): SelectiveAC.Config}


def test_every_drawn_value_is_the_planned_one(ran: Callable[[str], None]):
    faults = {}
    for name, planned in DRAWN.items():
        settings = flags_of(*planned)["torchtitan"]
        faults[name] = wrong_in(planned, OF_MODULES[planned[2].recompute], settings)
        ParallelDims.from_config(parsed(settings.text).parallelism, planned[1].gpus)
    assert {name: wrong for name, wrong in faults.items() if wrong} == {}
    ran(f"its parser on the flags of {len(faults)} drawn configurations")


def test_what_it_has_no_place_for_is_said(ran: Callable[[str], None]):
    assert "multi-token prediction" in " ".join(flags("latent attention").warnings)
    shape, machines, configuration = plan("latent attention")
    without = flags_of(replace(shape, mtp_layers=0), machines, configuration)["torchtitan"]
    assert parsed(without.text).parallelism.pipeline_parallel_schedule == "Interleaved1F1B"
    ran(f"its parser on the flags of {len(PLANS)} plans")
