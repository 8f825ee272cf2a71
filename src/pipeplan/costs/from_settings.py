"""Costs of every stage from settings; omitted settings follow from the others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from pipeplan.costs.config import known_names, settings_given
from pipeplan.costs.layers import Layout, balanced_layers, blocks_of, stage_settings
from pipeplan.costs.memory import Limits, Memory
from pipeplan.costs.microbatch_factors import MicrobatchFactors, attention_share_of, factors_of_lengths, tokens_of
from pipeplan.costs.overhead import MACHINES, NO_MACHINE, Overhead
from pipeplan.costs.segments import OPS, Segments
from pipeplan.costs.settings import SETTING_NAMES, SETTINGS, SettingsTable
from pipeplan.costs.slice_attention import SliceAttention
from pipeplan.costs.table import Costs, Transfer, pair_table, per_stage
from pipeplan.costs.values import parse_limit, ranges_in
from pipeplan.foundation.errors import CostError, ShapeError
from pipeplan.model import NOT_GIVEN, Floats, Kind, Placement, Schedule, shortened

if TYPE_CHECKING:
    from pipeplan.costs.keywords import SettingsTableKeywords

_ASSUMED = "times assumed: forward 1, backward 2"
"""Name of costs without any given time."""

UNIT_TIMES = "times are assumed: forward 1, backward 2 (1 for the inputs, 1 for the weights)"
"""Note on costs without any given time."""


@dataclass(frozen=True, kw_only=True, init=False)
class Settings(SettingsTable):
    """Settings of shape and costs, a value that every function takes as ``settings``; None means not set.

    They are converted and checked once: lists and arrays become tuples, sizes such as ``2GiB`` bytes.
    ``docs/reference/options.md`` describes all of them.

    Raises the errors of :class:`~pipeplan.costs.settings.SettingsTable`, and UnknownNameError for an unknown name.

    Examples
    --------
    >>> costs = Settings(forward_times=[1.0, 2.0], activation_bytes="2GiB")
    >>> costs.replace(activation_bytes=None, p2p_time=0.1)
    Settings(forward_times=(1.0, 2.0), p2p_time=0.1)
    """

    def __init__(self, **settings: Unpack[SettingsTableKeywords]) -> None:
        vars(self).update({item.name: item.default for item in fields(self)} | settings_given(settings))

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.changed.items())})"

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that differ from their defaults, by name."""
        values = ((item, getattr(self, item.name)) for item in fields(self))
        return {item.name: value for item, value in values if value != item.default}

    def replace(self, **changes: Unpack[SettingsTableKeywords]) -> Settings:
        """Return the same settings with other values of some; None restores the default.

        Ranks and stages determine each other: setting one of them resets the other. If a time changes, the name of the
        costs is reset. Raises the errors of the constructor.
        """
        named = known_names(changes, SETTING_NAMES)
        reset = {name for name, value in named.items() if value is None}
        reset |= {other for name, other in _EITHER.items() if named.get(name) is not None and other not in named}
        if any(SETTINGS[name].timing for name in named):
            reset.add("costs_name")
        defaults = {item.name: item.default for item in fields(self) if item.name in reset}
        changed = copy(self)
        vars(changed).update(defaults | settings_given(named))
        return changed

    def costs(self, placement: Placement) -> Costs:
        """Return the costs of the stages of a placement.

        They have effective times: every setting that changes the time of an op is applied here, and nowhere later.

        Raises
        ------
        CostError
            If a list has neither one value per stage nor one per rank, times contradict each other, or a part of the
            activation bytes is given without them.
        """
        name = self.costs_name or ("" if self.times_given else _ASSUMED)
        settings = _of_layers(self, placement)
        segments = _segments(settings, placement)
        if segments is not None:
            settings = replace(settings, **_of_segments(settings, segments, placement))
        forward = _times(settings, "forward_times", placement)
        if forward is None:
            forward = per_stage(1.0, placement, times_per=settings.times_per)
        inputs, weights, full = _backward(settings, placement, forward)
        recompute = _times(settings, "recompute_times", placement)
        factors = self.factors(placement)
        memory = _memory(settings, placement)
        if factors is not None:
            memory = replace(memory, factors=factors.size)
        return Costs(
            forward=forward,
            backward=full,
            backward_input=inputs,
            backward_weight=weights,
            recompute=forward if recompute is None else recompute,
            memory=memory,
            overlap=_overlap(settings, placement),
            transfer=Transfer(
                latency=settings.p2p_time,
                bytes=settings.p2p_bytes,
                bandwidth=math.inf if settings.p2p_bandwidth is None else settings.p2p_bandwidth,
            ),
            overhead=_overhead(settings),
            time_unit=settings.time_unit,
            name=name,
            offload=_offload(settings, placement, memory),
            unshard=_times(settings, "unshard_times", placement),
            reduce=_times(settings, "reduce_times", placement),
            communication=settings.communication,
            streams=settings.transfer_streams or "rank",
            factors=factors,
            slice_attention=SliceAttention.of(_shares(settings, "slice_attention", placement)),
            segments=segments,
            settings=self,
        )

    def factors(self, placement: Placement) -> MicrobatchFactors | None:
        """Return the factors of the microbatches on the costs of the stages of a placement; None if they are alike.

        Raises
        ------
        CostError
            If lists have the wrong length, or settings contradict each other.
        """
        return _factors(self, placement)

    def limits(self, placement: Placement) -> Limits | None:
        """Return the memory limit of every rank, or None if there is none.

        Raises
        ------
        CostError
            If a limit is invalid, limits and ranks differ in number, or a limit is in bytes but the costs are not.
        """
        value = self.memory_limit
        if value is None:
            return None
        per_rank = value if isinstance(value, tuple) else (value,) * placement.ranks
        if len(per_rank) != placement.ranks:
            raise CostError(f"memory limit: {len(per_rank)} values for {placement.ranks} ranks", field="memory_limit")
        parsed = [parse_limit(limit) for limit in per_rank]
        units = {unit for _, unit in parsed}
        if len(units) > 1:
            raise CostError(
                "memory limit: set every rank's limit in bytes, or every rank's in activations", field="memory_limit"
            )
        if units == {"byte"} and self.activation_bytes is None and not _bytes_of_layers(self):
            raise CostError(
                f"memory limit {per_rank[0]} is in bytes, but activation_bytes is not set; "
                "set it, or use a limit in activations, such as 8act",
                field="memory_limit",
            )
        return Limits(np.array([value for value, _ in parsed]), units == {"act"})

    def assumed(self, schedule: Schedule) -> tuple[str, ...]:
        """Return one sentence for each assumption about times that are not set."""
        return tuple(assumed_times(self, schedule))

    def recomputed(self, stages: int) -> tuple[int, ...]:
        """Return the stages, of this many, that recompute their activations before the backward.

        Raises
        ------
        ShapeError
            If the text is invalid or a stage does not exist.
        """
        return stages_in(self.recompute, stages)

    def offloaded(self, stages: int) -> tuple[int, ...]:
        """Return the stages, of this many, that offload their activations to the host.

        Raises
        ------
        ShapeError
            If the text is invalid, a stage does not exist, or a stage also recomputes.
        """
        offloaded = stages_in(self.offload, stages, "offload")
        twice = sorted({*offloaded}.intersection(self.recomputed(stages)))
        if twice:
            raise ShapeError(
                f"offload: stage {twice[0]} is also in recompute; a stage can do only one of the two", field="offload"
            )
        return offloaded

    def blocks(self, stages: int) -> tuple[tuple[int, ...], int] | None:
        """Return the transformer blocks of each of this many stages as trainers count them, and the number of MTP layers.

        None without layers that have a role. Raises InputError for layers that are where no trainer has them.
        """
        return None if self.layers is None else blocks_of(self.layers, layout_of(self, stages))

    def without(self, *names: str) -> Settings:
        """Return the same settings with these ones unset."""
        return self.replace(**dict.fromkeys(names)) if any(getattr(self, name) is not None for name in names) else self

    @property
    def times_given(self) -> bool:
        """True if any time of an op is set."""
        given = self.layers is not None or self.segments is not None
        return given or any(getattr(self, name) is not None for name in BASIC_TIMES)


