"""What a plan's launch script sets, taken and validated by Megatron-Bridge's own ``ConfigContainer``.

``PIPEPLAN_BRIDGE_SOURCE`` names the ``src`` folder of a clone and the folder of the Megatron-LM that it is for, with ``:``
between them; the package from PyPI is tested with the Megatron-core that is installed.
"""

import os
from collections.abc import Callable
from typing import Any

from pipeplan.planner import software
from pipeplan.trainers import flags_of
from pipeplan.workload import ModelShape
from tests.peers.bridge.container import Case, Job
from tests.peers.plans import PLANS, Planned, drawn, plan
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


def case(planned: Planned) -> Case:
    shape, machines, configuration = planned
    text = flags_of(*planned)["bridge"].text
    code = text.partition("<<'PYTHON'\n")[2].partition("\nPYTHON\n")[0]
    interleaved = configuration.schedule.startswith("interleaved") and configuration.chunks > 1
    hides = software(configuration.software).hides
    wanted = {
        "model.tensor_model_parallel_size": configuration.tensor,
        "model.pipeline_model_parallel_size": configuration.pipeline,
        "model.context_parallel_size": configuration.context,
        "model.virtual_pipeline_model_parallel_size": configuration.chunks if interleaved else None,
        "model.overlap_p2p_comm": interleaved,
        "model.expert_model_parallel_size": configuration.expert,
        "train.micro_batch_size": configuration.microbatch_size,
        "train.global_batch_size": configuration.global_batch,
        "train.train_iters": 1000,
        "dataset.seq_length": configuration.sequence,
        "ddp.grad_reduce_in_fp32": software(configuration.software).fp32_gradients,
        "ddp.use_distributed_optimizer": configuration.zero > 0,
        "ddp.use_megatron_fsdp": configuration.zero > 1 and configuration.pipeline == 1,
        "optimizer.lr": 1e-4,
        "checkpoint.save": "checkpoints",
    }
    if configuration.data * configuration.context > 1 and configuration.zero:
        wanted["ddp.overlap_grad_reduce"] = "data" in hides
    return Case(
        code,
        launched(text).variables | USERS,
        model_of(shape),
        wanted,
        configuration.gpus,
        f"NVIDIA {machines.gpu.name.upper()}",
        machines.gpu.generation,
    )


def test_its_container_takes_every_plan_as_planned(ran: Callable[[str], None]):
    plans = {name: plan(name) for name in PLANS} | drawn(50, SOFTWARE, seed=3)
    # Its provider of latent attention is another class, in a package with a model each.
    plans = {name: planned for name, planned in plans.items() if planned[0].latent is None}
    job = Job(SOURCES, {name: case(planned) for name, planned in plans.items()})
    [faults] = run_ranks("tests.peers.bridge.container", 1, job, timeout=900)
    assert {name: wrong for name, wrong in faults.items() if wrong} == {}
    ran(f"its validate on the configurations of {len(plans)} plans")
