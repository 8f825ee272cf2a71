"""The questions that the workbench answers: the same from Python as from the shell.

Keyword arguments are those of :class:`~pipeplan.costs.settings.Settings`; lists of times are per stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pipeplan.api.catalogue import entry, is_name, schedules
from pipeplan.api.results import Comparison, Result, over_limit
from pipeplan.api.sources import Source, as_taken_by, file_of, plan, same_ranks
from pipeplan.api.trainer_settings import megatron_settings
from pipeplan.checking import Report
from pipeplan.checking import check as check_schedule
from pipeplan.checking.checker import Sends
from pipeplan.costs import Settings
from pipeplan.costs.config import merged, settings_given
from pipeplan.errors import InputError, NegativeAnswer, PipeplanError, UnknownNameError
from pipeplan.formats import chrome_trace, read_schedule, schedule_json, torch_csv
from pipeplan.formats.costs_json import costs_json
from pipeplan.formats.timeline_table import timeline_csv
from pipeplan.formats.torchtitan import torchtitan_toml
from pipeplan.formats.zb_nodes import format_zb_nodes, zero_bubble_nodes
from pipeplan.model import Kind, MemoryRule, Schedule, crosses_ranks, dependencies
from pipeplan.passes.communication import insert_communication, without_communication
from pipeplan.passes.torch_lowering import lower_for_torch
from pipeplan.simulation import simulate as simulate_schedule


def simulate(schedule: Source = "1f1b", /, **settings: Any) -> Result:
    """Times, bubble, memory and bound of one schedule.

    Parameters
    ----------
    schedule
        A strategy's or heuristic's name, a file (CSV, JSON), or a schedule.
    **settings
        Shape and costs; see :class:`~pipeplan.costs.settings.Settings`.

    Raises
    ------
    InputError
        For an unknown name, a shape that the strategy cannot take, costs that cannot be, a broken file.
    InvalidScheduleError
        For a schedule that is incomplete, out of order or deadlocks; the message points at the op.
    InfeasibleError
        If a heuristic finds no schedule under the memory limit. Any other schedule over its limit is simulated, and
        says so in ``warnings``.
    """
    return simulate_with(schedule, given(settings))


def compare(*names: Source, **settings: Any) -> Comparison:
    """Several schedules on the same ranks and costs, or all that fit the shape.

    Parameters
    ----------
    *names
        What :func:`simulate` takes; none: every strategy and heuristic.
    **settings
        Shape and costs. Options that a schedule does not have, such as chunks, are left out for it.

    Raises
    ------
    InputError
        For what :func:`simulate` raises it, on the first of the names; without names, if no schedule fits.
    NegativeAnswer
        If there is no schedule under the memory limit.
    """
    return compare_with(names, given(settings))


def check(schedule: Source, /, **settings: Any) -> Report:
    """All that is wrong with a schedule: structure, order, deadlock, and with ``memory_limit`` its memory.

    Raises
    ------
    InputError
        For a file that cannot be read or understood, and settings that cannot be.
    InvalidScheduleError
        For a file whose ranks or stages hold nothing, so that there is no schedule to check.
    """
    return check_with(schedule, given(settings))


def export(schedule: Source, /, to: str, **settings: Any) -> str:
    """A schedule in another tool's format: one of ``EXPORTS``.

    Raises
    ------
    UnknownNameError
        For an unknown format.
    FormatError, ShapeError
        For a schedule that the format has no words for.
    PipeplanError
        For what :func:`simulate` raises it.
    """
    return export_with(schedule, to, given(settings))


def given(settings: dict[str, Any]) -> Settings:
    """Settings from keyword arguments, their names and types checked."""
    return merged({}, settings_given(settings))


def simulate_with(source: Source, settings: Settings) -> Result:
    """See :func:`simulate`."""
    schedule = plan(source, settings)
    check_schedule(schedule, sends=_sends(settings)).require_valid()
    if settings.communication == "blocking":
        schedule = _with_communication(schedule)
    costs, limits = settings.costs(schedule.placement), settings.limits(schedule.placement)
    simulation = simulate_schedule(schedule, costs, communication=settings.communication, limits=limits)
    over = None if limits is None else over_limit(simulation.memory, limits)
    warnings = (*_padding(settings, schedule), *([over] if over else []))
    return Result(simulation, limits, warnings)


def _sends(settings: Settings) -> Sends:
    """What the checker must think of sends: under blocking communication they wait for their receives."""
    return "blocking" if settings.communication == "blocking" else "buffered"


def _with_communication(schedule: Schedule) -> Schedule:
    """The schedule with sends and receives, unless it has them or needs none."""
    if schedule.has(Kind.SEND_F) or not crosses_ranks(schedule, dependencies(schedule).arrival).any():
        return schedule
    return insert_communication(schedule)


def _padding(settings: Settings, schedule: Schedule) -> Iterable[str]:
    """A warning for each list that was made to fit."""
    if not settings.pad_times:
        return
    for name in _PER_STAGE:
        value = getattr(settings, name)
        if isinstance(value, tuple) and len(value) != schedule.stages:
            done = "the last one is repeated" if len(value) < schedule.stages else "the rest is left out"
            yield f"{name.replace('_', ' ')}: {len(value)} values for {schedule.stages} stages; {done}"


_PER_STAGE = (
    "forward_times",
    "backward_times",
    "backward_input_times",
    "backward_weight_times",
    "overlap_times",
    "activation_bytes",
    "weight_activation_bytes",
    "static_bytes",
)


def compare_with(names: Iterable[Source], settings: Settings) -> Comparison:
    """See :func:`compare`."""
    chosen = list(names)
    settings = same_ranks(settings)
    results: list[Result] = []
    refused: dict[str, PipeplanError] = {}
    for source in chosen or [found.name for found in schedules()]:
        try:
            results.append(simulate_with(source, _settings_for(source, settings)))
        except InputError as error:
            if chosen:
                raise
            refused[str(source)] = error
        except NegativeAnswer as error:
            refused[_label(source)] = error
    if not results:
        raise next(iter(refused.values()))
    results.sort(key=lambda result: (not result.fits, result.makespan))
    return Comparison(tuple(results), {name: str(error) for name, error in refused.items()})


def _settings_for(source: Source, settings: Settings) -> Settings:
    return as_taken_by(entry(source), settings) if isinstance(source, str) and is_name(source) else settings


def _label(source: Source) -> str:
    return source.name if isinstance(source, Schedule) else str(source)


def check_with(source: Source, settings: Settings) -> Report:
    """See :func:`check`."""
    path = file_of(source)
    schedule = plan(source, settings) if path is None else plan(read_schedule(path, keep_duplicates=True), settings)
    return check_schedule(schedule, memory=_memory_rule(schedule, settings), sends=_sends(settings))


def _memory_rule(schedule: Schedule, settings: Settings) -> MemoryRule | None:
    """What the ranks may hold, where the settings say."""
    limits = settings.limits(schedule.placement)
    return None if limits is None else settings.costs(schedule.placement).memory.rule(schedule.placement, limits)


def export_with(source: Source, to: str, settings: Settings) -> str:
    """See :func:`export`."""
    if to not in EXPORTS:
        raise UnknownNameError("format", to, EXPORTS)
    return EXPORTS[to](simulate_with(source, settings))


def _zb_nodes(result: Result) -> str:
    return format_zb_nodes(zero_bubble_nodes(result.timeline, result.costs.transfer.time()))


EXPORTS: dict[str, Callable[[Result], str]] = {
    "torch-csv": lambda result: torch_csv(without_communication(result.schedule)),
    "torch-csv-comms": lambda result: torch_csv(lower_for_torch(result.schedule)),
    "zb-nodes": _zb_nodes,
    "json": lambda result: schedule_json(result.schedule),
    "trace": lambda result: chrome_trace(result.timeline, result.memory),
    "timeline-csv": lambda result: timeline_csv(result.timeline),
    "costs": lambda result: costs_json(result.costs),
    "torchtitan": lambda result: torchtitan_toml(result.schedule, f"{result.name}.csv"),
    "megatron": lambda result: megatron_settings(result.schedule),
}
"""The formats that schedules are exported to, each with its writer."""