_EITHER = {"ranks": "stages", "stages": "ranks"}
"""Settings of which one determines the other."""


def _factors(settings: SettingsTable, placement: Placement) -> MicrobatchFactors | None:
    """Return the factors of the microbatches; None if they are alike."""
    lengths, numbers = settings.lengths, settings.microbatch_factors
    if lengths is None:
        unused = next((name for name in _OF_LENGTHS if getattr(settings, name) is not None), None)
        if unused is not None:
            raise CostError(
                f"{unused.replace('_', ' ')} needs the lengths of the microbatches: set lengths, or leave it out",
                field=unused,
            )
        factors = None if numbers is None else MicrobatchFactors.of(numbers, placement.rank_of[0])
    elif numbers is not None:
        raise CostError(
            "microbatch factors and lengths both set how long each microbatch takes: set only one of them",
            field="microbatch_factors",
        )
    else:
        reference = settings.reference_length
        factors = factors_of_lengths(lengths, _attention_share(settings, placement), reference)
    if factors is not None and settings.microbatches not in (None, factors.microbatches):
        name = "microbatch_factors" if lengths is None else "lengths"
        raise CostError(
            f"{name.replace('_', ' ')}: {factors.microbatches} values for {settings.microbatches} microbatches",
            field=name,
        )
    return factors


