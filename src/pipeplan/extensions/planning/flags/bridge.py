"""Megatron-Bridge's configuration for a plan: a launch script with Python code that changes a recipe.

A recipe is a function without arguments that returns a ``ConfigContainer``: model, data, optimizer and scheduler. The code
sets every field that a plan decides, also where its value is the default, because a recipe may have another one. Fields are
those of ``ConfigContainer`` and its parts in releases 0.3 to 0.6 and in the main branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeplan.extensions.planning import Configuration, software
from pipeplan.extensions.planning.flags.environment import adds_apart, dispatcher, environment, shards_as_fsdp
from pipeplan.extensions.planning.flags.megatron import (
    CONTEXT_METHODS,
    TO_SET,
    MegatronPipeline,
    offload_modules,
    plan_warnings,
    planned_pipeline,
    require_trainable,
)
from pipeplan.extensions.planning.flags.megatron_hybrid import is_hybrid
from pipeplan.extensions.planning.flags.network import recipe_warnings
from pipeplan.extensions.planning.flags.scripts import (
    bash_script,
    function_name,
    recomputed_anywhere,
)
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.workload import ModelShape, published_model
from pipeplan.formats import TrainerSettings
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Schedule, counted
from pipeplan.trainers.bridge import TRAINER, assignments, exchanges, messages, pipeline_values
from pipeplan.trainers.megatron import FSDP, RECOMPUTED, pipeline_flags

PRECISIONS = {
    "bf16": "bf16_mixed",
    "fp16": "fp16_mixed",
    "fp8": "bf16_with_fp8_current_scaling_mixed",
    "mxfp8": "bf16_with_mxfp8_mixed",
    "nvfp4": "bf16_with_nvfp4_mixed",
}
"""Bridge's recipes of mixed precision."""

IMPORTS = """import os

from megatron.bridge import recipes
from megatron.bridge.training.comm_overlap import CommOverlapConfig
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.mixed_precision import get_mixed_precision_config
from megatron.bridge.training.pretrain import pretrain

cfg = getattr(recipes, os.environ["RECIPE"])()
"""

OF_THE_USER = """cfg.dataset.blend = ([os.environ["DATA"]], None)
cfg.tokenizer.tokenizer_type = "HuggingFaceTokenizer"
cfg.tokenizer.tokenizer_model = os.environ["TOKENIZER"]
cfg.checkpoint.save = cfg.checkpoint.load = os.environ["CHECKPOINTS"]
cfg.train.train_iters = int(os.environ["STEPS"])
cfg.optimizer.lr = float(os.environ["LEARNING_RATE"])

if __name__ == "__main__":
    pretrain(cfg, forward_step)
"""

Values = dict[str, Any]
"""Values of the fields of one part of a configuration."""


def refusal_of(model: ModelShape) -> str:
    """Return why Megatron-Bridge cannot build a model from a layout; empty if it can."""
    return (
        f"{TRAINER.title}'s layout has one kind of layer, and those of {model.name} differ" if is_hybrid(model) else ""
    )


def plan_flags(
    model: ModelShape, cluster: Cluster, configuration: Configuration, schedule: Schedule, version: str | None = None
) -> TrainerSettings:
    """Return a launch script that trains with one of Megatron-Bridge's recipes, changed to the plan.

    An order of ops that Megatron-core cannot run is replaced by the nearest one that it can, with a warning. Where it
    refuses the shape, the text is only the reason.
    """
    release = TRAINER.release(version)
    pipeline = planned_pipeline(model, configuration, schedule, TRAINER.title)
    warnings = (
        *pipeline.warnings,
        *plan_warnings(configuration, TRAINER.title),
        *recipe_warnings(model, TRAINER.title, "its recipe"),
    )
    try:
        if reason := refusal_of(model):
            raise ShapeError(reason)
        require_trainable(model, configuration, TRAINER.title, pipeline.order)
        pipeline_flags(pipeline.schedule, pipeline.order, pipeline.training(model, configuration))
    except ShapeError as error:
        return TrainerSettings(text=f"# {error}.\n", warnings=(*warnings, str(error)))
    text = bash_script(
        '"$TRAINING"',
        {},
        cluster,
        heading=f"Megatron-Bridge {release}: {model.name}, {counted(cluster.gpus, 'GPU')}",
        warnings=warnings,
        to_set=TO_SET,
        usual={"RECIPE": (_recipe(model), "function of megatron.bridge.recipes with this model")},
        environment=[
            *environment(cluster, configuration),
            f"export RECIPE {' '.join(TO_SET)}",
            "TRAINING=$(mktemp --suffix .py)",
            "trap 'rm -f \"$TRAINING\"' EXIT",
            "cat > \"$TRAINING\" <<'PYTHON'",
            *_code(model, cluster, configuration, pipeline),
            "PYTHON",
        ],
    )
    return TrainerSettings(text=text, warnings=warnings)


