"""How many replicas a published run had whose GPUs nobody counted: what it had allocated between steps says it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeplan.files import GIBIBYTE
from pipeplan.workload import Execution, ModelShape, RankParameters, layers_of, state_bytes

_MOST = 4096
"""Replicas that are tried, where no global batch says fewer."""


def expert_tensor_of(row: Mapping[str, Any], model: ModelShape) -> int:
    """Expert-tensor degree: as printed; t without expert parallelism, and of Megatron-LM and its core, as flags default.

    Recipes of other trainers set 1.
    """
    parallel = row["parallel"]
    if parallel.get("etp"):
        return int(parallel["etp"])
    by_default = re.search(r"\bMegatron[- ](?:LM|Core)\b", str(row.get("framework") or _title(row))) is not None
    return int(parallel["tp"]) if model.experts and (by_default or (parallel.get("ep") or 1) == 1) else 1


def _title(row: Mapping[str, Any]) -> str:
    source = row.get("source", "")
    return source if isinstance(source, str) else str(source.get("title", ""))


def replicas_by_state(row: Mapping[str, Any], allocated_gib: float, model: ModelShape) -> int:
    """The power of two with which weights, gradients and sharded optimizer state of the last rank come nearest to it.

    That rank is the one that Megatron-LM's log is of. Between steps nothing else is allocated but workspaces.
    """
    parallel, batch = row["parallel"], row.get("batch", {})
    tensor, pipeline = int(parallel["tp"]), int(parallel["pp"])
    expert, expert_tensor = int(parallel.get("ep") or 1), expert_tensor_of(row, model)
    layers = layers_of(model, Execution(tensor=tensor, expert=expert, expert_tensor=expert_tensor))
    every = [layer.parameters for layer in layers if layer.kind in {"dense", "moe"} for _ in range(layer.count)]
    kinds = {"mtp", "head"} if pipeline > 1 else {"embedding", "mtp", "head"}
    ends = [layer.parameters for layer in layers if layer.kind in kinds]
    last = every[-(len(every) // pipeline) :] + ends
    held = RankParameters(dense=sum(each.dense for each in last), expert=sum(each.expert for each in last))
    context = int(parallel.get("cp") or 1)

    def apart(replicas: int) -> float:
        shards = replicas * context
        state = state_bytes(
            held, zero=1, shards=shards, expert_shards=max(1, tensor * shards // (expert * expert_tensor))
        )
        return abs(state.total - allocated_gib * GIBIBYTE)

    fewest = max(1, -(-expert * expert_tensor // (tensor * context)))
    most = int(batch.get("global") or _MOST * int(batch.get("micro") or 1)) // int(batch.get("micro") or 1)
    tried = [count for count in (1 << power for power in range(_MOST.bit_length())) if fewest <= count <= most]
    return min(tried, key=apart, default=fewest)
