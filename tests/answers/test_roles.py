"""Trainers' counts follow from costs per layer that have roles."""

from typing import Any

import pytest

import pipeplan
from pipeplan.foundation.errors import InputError

COSTS: dict[str, Any] = {"forward": 1.0, "backward_input": 1.0, "backward_weight": 1.0}
LAYERS = [
    {**COSTS, "role": "embedding", "forward": 0.2},
    {**COSTS, "count": 12},
    {**COSTS, "role": "head", "forward": 3.0},
]
WITH_MTP = [*LAYERS[:2], {**COSTS, "role": "mtp"}, LAYERS[2]]
SHAPE: dict[str, Any] = {"ranks": 4, "microbatches": 8}


def test_megatron_has_the_blocks_of_each_stage():
    text = str(pipeplan.export("1f1b", to="megatron", layers=LAYERS, layers_per_stage=(4, 4, 4, 2), **SHAPE))
    assert "--num-layers 12" in text
    assert "--pipeline-model-parallel-layout 'Et*3|t*4|t*4|tL'" in text
    balanced = str(pipeplan.export("interleaved-1f1b", to="megatron", layers=LAYERS, ranks=2, microbatches=8))
    assert "--num-layers 12" in balanced
    assert balanced.count("|") == 3


def test_megatron_counts_prediction_layers():
    text = str(pipeplan.export("1f1b", to="megatron", layers=WITH_MTP, layers_per_stage=(4, 4, 4, 3), **SHAPE))
    assert "--pipeline-model-parallel-layout 'Et*3|t*4|t*4|tmL'" in text
    assert "--mtp-num-layers 1" in text
    with pytest.raises(InputError, match="the layers have 1 of role mtp, not 2"):
        pipeplan.export("1f1b", to="megatron", layers=WITH_MTP, layers_per_stage=(4, 4, 4, 3), mtp_layers=2, **SHAPE)


def test_a_result_is_saved_with_the_same_counts(tmp_path):
    costs = pipeplan.Settings(layers=LAYERS, layers_per_stage=(4, 4, 4, 2), **SHAPE)
    result = pipeplan.simulate("1f1b", settings=costs)
    assert result._settings == costs
    result.save(tmp_path / "a.megatron.sh")
    assert "'Et*3|t*4|t*4|tL'" in (tmp_path / "a.megatron.sh").read_text()
    result.save(tmp_path / "b.megatron.sh", training=pipeplan.Training(layers=(3, 3, 3, 3), microbatch_size=2))
    assert "'Et*3|t*3|t*3|t*3L'" in (tmp_path / "b.megatron.sh").read_text()
    misplaced = pipeplan.simulate("1f1b", settings=costs.replace(layers=WITH_MTP, layers_per_stage=(4, 5, 5, 1)))
    misplaced.save(tmp_path / "c.csv")
    with pytest.raises(InputError, match="stage 2 has the mtp"):
        misplaced.save(tmp_path / "c.megatron.sh")


def test_without_roles_the_trainer_divides_the_model_itself():
    plain = [{**COSTS, "count": 14}]
    text = str(pipeplan.export("1f1b", to="megatron", layers=plain, **SHAPE))
    assert "layout '" not in text
    # Without costs per layer, they are the trainer's own layers.
    assert "'Et*3|t*4|t*4|t*3L'" in str(pipeplan.export("1f1b", to="megatron", layers_per_stage=(3, 4, 4, 3), **SHAPE))


def test_settings_delay_the_weights_of_pairs_if_the_costs_do(tmp_path):
    parts = {op: [{"compute": 1}, {"all_to_all": 1}, {"compute": 1}] for op in ("forward", "backward_input")}
    costs = pipeplan.Settings(segments=parts | {"backward_weight": [{"compute": 1}]}, delayed_weights=True, **SHAPE)
    name = "interleaved-1f1b-overlap"
    text = pipeplan.export(name, to="megatron", settings=costs).text
    assert "    --delay-wgrad-compute" in text
    assert "without gradient accumulation fusion >= 2.7" in text
    assert "CUDA graphs of moe or mlp" in text
    pipeplan.simulate(name, settings=costs).save(tmp_path / "a.bridge.py")
    assert "delay_wgrad_compute = True" in (tmp_path / "a.bridge.py").read_text()
    at_once = costs.replace(delayed_weights=False)
    assert "--delay-wgrad-compute" not in pipeplan.export(name, to="megatron", settings=at_once).text
