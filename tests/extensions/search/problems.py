"""Small problems for the tests of the search."""

from typing import Any

import numpy as np

from pipeplan.costs import Limits, Settings
from pipeplan.extensions.search import Problem
from pipeplan.model import Placement

PLACEMENTS = [
    Placement.linear(3),
    Placement.v(3),
    Placement.loop(3, 2),
    Placement.wave(2, 3),
    Placement.bidirectional(4),
]


def problem(
    placement: Placement,
    microbatches: int,
    times: tuple[Any, Any, Any, float] = (6.0, 4.0, 4.0, 1.0),
    limit: float | list[float] | None = None,
    **more: Any,
) -> Problem:
    """Times of F, I and W of a stage, and of a transfer; the limit in activations, one for all or one a rank."""
    forward, backward_input, backward_weight, transfer = times
    settings = Settings(
        forward_times=forward,
        backward_input_times=backward_input,
        backward_weight_times=backward_weight,
        p2p_time=transfer,
        times_per="stage",
    )
    limits = None if limit is None else Limits(np.broadcast_to(np.array(limit, float), placement.ranks).copy(), True)
    return Problem(placement, microbatches, settings.costs(placement), limits, **more)


def proven(row: dict[str, Any]) -> Problem:
    """A row of proven_optima.json."""
    placement = Placement.v(row["ranks"]) if row["placement"] == "v" else Placement.linear(row["ranks"])
    chunks = row.get("limit_chunk_activations")
    limit = row["limit_stage_activations"] if chunks is None else chunks / 2
    times = [row[name] for name in ("forward", "backward_input", "backward_weight")]
    per_stage = [tuple(time) if isinstance(time, list) else time for time in times]
    return problem(placement, row["microbatches"], (*per_stage, row["p2p"]), limit)
