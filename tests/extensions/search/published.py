"""Costs of the conformance files' rows, put as a user would put them."""

from typing import Any

from pipeplan.costs import Settings


def per_stage(stages: int, value: float | list[float]) -> tuple[float, ...]:
    return tuple(value) if isinstance(value, list) else (value,) * stages


def times(row: dict[str, Any], stages: int) -> dict[str, Any]:
    """Times of a row that has them per stage."""
    return {
        "forward_times": per_stage(stages, row["forward"]),
        "backward_input_times": per_stage(stages, row["backward_input"]),
        "backward_weight_times": per_stage(stages, row["backward_weight"]),
        "p2p_time": row["p2p"],
    }


def model_bytes(hidden: int, heads: int, sequence: int, stages: int) -> dict[str, Any]:
    """What a transformer layer's activations hold in bytes for each token, and the part that only W frees."""
    full = 34 * hidden + 5 * heads * sequence
    return {
        "activation_bytes": per_stage(stages, full),
        "weight_activation_bytes": per_stage(stages, 32 * hidden),
    }


def grid_settings(row: dict[str, Any], chunks: int, limit: float | None) -> Settings:
    """A row of zero_bubble_schedulers.json on p ranks of one or two chunks; ``limit`` in activations."""
    forward, backward_input, backward_weight = (2 / chunks * cost for cost in row["chunk_cost"])
    stages = chunks * row["p"]
    return Settings(
        forward_times=per_stage(stages, forward),
        backward_input_times=per_stage(stages, backward_input),
        backward_weight_times=per_stage(stages, backward_weight),
        p2p_time=row["comm"],
        activation_bytes=2 * row["mem_chunk"][0],
        weight_activation_bytes=-2 * row["mem_chunk"][2],
        memory_limit=None if limit is None else f"{limit}act",
    )
