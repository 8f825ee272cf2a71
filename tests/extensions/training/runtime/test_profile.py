from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
import yaml

from pipeplan.costs import Settings, load_config
from pipeplan.extensions.training.runtime.results import Profile
from pipeplan.foundation.errors import InputError
from pipeplan.model import Placement
from pipeplan.runtime import profile
from tests.extensions.training.runtime.models import TINY, tiny

LOOP = Placement.loop(2, 2)


@pytest.fixture(scope="module")
def together() -> Profile:
    return profile("tests.extensions.training.runtime.models:tiny", LOOP, repeats=3, warmup=1, device="cpu")


@pytest.fixture(scope="module")
def alone() -> Profile:
    return profile(tiny(), LOOP, repeats=3, warmup=1, device="cpu", together=False)


def test_all_stages_are_measured(together: Profile, alone: Profile) -> None:
    for result in (together, alone):
        layers = [(stage.first_layer, stage.stop_layer) for stage in result.stages]
        assert layers == [(0, 3), (3, 4), (4, 6), (6, 8)] or sum(stop - first for first, stop in layers) == 8
        for stage in result.stages:
            spreads = (stage.forward, stage.backward, stage.backward_input, stage.backward_weight)
            for spread in (*spreads, stage.recompute, stage.offload):
                assert 0 < spread.low <= spread.median <= spread.high
    assert together.p2p_time is not None
    assert together.p2p_time > 0
    assert alone.p2p_time is None


@pytest.mark.parametrize("together", [True, False])
def test_a_model_with_a_parameter_on_two_ranks(together: bool) -> None:
    model = "tests.extensions.training.runtime.models:tied"
    assert len(profile(model, LOOP, repeats=1, warmup=1, device="cpu", together=together).stages) == 4


def test_what_is_lost_between_ops_is_measured_in_steps(together: Profile, alone: Profile) -> None:
    assert together.op_gap is not None
    assert 0 < together.op_gap.low <= together.op_gap.median <= together.op_gap.high
    assert together.message_time is not None
    assert 0 <= together.message_time.low <= together.message_time.median <= together.message_time.high
    assert (alone.op_gap, alone.message_time) == (None, None)
    assert alone.settings().op_gap is None
    assert any(line.startswith("lost between ops, ms: before every op") for line in together.provenance())
    assert not any(line.startswith("lost between ops") for line in alone.provenance())


def test_the_first_stage_has_no_input_gradient(together: Profile) -> None:
    first, second = together.stages[:2]
    assert first.backward_input.median < 0.3 * first.backward_weight.median
    assert second.backward_input.median > 0.1 * second.backward_weight.median


def test_sizes_do_not_depend_on_how_they_are_measured(together: Profile, alone: Profile) -> None:
    for ours, theirs in zip(together.stages, alone.stages, strict=True):
        assert ours.activation_bytes == theirs.activation_bytes
        assert ours.weight_activation_bytes == theirs.weight_activation_bytes
        assert ours.static_bytes == theirs.static_bytes
        assert ours.offload_bytes == theirs.offload_bytes


def test_sizes(alone: Profile) -> None:
    modules = [
        tiny().build(stage.first_layer, stage.stop_layer, seed=0, device=torch.device("cpu")) for stage in alone.stages
    ]
    for stage, module in zip(alone.stages, modules, strict=True):
        parameters = sum(parameter.numel() for parameter in module.parameters())
        # Parameter, gradient and AdamW's two moments, and one step counter of 4 bytes a parameter tensor.
        assert stage.static_bytes == 16 * parameters + 4 * len(list(module.parameters()))
    tokens = TINY.microbatch * TINY.length
    assert [stage.input_bytes for stage in alone.stages] == [8 * tokens, *[4 * tokens * TINY.width] * 3]
    assert alone.stages[1].weight_activation_bytes > alone.stages[1].activation_bytes > alone.stages[1].input_bytes


def test_a_known_module_holds_what_it_must() -> None:
    """A linear layer keeps its input for the weight gradient, and has given its output on."""
    from pipeplan.extensions.training.runtime.stage_measurement import Stage, measure

    inputs = torch.zeros(64, 32)
    stage = Stage(torch.nn.Linear(32, 16, bias=False), (1, 2), inputs, None, first=False)
    result = measure(stage, repeats=1, warmup=0)
    output_bytes = 64 * 16 * 4
    assert result.activation_bytes == inputs.nbytes + output_bytes
    assert result.recompute_bytes == inputs.nbytes
    assert result.offload_bytes == result.activation_bytes
    first = measure(Stage(torch.nn.Linear(32, 16, bias=False), (0, 1), inputs, None, first=True), repeats=1, warmup=0)
    assert first.offload_bytes == output_bytes