_OF_LENGTHS = ("reference_length", "attention_share", "attention_model")
"""Settings that say how times follow from lengths."""


def _shares(settings: SettingsTable, name: str, placement: Placement) -> Floats:
    """Return a setting of shares on every stage; 0 if it is not set. Stages of a rank each have the rank's share."""
    value = getattr(settings, name)
    return per_stage(0.0 if value is None else value, placement, name, times_per="stage", pad=settings.pad_times)


def _attention_share(settings: SettingsTable, placement: Placement) -> Floats:
    """Return the share of each stage's forward that is attention, shape (stages,)."""
    if settings.attention_model is not None:
        assert settings.lengths is not None
        if settings.attention_share is not None:
            raise CostError(
                "attention share and attention model both set the share of attention: set only one of them",
                field="attention_model",
            )
        reference = settings.reference_length or float(tokens_of(settings.lengths).mean())
        return np.full(placement.stages, attention_share_of(settings.attention_model, reference))
    return _shares(settings, "attention_share", placement)


def _offload(settings: SettingsTable, placement: Placement, memory: Memory) -> Floats | None:
    times, bandwidth = _times(settings, "offload_times", placement), settings.offload_bandwidth
    if bandwidth is None:
        return times
    if times is not None:
        raise CostError(
            "offload times and an offload bandwidth both set the time of a copy to the host: set only one of them",
            field="offload_times",
        )
    if not memory.in_bytes:
        raise CostError(
            "an offload bandwidth needs activation_bytes; alternatively set offload_times",
            field="offload_bandwidth",
        )
    return memory.offloaded / bandwidth


def _overhead(settings: SettingsTable) -> Overhead:
    machine = (
        Overhead() if settings.machine == NO_MACHINE else MACHINES[settings.machine].overhead_in(settings.time_unit)
    )
    overrides = {
        name: value
        for name in ("op_gap", "message_time", "step_time")
        if (value := getattr(settings, name)) is not None
    }
    return replace(machine, **overrides)


