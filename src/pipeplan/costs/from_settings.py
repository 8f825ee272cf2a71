"""From settings to the costs of every stage: what is not given follows from what is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pipeplan.costs.layers import balanced_layers, stage_settings
from pipeplan.costs.limits import Limits, parse_limit
from pipeplan.costs.machines import MACHINES, NO_MACHINE
from pipeplan.costs.overhead import Overhead
from pipeplan.costs.settings import SettingsTable
from pipeplan.costs.stage_ranges import ranges_in
from pipeplan.costs.table import Costs, Memory, Transfer, per_stage
from pipeplan.errors import CostError, ShapeError
from pipeplan.model import NOT_GIVEN, Floats, Kind, Placement, Schedule

_ASSUMED = "times assumed: forward 1, backward 2"
"""What costs are called of which nobody gave any."""


@dataclass(frozen=True, kw_only=True)
class Settings(SettingsTable):
    """Shape and costs. None stands for what nobody said."""

    def costs(self, placement: Placement) -> Costs:
        """The costs on the stages of a placement.

        Raises
        ------
        CostError
            For a list of the wrong length (see ``pad_times``), times that contradict each other, bytes without their
            whole.
        """
        return costs_of(self, placement)

    def limits(self, placement: Placement) -> Limits | None:
        """The memory limit of every rank, or None where there is none.

        Raises
        ------
        CostError
            For a limit that is no size, limits of the wrong number, bytes where the costs hold no bytes.
        """
        return limits_of(self, placement)

    def assumed(self, schedule: Schedule) -> tuple[str, ...]:
        """Which times of a schedule's ops nobody gave and what they are taken to be, a sentence each."""
        return tuple(assumed_times(self, schedule))

    def recomputed(self, stages: int) -> tuple[int, ...]:
        """The stages, of this many, that recompute their activations before the backward.

        Raises
        ------
        ShapeError
            For text that names no stages, and for a stage that there is not.
        """
        return stages_in(self.recompute, stages)

    def offloaded(self, stages: int) -> tuple[int, ...]:
        """The stages, of this many, that copy their activations to the host and back.

        Raises
        ------
        ShapeError
            For text that names no stages, for a stage that there is not, and for one that recomputes.
        """
        found = stages_in(self.offload, stages, "offload")
        twice = sorted({*found}.intersection(self.recomputed(stages)))
        if twice:
            raise ShapeError(
                f"offload: stage {twice[0]} recomputes its activations, so there is nothing to copy: leave it out of one",
                field="offload",
            )
        return found

    def without(self, *names: str) -> Settings:
        """The same settings with some of those that may be None left out."""
        out = {name: None for name in names if getattr(self, name) is not None}
        return replace(self, **out) if out else self  # type: ignore[arg-type]

    @property
    def times_given(self) -> bool:
        """Whether anybody said how long any op takes."""
        return _times_given(self)


def costs_of(settings: SettingsTable, placement: Placement) -> Costs:
    """See :meth:`Settings.costs <pipeplan.costs.from_settings.Settings.costs>`.

    The times of the result are effective: a setting that changes how long ops take is applied here, and nowhere later.
    """
    name = settings.costs_name or ("" if _times_given(settings) else _ASSUMED)
    settings = _of_layers(settings, placement)
    forward = _times(settings, "forward_times", placement)
    if forward is None:
        forward = per_stage(1.0, placement, times_per=settings.times_per)
    inputs, weights, full = _backward(settings, placement, forward)
    recompute = _times(settings, "recompute_times", placement)
    memory = _memory(settings, placement)
    return Costs(
        forward=forward,
        backward=full,
        backward_input=inputs,
        backward_weight=weights,
        recompute=forward if recompute is None else recompute,
        memory=memory,
        overlap=_times(settings, "overlap_times", placement),
        transfer=Transfer(
            latency=settings.p2p_time,
            bytes=settings.p2p_bytes,
            bandwidth=math.inf if settings.p2p_bandwidth is None else settings.p2p_bandwidth,
        ),
        overhead=_overhead(settings),
        time_unit=settings.time_unit,
        name=name,
        offload=_offload(settings, placement, memory),
        communication=settings.communication,
    )