def test_the_config_file_is_read_back(together: Profile, tmp_path: Path) -> None:
    together.write(tmp_path / "costs.yaml")
    together.write(tmp_path / "costs.json")
    read = yaml.safe_load((tmp_path / "costs.yaml").read_text())
    assert read == yaml.safe_load((tmp_path / "costs.json").read_text())
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in read.items()}
    settings = Settings(**values)
    costs = settings.costs(LOOP)
    exact = together.settings().costs(LOOP)
    assert costs.forward == pytest.approx(exact.forward, rel=1e-4)
    assert costs.backward_weight == pytest.approx(exact.backward_weight, rel=1e-4)
    assert costs.memory.activation.tolist() == exact.memory.activation.tolist()
    assert costs.memory.offloaded.tolist() == [stage.offload_bytes for stage in together.stages]
    assert costs.memory.recompute_keeps.tolist() == [stage.recompute_bytes for stage in together.stages]
    assert costs.offload == pytest.approx([stage.offload.median for stage in together.stages], rel=1e-4)
    assert together.p2p_time is not None
    assert together.message_time is not None
    assert together.op_gap is not None
    latency = max(together.p2p_time - 2 * together.message_time.median, 0.0)
    assert costs.transfer.latency == pytest.approx(latency, rel=1e-4)
    assert costs.overhead.op_gap == pytest.approx(together.op_gap.median, rel=1e-4)
    assert costs.overhead.message_time == pytest.approx(together.message_time.median, rel=1e-4)
    assert costs.time_unit == "ms"
    assert "PyTorch" in (tmp_path / "costs.yaml").read_text().splitlines()[1]


@pytest.mark.parametrize("measured_together", [True, False])
def test_one_profile_of_layers_has_the_bytes_of_every_placement(
    measured_together: bool, alone: Profile, tmp_path: Path
) -> None:
    model = "tests.extensions.training.runtime.models:tiny"
    result = profile(model, repeats=1, warmup=1, device="cpu", per_layer=True, together=measured_together)
    assert [stage.stop_layer - stage.first_layer for stage in result.stages] == [1] * 8
    result.write(tmp_path / "layers.yaml")
    assert "layer 7, layers 7 to 7" in (tmp_path / "layers.yaml").read_text()
    settings = Settings(**load_config(tmp_path / "layers.yaml").settings)
    assert settings.layers is not None
    layout = tuple(stage.stop_layer - stage.first_layer for stage in alone.stages)
    memory = settings.replace(layers_per_stage=layout).costs(LOOP).memory
    assert memory.activation.tolist() == [stage.activation_bytes for stage in alone.stages]
    assert memory.recompute_keeps.tolist() == [stage.recompute_bytes for stage in alone.stages]
    assert memory.offloaded.tolist() == [stage.offload_bytes for stage in alone.stages]
    # On the first stage, PyTorch's I does nothing and keeps less than elsewhere.
    assert memory.freed_by_weight.tolist()[1:] == [stage.weight_activation_bytes for stage in alone.stages[1:]]
    for ranks, chunks in ((2, 1), (2, 2), (4, 2)):
        assert settings.costs(Placement.loop(ranks, chunks)).memory.static.sum() == sum(
            stage.static_bytes for stage in alone.stages
        )
    assert (settings.ranks, settings.time_unit) == (None, "ms")


def test_built_in_models_have_roles() -> None:
    result = profile("gpt-tiny", repeats=1, warmup=0, device="cpu", per_layer=True, together=False)
    layers = result.settings().layers
    assert layers is not None
    assert [layer.role for layer in layers] == ["embedding", *["block"] * 8, "head"]


def test_a_model_with_a_role_for_some_layers_only_is_refused() -> None:
    with pytest.raises(InputError, match="model tiny has 8 layers and 1 roles"):
        replace(tiny(), name="tiny", roles=("head",))
    with pytest.raises(InputError, match="per_layer measures every layer on its own: drop layout"):
        profile(tiny(), per_layer=True, layout=(4, 4), together=False)


def test_what_cannot_be_profiled(together: Profile, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.yaml or \.json"):
        together.write(tmp_path / "costs.toml")
    with pytest.raises(InputError, match="repeats must be at least 1, not 0"):
        profile(repeats=0)
    with pytest.raises(InputError, match="holds every stage twice"):
        profile(placement=Placement.bidirectional(2))
    with pytest.raises(InputError, match="8 layers cannot make 9 stages"):
        profile(tiny(), Placement.linear(9), together=False)