def _code(
    model: ModelShape, cluster: Cluster, configuration: Configuration, pipeline: MegatronPipeline
) -> Iterator[str]:
    """Yield the lines of the Python program."""
    yield from IMPORTS.splitlines()
    yield "# The model of the plan."
    for field, value in _sizes(model).items():
        yield f'assert cfg.model.{field} == {value}, "the recipe has another {field} than the plan"'
    parts = {
        "model": {
            **_degrees(model, cluster, configuration),
            **pipeline_values(pipeline.schedule, pipeline.order, pipeline.training(model, configuration)),
            **_memory(model, configuration, pipeline),
            **({"moe_shared_expert_overlap": False} if pipeline.order.overlap else {}),
        },
        "train": {"micro_batch_size": configuration.microbatch_size, "global_batch_size": configuration.global_batch},
        "dataset": {"seq_length": configuration.sequence},
        **_sharding(configuration),
    }
    for part, values in parts.items():
        yield from assignments(part, values)
    yield from _overlap(configuration, pipeline)
    yield f'cfg.mixed_precision = get_mixed_precision_config("{PRECISIONS[configuration.precision]}")'
    yield f"cfg.mixed_precision.grad_reduce_in_fp32 = {software(configuration.software).fp32_gradients}"
    yield ""
    yield from OF_THE_USER.splitlines()


_RECIPES = {"deepseek-v2-lite": "deepseek_v2_lite", "glm-4.5": "glm45_355b", "glm-4.5-air": "glm45_air_106b"}
"""Bridge's names of models that it names otherwise."""


def _recipe(model: ModelShape) -> str:
    """Return the usual name of the recipe with a model, whose version has no separator: ``llama31_405b``."""
    usual, published = function_name(model, joined=True), published_model(model)
    return f"{usual if published is None else _RECIPES.get(published.name, usual)}_pretrain_config"


def _sizes(model: ModelShape) -> Values:
    """Return the sizes of a model by Bridge's fields that every recipe with this model sets.

    Of a model that is not published, whose recipe the user writes, they are all that tell its layers.
    """
    experts, latent = model.experts, model.latent
    sizes: Values = {
        "num_layers": model.layers,
        "hidden_size": model.hidden,
        "num_attention_heads": model.heads,
        "ffn_hidden_size": model.ffn,
        "gated_linear_unit": model.gated,
        "share_embeddings_and_output_weights": model.tied_embeddings,
    }
    if latent is not None:
        sizes |= {
            "multi_latent_attention": True,
            "q_lora_rank": latent.query_rank,
            "kv_lora_rank": latent.key_value_rank,
        }
    elif model.key_heads < model.heads:
        sizes["num_query_groups"] = model.key_heads
    if experts is not None:
        sizes |= {
            "num_moe_experts": experts.count,
            "moe_router_topk": experts.top_k,
            "moe_ffn_hidden_size": experts.width,
        }
    if published_model(model) is None:
        sizes |= _further_sizes(model)
    return {field: value for field, value in sizes.items() if value is not None}