def _of_layers(settings: SettingsTable, placement: Placement) -> SettingsTable:
    if settings.layers is None:
        if settings.layers_per_stage is not None:
            raise CostError(
                "layers per stage are set, but no layers: set the costs of each layer (layers), or leave out the layers per "
                "stage",
                field="layers_per_stage",
            )
        return settings
    layout = layout_of(settings, placement.stages)
    of_stages = stage_settings(settings.layers, layout)
    twice = next(
        (name for name in (*of_stages, "backward_times", "segments") if getattr(settings, name) is not None), None
    )
    if twice is not None:
        raise CostError(f"{twice.replace('_', ' ')} follow from the layers: set only one of the two", field=twice)
    return replace(settings, layers=None, layers_per_stage=None, **of_stages)


def layout_of(settings: SettingsTable, stages: int) -> Layout:
    """Return the number of layers of each stage, of settings with ``layers``.

    Raises CostError for a ``layers_per_stage`` of another number of stages, and InputError for more stages than layers.
    """
    assert settings.layers is not None
    layout = settings.layers_per_stage or balanced_layers(settings.layers, stages)
    if layout == "auto":
        raise CostError(
            "layers per stage auto is for search, which finds them; elsewhere set numbers, or leave it out",
            field="layers_per_stage",
        )
    if isinstance(layout, str):
        raise CostError(
            f"layers per stage must be numbers here, not the layout '{shortened(layout, 60)}'", field="layers_per_stage"
        )
    if len(layout) != stages:
        raise CostError(f"layers per stage: {len(layout)} values for {stages} stages", field="layers_per_stage")
    return layout


def _times(settings: SettingsTable, name: str, placement: Placement) -> Floats | None:
    value = getattr(settings, name)
    if value is None:
        return None
    return per_stage(value, placement, name, times_per=settings.times_per, pad=settings.pad_times)


def _segments(settings: SettingsTable, placement: Placement) -> Segments | None:
    """Return the segments of the stages; None if none are set.

    One entry for all stages is scaled as one time is: to the share of each of a rank's chunks, unless it is for each stage.
    """
    if settings.segments is None:
        unused = next((name for name in ("delayed_weights", "pair_slowdown") if getattr(settings, name)), None)
        if unused is not None:
            raise CostError(
                f"{unused} is set, but no segments, which say what overlapped pairs compute and communicate: set segments, "
                f"or leave out {unused}",
                field=unused,
            )
        return None
    if settings.overlap_times is not None:
        raise CostError(
            "overlap times and segments both set the times of overlapped pairs: set only one of them", field="segments"
        )
    of_stages = settings.segments
    if len(of_stages) == 1:
        shares = per_stage(1.0, placement, times_per=settings.times_per).tolist()
        scaled = {share: of_stages[0].scaled([share] * 3) for share in set(shares)}
        of_stages = tuple(scaled[share] for share in shares)
    slowdown = 1.0 if settings.pair_slowdown is None else settings.pair_slowdown
    return Segments(of_stages, slowdown=slowdown, delayed_weights=settings.delayed_weights)


def _of_segments(settings: SettingsTable, segments: Segments, placement: Placement) -> dict[str, Any]:
    """Return the times that follow from segments and are not set.

    Raises the errors of :meth:`Segments.require_times <pipeplan.costs.Segments.require_times>`.
    """
    given = {op: _times(settings, f"{op}_times", placement) for op in (*OPS, "backward")}
    segments.require_times(placement.stages, given)
    return {f"{op}_times": tuple(sums.tolist()) for op, sums in segments.times().items() if given[op] is None}


def _overlap(settings: SettingsTable, placement: Placement) -> Floats | None:
    """Return the overlap times, per stage of the forward, or a table of the forward's and the backward's stage."""
    value = settings.overlap_times
    if isinstance(value, tuple) and any(isinstance(row, tuple) for row in value):
        return pair_table(value, placement.stages)
    return _times(settings, "overlap_times", placement)


