"""What training a model asks of a rank: FLOPs, bytes and parameters of F, I and W, layer by layer; no duration anywhere."""

from pipeplan.workload.config_json import architecture_names, read_config, read_model
from pipeplan.workload.execution import AttentionKernel, Execution, Precision
from pipeplan.workload.flops import TokenFlops, core_flops, token_flops
from pipeplan.workload.layers import layers_of, rank_vocabulary
from pipeplan.workload.parameters import (
    ParameterCounts,
    ParameterPart,
    attention_parts,
    layer_parts,
    norm_size,
    padded_vocabulary,
    parameter_counts,
)
from pipeplan.workload.presets import from_dict, known_model, model, model_names
from pipeplan.workload.recompute import RECOMPUTE, offloaded, recomputed
from pipeplan.workload.shape import Experts, LatentAttention, ModelShape
from pipeplan.workload.short_forms import shape_from, short_form
from pipeplan.workload.work import (
    AttentionCore,
    Collective,
    Gemm,
    Group,
    GroupedGemm,
    Kept,
    LayerKind,
    LayerWork,
    MemoryPass,
    Operation,
    RankParameters,
    Recompute,
    State,
    Work,
    state_bytes,
)

__all__ = [
    "RECOMPUTE",
    "AttentionCore",
    "AttentionKernel",
    "Collective",
    "Execution",
    "Experts",
    "Gemm",
    "Group",
    "GroupedGemm",
    "Kept",
    "LatentAttention",
    "LayerKind",
    "LayerWork",
    "MemoryPass",
    "ModelShape",
    "Operation",
    "ParameterCounts",
    "ParameterPart",
    "Precision",
    "RankParameters",
    "Recompute",
    "State",
    "TokenFlops",
    "Work",
    "architecture_names",
    "attention_parts",
    "core_flops",
    "from_dict",
    "known_model",
    "layer_parts",
    "layers_of",
    "model",
    "model_names",
    "norm_size",
    "offloaded",
    "padded_vocabulary",
    "parameter_counts",
    "rank_vocabulary",
    "read_config",
    "read_model",
    "recomputed",
    "shape_from",
    "short_form",
    "state_bytes",
    "token_flops",
]