def _further_sizes(model: ModelShape) -> Values:
    experts, latent = model.experts, model.latent
    sizes: Values = {
        "vocab_size": model.vocabulary,
        "kv_channels": model.head_dim if latent is None else None,
        "normalization": '"RMSNorm"' if model.norm == "rms" else '"LayerNorm"',
        "add_bias_linear": model.bias_all,
        "add_qkv_bias": model.bias_qkv,
        "qk_layernorm": model.qk_norm,
    }
    if latent is not None:
        sizes |= {
            "qk_head_dim": latent.nope_dim,
            "qk_pos_emb_head_dim": latent.rope_dim,
            "v_head_dim": latent.value_dim,
        }
    if experts is not None:
        has = [int(model.has_experts(layer)) for layer in range(model.layers)]
        sizes |= {
            "moe_shared_expert_intermediate_size": experts.shared_width or None,
            "moe_layer_freq": None if all(has) else has,
        }
    return sizes


def _degrees(model: ModelShape, cluster: Cluster, configuration: Configuration) -> Values:
    method = CONTEXT_METHODS[software(configuration.software).context_method]
    degrees: Values = {
        "seq_length": configuration.sequence,
        "tensor_model_parallel_size": configuration.tensor,
        "sequence_parallel": configuration.sequence_parallel and configuration.tensor > 1,
        "context_parallel_size": configuration.context,
        "cp_comm_type": method if configuration.context > 1 else None,
        "cross_entropy_loss_fusion": software(configuration.software).fused_loss,
    }
    if model.experts is None:
        return degrees
    backend = dispatcher(cluster, configuration)
    degrees |= {
        "expert_model_parallel_size": configuration.expert,
        "expert_tensor_parallel_size": configuration.expert_tensor,
        "moe_token_dispatcher_type": "alltoall" if backend is None else "flex",
        "moe_grouped_gemm": True,
    }
    if backend is not None:
        degrees |= {"moe_flex_dispatcher_backend": backend, "moe_router_dtype": "fp32"}
    return degrees


def _memory(model: ModelShape, configuration: Configuration, pipeline: MegatronPipeline) -> Values:
    """Return recomputation and offload."""
    full = pipeline.order.recompute
    modules = [name for name in recomputed_anywhere(configuration) if name not in ("full", "selective-op")]
    share = configuration.most_offloaded
    values: Values = {
        **(
            RECOMPUTED
            if full
            else dict.fromkeys(RECOMPUTED) | {"recompute_granularity": "selective" if modules else None}
        ),
        "recompute_modules": modules or None,
        "fine_grained_activation_offloading": share > 0,
        "offload_modules": [*offload_modules(model, share, tuple(modules))] if share > 0 else None,
    }
    return values | ({"gradient_accumulation_fusion": False} if adds_apart(configuration) else {})


def _sharding(configuration: Configuration) -> dict[str, Values]:
    """Return what the data-parallel group shards, in the parts of the configuration that know of it."""
    fsdp = shards_as_fsdp(configuration)
    ddp: Values = {"use_distributed_optimizer": configuration.zero > 0, "use_megatron_fsdp": fsdp}
    if fsdp:
        ddp["data_parallel_sharding_strategy"] = FSDP[configuration.zero]
    return {
        "ddp": ddp,
        "optimizer": {"use_distributed_optimizer": configuration.zero > 0},
        "checkpoint": {"ckpt_format": "fsdp_dtensor" if fsdp else "torch_dist"},
    }


def _overlap(configuration: Configuration, pipeline: MegatronPipeline) -> Iterator[str]:
    """Yield the overlap of communication."""
    hides = software(configuration.software).hides
    values = {
        "tp_comm_overlap": "tensor" in hides and configuration.sequence_parallel and configuration.tensor > 1,
        **messages(pipeline.schedule),
        "overlap_grad_reduce": "data" in hides,
        "overlap_param_gather": bool(configuration.zero) and {"data", "parameters"} <= hides,
    }
    if pipeline.order.overlap:
        values |= exchanges(pipeline.order)
    yield "cfg.comm_overlap = CommOverlapConfig("
    yield from (f"    {name}={value}," for name, value in values.items())
    yield ")"