def _backward(settings: SettingsTable, placement: Placement, forward: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the times of I, W and B.

    A half that is not set takes as long as the forward, and a full backward as long as both halves.
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
    of_sharding = {
        name: size
        for name in ("parameters", "gradients")
        if (size := _sizes(settings, f"{name.removesuffix('s')}_bytes", placement)) is not None
    }
    if whole is None:
        for name, size in zip(_ACTIVATIONS[1:], (part, kept, moved), strict=True):
            if size is not None:
                words = name.replace("_", " ")
                raise CostError(f"{words} are a part of the activation bytes, which are not set", field=name)
        share = per_stage(1.0, placement)
        return Memory(share, share, share * 0 if static is None else static, in_bytes=False, **of_sharding)
    return Memory(
        whole,
        whole if part is None else part,
        whole * 0 if static is None else static,
        in_bytes=True,
        recompute_keeps=NOT_GIVEN if kept is None else kept,
        offloaded=NOT_GIVEN if moved is None else moved,
        **of_sharding,
    )


_ACTIVATIONS = ("activation_bytes", "weight_activation_bytes", "recompute_bytes", "offload_bytes")
"""Settings of the memory of a microbatch: the whole, then its parts."""


def _sizes(settings: SettingsTable, name: str, placement: Placement) -> Floats | None:
    """Return a setting of bytes on every stage; one number counts for all chunks of a rank together."""
    value = getattr(settings, name)
    return None if value is None else per_stage(value, placement, name, pad=settings.pad_times)


def assumed_times(settings: SettingsTable, schedule: Schedule) -> Iterator[str]:
    """Yield the sentences of :meth:`Settings.assumed <pipeplan.costs.from_settings.Settings.assumed>`."""
    times = {name for name in BASIC_TIMES if getattr(settings, name) is not None}
    if settings.layers is not None or settings.segments is not None:
        times = set(BASIC_TIMES)
    if not times:
        yield UNIT_TIMES
    elif "forward_times" not in times:
        yield "the forward time is assumed to be 1"
    elif times == {"forward_times"}:
        yield "the backward time is assumed to be twice the forward's, half of it each for inputs and weights"
    halves = times & {"backward_input_times", "backward_weight_times"}
    if "backward_times" in times and not halves and schedule.has(Kind.W):
        yield "the backward times for inputs and for weights are assumed to be half of the full one each"
    if "backward_times" not in times and len(halves) == 1:
        other = "weights" if "backward_input_times" in halves else "inputs"
        yield f"the backward time for {other} is assumed to be the forward's"
    segments = settings.segments is not None or any(layer.segments for layer in settings.layers or ())
    if settings.overlap_times is None and not segments and schedule.joined.any():
        yield "overlapped forward and backward: assumed to take as long as both in sequence"
    recompute_given = settings.recompute_times is not None or any(layer.recompute for layer in settings.layers or ())
    if not recompute_given and schedule.has(Kind.R):
        yield "a recomputation is assumed to take the forward's time"


BASIC_TIMES = ("forward_times", "backward_times", "backward_input_times", "backward_weight_times")
"""Settings of the times of ops."""


def stages_in(named: str | tuple[int, ...], stages: int, name: str = "recompute") -> tuple[int, ...]:
    """Return the stages in a setting, in order: ``none``, ``all``, numbers, or a text such as ``0-3,6``."""
    if named in ("none", ()):
        return ()
    if named == "all":
        return tuple(range(stages))
    ranges = ranges_in(named, name) if isinstance(named, str) else [(stage, stage) for stage in named]
    wrong = next((stage for bounds in ranges for stage in bounds if not 0 <= stage < stages), None)
    if wrong is not None:
        raise ShapeError(f"{name}: there is no stage {wrong}; the stages are 0 to {stages - 1}", field=name)
    return tuple(sorted({stage for first, last in ranges for stage in range(first, last + 1)}))


def _bytes_of_layers(settings: SettingsTable) -> bool:
    return any(layer.activation_bytes for layer in settings.layers or ())
