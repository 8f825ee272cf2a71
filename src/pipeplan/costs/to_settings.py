"""From costs back to the settings that give them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeplan.costs.table import Costs
from pipeplan.model import Floats


def settings_of(costs: Costs) -> dict[str, Any]:
    """The settings that give these costs, lists per stage, by the names of :class:`~pipeplan.costs.from_settings.Settings`.

    Activations that are not in bytes are left out: they follow from the shape.
    """
    transfer, memory = costs.transfer, costs.memory
    found: dict[str, Any] = {
        "stages": costs.stages,
        "forward_times": _tuple(costs.forward),
        "backward_times": _tuple(costs.backward),
        "backward_input_times": _tuple(costs.backward_input),
        "backward_weight_times": _tuple(costs.backward_weight),
        "recompute_times": _tuple(costs.recompute),
        "p2p_time": float(transfer.latency),
        "p2p_bytes": float(transfer.bytes),
        "time_unit": costs.time_unit,
    }
    if costs.communication != "edge":
        found["communication"] = costs.communication
    if costs.overlap is not None:
        found["overlap_times"] = _tuple(costs.overlap)
    if costs.offload is not None:
        found["offload_times"] = _tuple(costs.offload)
    if np.isfinite(transfer.bandwidth):
        found["p2p_bandwidth"] = float(transfer.bandwidth)
    lost = costs.overhead
    found |= {name: value for name in ("op_gap", "message_time", "step_time") if (value := getattr(lost, name)) > 0}
    if memory.static.any():
        found["static_bytes"] = _tuple(memory.static)
    if memory.in_bytes:
        found["activation_bytes"] = _tuple(memory.activation)
        found["weight_activation_bytes"] = _tuple(memory.freed_by_weight)
        if memory.recompute_keeps.any():
            found["recompute_bytes"] = _tuple(memory.recompute_keeps)
        if not np.array_equal(memory.offloaded, memory.activation):
            found["offload_bytes"] = _tuple(memory.offloaded)
    return found


def _tuple(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())
