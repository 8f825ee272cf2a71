"""Software of Megatron Bridge's performance recipes by release, GPU generation and precision.

Source: NVIDIA-NeMo/Megatron-Bridge, the recipes in the tags v0.2.0 (25.11) to v0.6.0 (26.08). Since 26.06, those in MXFP8
capture whole CUDA graphs (``_enable_*_full_iteration_mxfp8``); those of hybrid models capture parts of layers in every
release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeplan.extensions.planning.estimates.running import OVERLAPPED
from pipeplan.extensions.planning.workload import ModelShape, from_dict
from pipeplan.foundation.errors import PipeplanError

Release = tuple[int, int, int]
"""Year, month and number of a patch."""

_WHOLE_GRAPHS: Release = (26, 6, 0)


def bridge_software(row: Mapping[str, Any], release: Release | None) -> str:
    """Return the Megatron Bridge software of a row; without a release, the current one."""
    parallel, hardware = row.get("parallel", {}), row.get("hardware", {})
    pipeline, chunks = int(parallel.get("pp") or 1), int(parallel.get("vp") or 1)
    small = re.search(r"mx", row.get("precision") or "", re.IGNORECASE) is not None
    since = release is None or release >= _WHOLE_GRAPHS
    blackwell = re.search(r"b[23]00", str(hardware.get("gpu", "")), re.IGNORECASE) is not None
    model = _model(row)
    if since and small and blackwell and (pipeline == 1 or chunks > 1) and not _hybrid(model):
        return "megatron-bridge"
    return "megatron-bridge-26.04"


def with_pairs(schedule: str, trainer: str, model: ModelShape) -> str:
    """Return the schedule of a row, with pairs where its recipe hides exchanges (``overlap_moe_expert_parallel_comm``).

    Megatron's overlapped schedule has no layers with hyper-connections.
    """
    hides = trainer == "megatron-bridge" and model.experts is not None and model.residual_streams == 1
    return OVERLAPPED[schedule] if hides else schedule


def _model(row: Mapping[str, Any]) -> ModelShape | None:
    try:
        return from_dict(row.get("model", {}))
    except PipeplanError:
        return None


def _hybrid(model: ModelShape | None) -> bool:
    """Return True if a model has recurrent layers: Megatron's ``HybridModel``, whose exchanges do not overlap."""
    return model is not None and any(mixer.kind != "compressed-attention" for mixer in model.mixers)
