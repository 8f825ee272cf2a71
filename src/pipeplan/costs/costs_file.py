"""Measured costs: statistics of times, config files with costs, and conversion of costs back to settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from pipeplan.costs.from_settings import Settings
from pipeplan.costs.layers import Layer
from pipeplan.costs.table import Costs
from pipeplan.foundation.documents import json_text
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.files import write_text
from pipeplan.model import Floats


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, quartiles and number of measurements; in milliseconds unless documented otherwise."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, times: Iterable[float] | Floats) -> Spread:
        """Return the statistics of some measurements."""
        values = np.asarray(list(times), np.float64)
        low, middle, high = np.percentile(values, (25, 50, 75)).tolist()
        return cls(middle, low, high, len(values))

    @property
    def relative(self) -> float:
        """Interquartile range divided by the median."""
        return (self.high - self.low) / self.median if self.median else 0.0

    def __str__(self) -> str:
        return f"{self.median:.4g} ({self.low:.4g} to {self.high:.4g})"


def require_costs_file(path: Path) -> None:
    """Raise InputError unless the suffix is one of a costs file."""
    if path.suffix not in {".yaml", ".yml", ".json"}:
        raise InputError(f"a costs file must end in .yaml or .json, not {path.name}")


def write_costs_file(path: Path, settings: Settings, comments: Iterable[str] = ()) -> None:
    """Write the settings that differ from the defaults as a config file (.yaml, .yml or .json).

    A YAML file starts with ``comments``, one line each, on the source of the numbers.
    """
    require_costs_file(path)
    values = settings.changed
    if settings.layers is not None:
        values["layers"] = [_changed(layer) for layer in settings.layers]
    if settings.segments is not None:
        values["segments"] = [stage.in_files() for stage in settings.segments]
    if path.suffix == ".json":
        write_text(path, json_text(_rounded(values), indent=2) + "\n")
        return
    lines = (f"# {line}\n" for line in comments)
    write_text(path, "".join([*lines, *(f"{key}: {json_text(_rounded(value))}\n" for key, value in values.items())]))


def _changed(layer: Layer) -> dict[str, Any]:
    """Return the fields of a layer that have no default, or another value."""
    pairs = ((field, getattr(layer, field.name)) for field in fields(layer))
    changed = {field.name: value for field, value in pairs if value != field.default}
    return changed if layer.segments is None else changed | {"segments": layer.segments.in_files()}


def _rounded(value: Any) -> Any:
    """Round times to five digits; whole numbers such as bytes stay exact."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_rounded(part) for part in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.5g}")
    return value


def settings_of(costs: Costs) -> dict[str, Any]:
    """Return the settings that lead to these costs, with lists per stage, by the names of ``Settings``.

    Activations that are not in bytes are left out because they follow from the shape.
    """
    transfer, memory = costs.transfer, costs.memory
    settings: dict[str, Any] = {
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
        settings["communication"] = costs.communication
    if costs.streams != "rank":
        settings["streams"] = costs.streams
    for name in ("overlap", "offload", "unshard", "reduce"):
        if (times := getattr(costs, name)) is not None:
            settings[f"{name}_times"] = _tuple(times)
    if costs.segments is not None:
        settings |= costs.segments.settings()
    if np.isfinite(transfer.bandwidth):
        settings["p2p_bandwidth"] = float(transfer.bandwidth)
    lost = costs.overhead
    settings |= {name: value for name in ("op_gap", "message_time", "step_time") if (value := getattr(lost, name)) > 0}
    of_stages = {"static": memory.static, "parameter": memory.parameters, "gradient": memory.gradients}
    settings |= {f"{name}_bytes": _tuple(sizes) for name, sizes in of_stages.items() if sizes.any()}
    if memory.in_bytes:
        settings["activation_bytes"] = _tuple(memory.activation)
        settings["weight_activation_bytes"] = _tuple(memory.freed_by_weight)
        if memory.recompute_keeps.any():
            settings["recompute_bytes"] = _tuple(memory.recompute_keeps)
        if not np.array_equal(memory.offloaded, memory.activation):
            settings["offload_bytes"] = _tuple(memory.offloaded)
    if costs.factors is not None:
        settings["microbatch_factors"] = costs.factors.tables
    if costs.slice_attention is not None:
        settings["slice_attention"] = _tuple(costs.slice_attention.forward)
    return settings


# Grouped by topic, as in the table of settings.
# fmt: off
IN_COSTS = frozenset({
    "ranks", "stages", "layers", "layers_per_stage", "times_per", "pad_times", "time_unit", "costs_name",
    "forward_times", "backward_times", "backward_input_times", "backward_weight_times", "overlap_times", "recompute_times",
    "segments", "pair_slowdown", "delayed_weights",
    "offload_times", "offload_bandwidth", "unshard_times", "reduce_times",
    "p2p_time", "p2p_bytes", "p2p_bandwidth", "communication", "streams", "machine", "op_gap", "message_time", "step_time",
    "activation_bytes", "weight_activation_bytes", "recompute_bytes", "offload_bytes", "static_bytes", "parameter_bytes",
    "gradient_bytes",
    "microbatch_factors", "lengths", "reference_length", "attention_share", "attention_model", "slice_attention",
})
# fmt: on
"""Settings that costs contain, or that follow from those: :func:`settings_of` returns what they amount to."""


def settings_beside(costs: Costs) -> dict[str, Any]:
    """Return the settings that these costs were made from and do not contain: of the schedule and its memory limit."""
    settings = costs.settings
    if settings is None:
        return {}
    values = ((item, getattr(settings, item.name)) for item in fields(settings) if item.name not in IN_COSTS)
    return {item.name: value for item, value in values if value != item.default}


def _tuple(values: Floats) -> tuple[Any, ...]:
    """Return an array as a tuple; one of two dimensions as a tuple of tuples."""
    return tuple(tuple(row) if isinstance(row, list) else row for row in values.tolist())
