"""Megatron-Bridge's launch script: the fields that its Python code sets, and what it refuses."""

import ast
from dataclasses import replace
from typing import Any

import pytest

from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.hardware import Cluster, cluster
from pipeplan.extensions.planning.trainers import flags_of
from pipeplan.extensions.planning.workload import ModelShape, model, read_config
from pipeplan.extensions.review import RULES, judged, read_text_of
from tests.extensions.planning.flags.test_flags import DENSE, H100S, MOE, launch
from tests.extensions.planning.workload.test_config_json import CONFIGS


def fields_of(shape: ModelShape, configuration: Configuration, machines: Cluster = H100S) -> dict[str, Any]:
    """Constants that the code assigns by their target, and those of the call to ``CommOverlapConfig``."""
    text = flags_of(shape, machines, configuration)["bridge"].text
    launch(text)
    tree = ast.parse(text.partition("<<'PYTHON'\n")[2].partition("\nPYTHON\n")[0])
    fields: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.List | ast.BinOp):
            fields[ast.unparse(node.targets[0])] = eval(ast.unparse(node.value), {"__builtins__": {}})
        if isinstance(node, ast.Call):
            words = [word for word in node.keywords if isinstance(word.value, ast.Constant)]
            fields |= {str(word.arg): ast.literal_eval(word.value) for word in words}
    return fields


def test_a_plan_sets_degrees_batch_and_layout() -> None:
    fields = fields_of(model("llama-3-70b"), DENSE)
    first, second, third, last = fields["cfg.model.pipeline_model_parallel_layout"]
    assert first == ["embedding", *["decoder"] * 21]
    assert second == third == ["decoder"] * 20
    assert last == [*["decoder"] * 19, "loss"]
    assert fields["cfg.model.virtual_pipeline_model_parallel_size"] is None
    assert fields["cfg.model.tensor_model_parallel_size"] == 4
    assert (fields["cfg.train.micro_batch_size"], fields["cfg.train.global_batch_size"]) == (1, 64)
    assert fields["cfg.model.seq_length"] == fields["cfg.dataset.seq_length"] == 4096


def test_interleaved_messages_are_overlapped_and_not_batched() -> None:
    """Batched messages of two interleaved ranks give wrong gradients."""
    two = replace(DENSE, pipeline=2, data=8, layers=None, schedule="interleaved-1f1b", chunks=2)
    fields = fields_of(model("llama-3-70b"), two)
    assert (fields["overlap_p2p_comm"], fields["batch_p2p_comm"]) == (True, False)
    assert fields["cfg.model.virtual_pipeline_model_parallel_size"] == 2


def test_pairs_hide_exchanges_and_exclude_overlapped_shared_experts() -> None:
    paired = replace(MOE, schedule="interleaved-1f1b-overlap", software="megatron-bridge-26.04")
    fields = fields_of(model("mixtral-8x7b"), paired)
    assert fields["overlap_moe_expert_parallel_comm"] is fields["delay_wgrad_compute"] is True
    assert fields["cfg.model.moe_shared_expert_overlap"] is False
    plain = fields_of(model("mixtral-8x7b"), replace(paired, schedule="interleaved-1f1b"))
    assert not {"overlap_moe_expert_parallel_comm", "cfg.model.moe_shared_expert_overlap"} & plain.keys()


def test_sharded_parameters_need_their_checkpoint_format() -> None:
    alone = replace(DENSE, pipeline=1, data=16, zero=3, layers=None)
    fields = fields_of(model("llama-3-70b"), alone)
    assert fields["cfg.ddp.data_parallel_sharding_strategy"] == "optim_grads_params"
    assert fields["cfg.checkpoint.ckpt_format"] == "fsdp_dtensor"
    assert "unset CUDA_DEVICE_MAX_CONNECTIONS" in flags_of(model("llama-3-70b"), H100S, alone)["bridge"].text


@pytest.mark.parametrize(("machines", "library"), [("h100-sxm:8x8", "deepep"), ("gb200:4x16", "hybridep")])
def test_grace_blackwell_sends_tokens_with_hybrid_ep(machines: str, library: str) -> None:
    configuration = replace(MOE, software="megatron-bridge-26.04", sequence_parallel=False)
    fields = fields_of(model("qwen3-235b-a22b"), configuration, cluster(machines))
    assert fields["cfg.model.moe_flex_dispatcher_backend"] == library
    written = flags_of(model("qwen3-235b-a22b"), cluster(machines), configuration)["megatron"].text
    assert f"--moe-flex-dispatcher-backend {library}" in written
    ranks = launch(written)[1].get("NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN")
    assert ranks == ("8" if library == "hybridep" else None)


@pytest.mark.parametrize(("experts", "library"), [(8, "deepep"), (16, "hybridep")])
def test_experts_on_several_blackwell_nodes_get_tokens_with_hybrid_ep(experts: int, library: str) -> None:
    """DeepEP crashes between nodes of B200: the review warns of it, so that a plan must not write it."""
    configuration = replace(
        MOE,
        pipeline=1,
        chunks=1,
        schedule="1f1b",
        data=32,
        expert=experts,
        software="megatron-bridge-26.04",
        sequence_parallel=False,
    )
    flags = flags_of(model("qwen3-235b-a22b"), cluster("b200:8x4"), configuration)
    for trainer in ("megatron", "bridge"):
        assert library in flags[trainer].text
        topology = [launch(flags[trainer].text)[1].get(name) for name in ("USE_MNNVL", "NVLINK_DOMAIN_SIZE")]
        assert topology == (["0", "8"] if library == "hybridep" else [None, None])
        (reading,) = read_text_of(flags[trainer].text, "plan.sh")
        assert not [fault.rule.id for fault in judged(reading.facts, RULES) if "deepep" in fault.rule.id]


def test_layers_that_differ_are_refused() -> None:
    hybrid = read_config(CONFIGS / "NVIDIA-Nemotron-Nano-9B-v2.json")
    found = flags_of(hybrid, H100S, replace(DENSE, layers=None))["bridge"]
    assert found.warnings[-1].startswith("Megatron-Bridge's layout has one kind of layer")
    assert found.text == f"# {found.warnings[-1]}.\n"
