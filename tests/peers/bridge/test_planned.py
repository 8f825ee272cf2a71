"""What a plan's launch script sets, taken and validated by Megatron-Bridge's own ``ConfigContainer``.

``PIPEPLAN_BRIDGE_SOURCE`` names the ``src`` folder of a clone and the folder of the Megatron-LM that it is for, with ``:``
between them; the package from PyPI is tested with the Megatron-core that is installed.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipeplan.extensions.planning import software
from pipeplan.extensions.planning.flags.megatron_hybrid import is_hybrid
from pipeplan.extensions.planning.trainers import flags_of
from pipeplan.extensions.planning.workload import ModelShape
from tests.peers.bridge.container import Case, Job
from tests.peers.megatron.expected import SHARDED, expected
from tests.peers.plans import PLANS, Planned, drawn, plan
from tests.peers.planted import planted_code
from tests.peers.shell import NUMBERS, launched
from tests.processes import run_ranks

VARIABLE = "PIPEPLAN_BRIDGE_SOURCE"
SOURCES = tuple(filter(None, os.environ.get(VARIABLE, "").split(":")))
USERS = NUMBERS | {"RECIPE": "recipe", "DATA": "data", "TOKENIZER": "tokenizer", "CHECKPOINTS": "checkpoints"}
"""What the user sets."""

SOFTWARE = ("megatron-core", "nemo", "megatron-bridge-26.04")


def model_of(shape: ModelShape) -> dict[str, Any]:
    """The fields of a provider that checks of the pipeline and of experts read."""
    experts = shape.experts
    model = {
        "num_layers": shape.layers,
        "hidden_size": shape.hidden,
        "num_attention_heads": shape.heads,
        "num_query_groups": shape.key_heads,
        "kv_channels": shape.score_dim,
        "ffn_hidden_size": shape.ffn or (experts.width if experts else None),
        "vocab_size": shape.vocabulary,
        "add_bias_linear": shape.bias_all,
        "gated_linear_unit": shape.gated,
        "share_embeddings_and_output_weights": shape.tied_embeddings,
        "seq_length": 64,
        "gradient_accumulation_fusion": False,
        "apply_rope_fusion": False,
    }
    if experts is not None:
        model |= {
            "num_moe_experts": experts.count,
            "moe_ffn_hidden_size": experts.width,
            "moe_router_topk": experts.top_k,
            "moe_router_pre_softmax": True,
        }
    return model


OF_THE_MODEL = (
    *("tensor_model_parallel_size", "sequence_parallel", "context_parallel_size", "cp_comm_type"),
    *("pipeline_model_parallel_size", "pipeline_model_parallel_layout", "microbatch_group_size_per_vp_stage"),
    *("overlap_p2p_comm", "overlap_moe_expert_parallel_comm", "delay_wgrad_compute", "tp_comm_overlap"),
    *("expert_model_parallel_size", "expert_tensor_parallel_size", "moe_grouped_gemm", "moe_token_dispatcher_type"),
    *("moe_flex_dispatcher_backend", "moe_router_dtype", "mtp_num_layers", "bf16", "fp16", "fp8", "fp8_recipe", "fp4"),
    *("recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules", "offload_modules"),
    *("fine_grained_activation_offloading", "gradient_accumulation_fusion", "cross_entropy_loss_fusion"),
)
"""Fields of the model's configuration that a plan decides: arguments of Megatron-LM with the same names."""

BESIDE = ("num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage")
"""Fields that must not be set, because a recipe may set them."""


def of_the_model(planned: Planned) -> dict[str, Any]:
    """The fields of the model's configuration; None stands for their default."""
    decided = expected(*planned)
    fields = {name: decided[name] for name in OF_THE_MODEL if decided.get(name) is not None}
    always = ("cp_comm_type", "pipeline_model_parallel_layout", "recompute_granularity", "recompute_method")
    fields |= {name: decided[name] for name in (*always, "recompute_num_layers")}
    return {f"model.{name}": value for name, value in fields.items()} | {f"model.{name}": None for name in BESIDE}