def _offload(settings: SettingsTable, placement: Placement, memory: Memory) -> Floats | None:
    """How long a copy to the host takes on every stage; None where nobody said."""
    times, bandwidth = _times(settings, "offload_times", placement), settings.offload_bandwidth
    if bandwidth is None:
        return times
    if times is not None:
        raise CostError(
            "offload times and an offload bandwidth both say how long a copy to the host takes: leave one of them out",
            field="offload_times",
        )
    if not memory.in_bytes:
        raise CostError(
            "an offload bandwidth needs the bytes that are copied: give activation_bytes, or offload_times instead",
            field="offload_bandwidth",
        )
    return memory.offloaded / bandwidth


def _times_given(settings: SettingsTable) -> bool:
    return settings.layers is not None or any(getattr(settings, name) is not None for name in BASIC_TIMES)


def _overhead(settings: SettingsTable) -> Overhead:
    """What is given, the rest as on the machine."""
    machine = (
        Overhead() if settings.machine == NO_MACHINE else MACHINES[settings.machine].overhead_in(settings.time_unit)
    )
    given = {
        name: value
        for name in ("op_gap", "message_time", "step_time")
        if (value := getattr(settings, name)) is not None
    }
    return replace(machine, **given)


def _of_layers(settings: SettingsTable, placement: Placement) -> SettingsTable:
    """The settings with a list per stage in the place of their layers."""
    if settings.layers is None:
        if settings.layers_per_stage is not None:
            raise CostError("layers per stage are given, but no layers", field="layers_per_stage")
        return settings
    stages = placement.stages
    layout = (
        balanced_layers(settings.layers, stages) if settings.layers_per_stage is None else settings.layers_per_stage
    )
    if len(layout) != stages:
        raise CostError(f"layers per stage: {len(layout)} values for {stages} stages", field="layers_per_stage")
    found = stage_settings(settings.layers, layout)
    twice = next((name for name in (*found, "backward_times") if getattr(settings, name) is not None), None)
    if twice is not None:
        raise CostError(f"{twice.replace('_', ' ')} follow from the layers: leave one of the two out", field=twice)
    return replace(settings, layers=None, layers_per_stage=None, **found)


def _times(settings: SettingsTable, name: str, placement: Placement) -> Floats | None:
    """A setting of times on every stage; None where nobody gave it."""
    value = getattr(settings, name)
    if value is None:
        return None
    return per_stage(value, placement, name, times_per=settings.times_per, pad=settings.pad_times)


def _backward(settings: SettingsTable, placement: Placement, forward: Floats) -> tuple[Floats, Floats, Floats]:
    """Times of I, W and B.

    Each half takes as long as the forward where nothing is said of it, and the full backward what its halves take.
    """
    full = _times(settings, "backward_times", placement)
    inputs = _times(settings, "backward_input_times", placement)
    weights = _times(settings, "backward_weight_times", placement)
    if full is None:
        inputs = forward if inputs is None else inputs
        weights = forward if weights is None else weights
        return inputs, weights, inputs + weights
    if inputs is None and weights is None:
        return full / 2, full / 2, full
    if weights is None:
        assert inputs is not None
        return inputs, _rest(full, inputs, "backward_input_times"), full
    if inputs is None:
        return _rest(full, weights, "backward_weight_times"), weights, full
    return inputs, weights, full


def _rest(full: Floats, half: Floats, name: str) -> Floats:
    """The other half of the full backward."""
    if (wrong := np.flatnonzero(half >= full)).size:
        stage = int(wrong[0])
        noun = name.replace("_", " ").removesuffix("s")
        raise CostError(
            f"{noun} {half[stage]:g} of stage {stage} must be less than its full backward time, {full[stage]:g}",
            field=name,
        )
    return full - half


def _memory(settings: SettingsTable, placement: Placement) -> Memory:
    static, whole, part, kept, moved = (_sizes(settings, name, placement) for name in ("static_bytes", *_ACTIVATIONS))
    if whole is None:
        for name, size in zip(_ACTIVATIONS[1:], (part, kept, moved), strict=True):
            if size is not None:
                words = name.replace("_", " ")
                raise CostError(f"{words} are a part of the activation bytes, which are not given", field=name)
        share = per_stage(1.0, placement)
        return Memory(share, share, share * 0 if static is None else static, in_bytes=False)
    return Memory(
        whole,
        whole if part is None else part,
        whole * 0 if static is None else static,
        in_bytes=True,
        recompute_keeps=NOT_GIVEN if kept is None else kept,
        offloaded=NOT_GIVEN if moved is None else moved,
    )