def case(planned: Planned) -> Case:
    shape, machines, configuration = planned
    text = flags_of(*planned)["bridge"].text
    code = text.partition("<<'PYTHON'\n")[2].partition("\nPYTHON\n")[0]
    interleaved = configuration.schedule.startswith("interleaved") and configuration.chunks > 1
    hides = software(configuration.software).hides
    fsdp = configuration.zero > 1 and configuration.pipeline == 1
    wanted = of_the_model(planned) | {
        "model.virtual_pipeline_model_parallel_size": configuration.chunks if interleaved else None,
        "model.batch_p2p_comm": configuration.pipeline > 1 and not interleaved,
        "model.seq_length": configuration.sequence,
        "model.account_for_embedding_in_pipeline_split": False,
        "model.account_for_loss_in_pipeline_split": False,
        "train.micro_batch_size": configuration.microbatch_size,
        "train.global_batch_size": configuration.global_batch,
        "train.train_iters": 1000,
        "dataset.seq_length": configuration.sequence,
        "ddp.grad_reduce_in_fp32": software(configuration.software).fp32_gradients,
        "ddp.use_distributed_optimizer": configuration.zero > 0,
        "ddp.use_megatron_fsdp": fsdp,
        "optimizer.use_distributed_optimizer": configuration.zero > 0,
        "optimizer.lr": 1e-4,
        "checkpoint.save": "checkpoints",
        "checkpoint.load": "checkpoints",
        "checkpoint.ckpt_format": "fsdp_dtensor" if fsdp else "torch_dist",
        "tokenizer.tokenizer_type": "HuggingFaceTokenizer",
        "tokenizer.tokenizer_model": "tokenizer",
        "dataset.blend": (["data"], None),
    }
    if fsdp:
        wanted["ddp.data_parallel_sharding_strategy"] = SHARDED[configuration.zero]
    if configuration.data * configuration.context > 1 and configuration.zero:
        wanted["ddp.overlap_grad_reduce"] = "data" in hides
        wanted["ddp.overlap_param_gather"] = {"data", "parameters"} <= hides
    return Case(
        code,
        launched(text).variables | USERS,
        model_of(shape),
        wanted,
        configuration.gpus,
        f"NVIDIA {machines.gpu.name.removesuffix('-sxm').upper()}",
        machines.gpu.generation,
    )


PLANTED = ("interleaved by groups", "recomputed in part", "experts on the host", "one rank, all sharded")
"""Plans in whose code wrong values are planted."""

IMPLIED = (
    *("cfg.ddp.use_distributed_optimizer", "cfg.optimizer.use_distributed_optimizer"),
    "one rank, all sharded: cfg.model.gradient_accumulation_fusion",
)
"""Fields that Megatron-Bridge sets from others, in some release: a single wrong one has no effect."""

AT_TIMES = (
    *("cfg.model.recompute_modules", "cfg.model.offload_modules", "cfg.model.sequence_parallel", "tp_comm_overlap"),
    "cfg.model.microbatch_group_size_per_vp_stage",
)
"""Fields without an effect in some of these plans."""


@pytest.mark.nightly
def test_every_planted_value_is_found(ran: Callable[[str], None]):
    cases: dict[str, Case] = {}
    for name in PLANTED:
        right = case(plan(name))
        cases |= {f"{name}: {field}": replace(right, code=code) for field, code in planted_code(right.code)}
    [faults] = run_ranks("tests.peers.bridge.container", 1, Job(SOURCES, cases), timeout=900)
    missed = [name for name in cases if not faults[name]]
    assert [name for name in missed if not name.endswith((*IMPLIED, *AT_TIMES))] == []
    for field in AT_TIMES:
        assert any(faults[name] for name in cases if name.endswith(f": {field}")), field
    ran(f"{len(cases)} wrong values planted in configurations")


def test_its_container_takes_every_plan_as_planned(ran: Callable[[str], None], monkeypatch: pytest.MonkeyPatch):
    # Another peer in this process may have set it; the scripts set or unset it before they run the code.
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    plans = {name: plan(name) for name in PLANS} | drawn(50, SOFTWARE, seed=3)
    # Its provider of latent attention is another class, in a package with a model each.
    plans = {name: planned for name, planned in plans.items() if planned[0].latent is None}
    # Layouts of layers that differ are not written for it.
    plans = {name: planned for name, planned in plans.items() if not is_hybrid(planned[0])}
    job = Job(SOURCES, {name: case(planned) for name, planned in plans.items()})
    [faults] = run_ranks("tests.peers.bridge.container", 1, job, timeout=900)
    assert {name: wrong for name, wrong in faults.items() if wrong} == {}
    ran(f"its validate on the configurations of {len(plans)} plans")