_ACTIVATIONS = ("activation_bytes", "weight_activation_bytes", "recompute_bytes", "offload_bytes")
"""The settings of what a microbatch holds: the whole, then its parts."""


def _sizes(settings: SettingsTable, name: str, placement: Placement) -> Floats | None:
    """A setting of bytes on every stage; one number is for all the chunks of a rank together."""
    value = getattr(settings, name)
    return None if value is None else per_stage(value, placement, name, pad=settings.pad_times)


def assumed_times(settings: SettingsTable, schedule: Schedule) -> Iterator[str]:
    """See :meth:`Settings.assumed <pipeplan.costs.from_settings.Settings.assumed>`."""
    given = {name for name in BASIC_TIMES if getattr(settings, name) is not None}
    if settings.layers is not None:
        given = set(BASIC_TIMES)
    if not given:
        yield "times are assumed: forward 1, backward 2 (1 for the inputs, 1 for the weights)"
    elif "forward_times" not in given:
        yield "the forward time is assumed to be 1"
    elif given == {"forward_times"}:
        yield "the backward time is assumed to be twice the forward's, half of it each for inputs and weights"
    halves = given & {"backward_input_times", "backward_weight_times"}
    if "backward_times" in given and not halves and schedule.has(Kind.W):
        yield "the backward times for inputs and for weights are assumed to be half of the full one each"
    if "backward_times" not in given and len(halves) == 1:
        other = "weights" if "backward_input_times" in halves else "inputs"
        yield f"the backward time for {other} is assumed to be the forward's"
    if settings.overlap_times is None and schedule.joined.any():
        yield "overlapped forward and backward: assumed to take as long as both in sequence"
    if settings.recompute_times is None and schedule.has(Kind.R):
        yield "a recomputation is assumed to take the forward's time"


BASIC_TIMES = ("forward_times", "backward_times", "backward_input_times", "backward_weight_times")
"""The settings that say how long ops take."""


def stages_in(named: str | tuple[int, ...], stages: int, name: str = "recompute") -> tuple[int, ...]:
    """The stages that a setting names, in order: ``none``, ``all``, numbers, or a text such as ``0-3,6``.

    Parameters
    ----------
    named
        As in :class:`~pipeplan.costs.from_settings.Settings`.
    stages
        How many there are.
    name
        The setting, for the error.

    Raises
    ------
    ShapeError
        For text that names no stages, and for a stage that there is not.
    """
    if named in ("none", ()):
        return ()
    if named == "all":
        return tuple(range(stages))
    ranges = ranges_in(named, name) if isinstance(named, str) else [(stage, stage) for stage in named]
    wrong = next((stage for bounds in ranges for stage in bounds if not 0 <= stage < stages), None)
    if wrong is not None:
        raise ShapeError(f"{name}: there is no stage {wrong}; the stages are 0 to {stages - 1}", field=name)
    return tuple(sorted({stage for first, last in ranges for stage in range(first, last + 1)}))


def limits_of(settings: SettingsTable, placement: Placement) -> Limits | None:
    """See :meth:`Settings.limits`."""
    asked = settings.memory_limit
    if asked is None:
        return None
    given = asked if isinstance(asked, tuple) else (asked,) * placement.ranks
    if len(given) != placement.ranks:
        raise CostError(f"memory limit: {len(given)} values for {placement.ranks} ranks", field="memory_limit")
    parsed = [parse_limit(value) for value in given]
    units = {unit for _, unit in parsed}
    if len(units) > 1:
        raise CostError(
            "memory limit: give every rank's limit in bytes, or every rank's in activations", field="memory_limit"
        )
    if units == {"byte"} and settings.activation_bytes is None and not _bytes_of_layers(settings):
        raise CostError(
            f"memory limit {given[0]} is in bytes, but no activation bytes are given; "
            "give them, or a limit in activations, such as 8act",
            field="memory_limit",
        )
    return Limits(np.array([value for value, _ in parsed]), units == {"act"})


def _bytes_of_layers(settings: SettingsTable) -> bool:
    return any(layer.activation_bytes for layer in settings.layers or ())
