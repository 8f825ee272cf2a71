"""Simulation of a schedule on costs; a timeline that has its times already keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypedDict, Unpack

from msgspec import UNSET, UnsetType

from pipeplan.answers.arguments import ScheduleLike, asked
from pipeplan.answers.sharding import sharded, sharding_used
from pipeplan.answers.simulating.result import Result, result_of
from pipeplan.answers.sources import Source, label, opened, resolve
from pipeplan.checking import Sends
from pipeplan.checking import check as check_schedule
from pipeplan.costs import SETTINGS, Costs, Settings, SettingsKeywords
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.readable import transfers_in_words
from pipeplan.foundation.records import Record
from pipeplan.model import Kind, Need, Schedule, Streams, Timeline, crosses_ranks, dependencies, require_order
from pipeplan.simulation import Simulation, post_messages, settings_measured
from pipeplan.simulation import simulate as simulate_schedule

TIME_SETTINGS = tuple(setting.name for setting in SETTINGS.values() if setting.timing)
"""Names of the settings that a timeline with its own times ignores."""


def simulate(schedule: ScheduleLike | UnsetType = UNSET, /, **options: Unpack[SettingsKeywords]) -> Result:
    """Simulate one schedule: times, bubble, memory and bound.

    Parameters
    ----------
    schedule
        A strategy or its name (:func:`pipeplan.schedules` lists them); a file that holds a schedule (CSV, JSON); a
        schedule. Default: the config file's, else ``1f1b``. Of a timeline that was simulated before, the order of ops is
        simulated again on these costs, with a warning; a measured one is refused.
    **options
        Shape and costs, by the names of the command line: ``ranks``, ``microbatches``, ``forward_times`` and so on, which
        ``docs/reference/options.md`` lists; a list has one value per stage, or one per rank.

    Other Parameters
    ----------------
    settings, config
        Settings of shape and costs, as a value or a mapping, or in a config file; the other keywords override them. All
        are keywords, too: ``docs/reference/options.md`` lists them.

    Raises
    ------
    InputError
        For an unknown name, a shape that the strategy cannot take, costs that cannot be, a broken file, a measured timeline.
    InvalidScheduleError
        For a schedule that is incomplete, out of order or deadlocks; the message points at the op.
    InfeasibleError
        If a strategy that keeps the memory limit finds no schedule under it. Any other schedule over its limit is simulated
        with a warning.

    Examples
    --------
    >>> result = pipeplan.simulate("zbv", ranks=4, microbatches=8)
    >>> result.makespan, result.timeline.bubble.idle_over_total
    (25.5, 0.05882352941176472)
    """
    return simulated(*asked(schedule, options))


def simulated(source: ScheduleLike, settings: Settings, *, called: str | None = None) -> Result:
    """See :func:`simulate`; messages say ``called`` for the source, where that is given."""
    opened_source, name = opened(source), called or label(source)
    resolved = resolve(opened_source, settings, called=name)
    used, schedule = sharding_used(resolved, settings), _completed(resolved, settings)
    costs, limits = settings.costs(schedule.placement), settings.limits(schedule.placement)
    simulation = simulate_schedule(schedule, costs, communication=settings.communication, limits=limits)
    warnings, notes = assumed_times(settings, schedule)
    if transfers := transfers_in_words(costs.communication, costs.streams):
        notes = (f"transfers: {transfers}", *notes)
    warnings = (
        *_again(name, opened_source),
        *_padding(settings, schedule),
        *_unused(settings, schedule, costs),
        *warnings,
    )
    notes = (*notes, *_shared(settings, schedule), *_unpaired(settings, schedule, costs))
    return result_of(
        simulation, limits=limits, warnings=warnings, notes=notes, settings=settings, sharding=used or UNSET
    )


def ordered(source: ScheduleLike, settings: Settings, *, called: str | None = None, posted: bool = True) -> Schedule:
    """Return the schedule of a source, checked, and with its communication and collectives.

    With ``posted=False`` the messages of streams are left out: their order depends on the times of the ops.

    Raises PipeplanError for what :func:`simulate` raises it, except for costs that cannot be.
    """
    return _completed(resolve(source, settings, called=called), settings, posted=posted)


def _completed(schedule: Schedule, settings: Settings, *, posted: bool = True) -> Schedule:
    """Return a schedule, checked, and with its communication and collectives."""
    check_schedule(schedule, **messages(settings)).require_valid()
    schedule = sharded(schedule, settings)
    if settings.communication == "streams":
        return post_messages(schedule, settings.costs(schedule.placement)) if posted else schedule
    return _with_communication(schedule) if settings.communication == "blocking" else schedule


def timed(source: ScheduleLike, settings: Settings, *, called: str | None = None) -> Result:
    """Return the result of a timeline with its own times, or of anything else simulated.

    A measured timeline keeps its times; one that was simulated before keeps them unless costs are given.

    Raises InputError for times or transfers in addition to a measured timeline, and for what :func:`simulate` raises it.
    """
    opened_source, name = opened(source), called or label(source)
    if not isinstance(opened_source, Timeline):
        return simulated(opened_source, settings, called=name)
    unused = next((name for name in TIME_SETTINGS if getattr(settings, name) != getattr(Settings(), name)), None)
    if unused is None:
        return as_it_stands(opened_source, settings)
    if opened_source.source == "simulated":
        return simulated(opened_source, settings, called=name)
    raise InputError(
        f"{name} holds a measured timeline, which has its own times: drop {unused}; to simulate "
        "its order of ops on other costs, convert it to a schedule (.csv) first",
        field=unused,
    )


def as_it_stands(timeline: Timeline, settings: Settings) -> Result:
    """Return the result of a timeline with its own times.

    Its costs are the means of its op times, and so its bound is one on these means.

    Raises InvalidScheduleError for ops in an order in which nothing can have run, or of which some are missing.
    """
    require_order(timeline.schedule, dependencies(timeline.schedule))
    placement = resolve(timeline, settings, of_measured=True).placement
    limits = settings.limits(placement)
    costs = settings_measured(timeline, settings).costs(placement)
    return result_of(Simulation(timeline, costs, limits), limits=limits)


def assumed_times(settings: Settings, schedule: Schedule) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return warnings and notes on assumed times: warnings if some times are given, notes if none are."""
    assumed = settings.assumed(schedule)
    return (assumed, ()) if settings.times_given else ((), assumed)


def without_times(settings: Settings) -> Settings:
    """Return the settings without those that a timeline replaces."""
    default = Settings()
    return replace(settings, **{name: getattr(default, name) for name in TIME_SETTINGS})


class MessageRules(TypedDict):
    """Rules of messages, as keywords of :func:`pipeplan.checking.check`."""

    sends: Sends
    streams: Streams | None


def messages(settings: Settings) -> MessageRules:
    """Return the checker's rules of messages: blocking sends wait for their receives; streams run messages in order."""
    sends: Sends = "blocking" if settings.communication == "blocking" else "buffered"
    return {"sends": sends, "streams": settings.transfer_streams}


def _with_communication(schedule: Schedule) -> Schedule:
    """Return the schedule with sends and receives, unless it has them or needs none."""
    if schedule.has(Kind.SEND_F) or not crosses_ranks(schedule, dependencies(schedule).arrival).any():
        return schedule
    from pipeplan.passes import insert_communication

    return insert_communication(schedule)


def _again(name: str, source: Source) -> Iterable[str]:
    """Yield a warning if the source's times are discarded."""
    if isinstance(source, Timeline):
        yield f"{name} holds a timeline that was simulated before: its order is simulated again, on these costs"


def _unused(settings: Settings, schedule: Schedule, costs: Costs) -> Iterable[str]:
    """Yield a warning for each setting of sharded stages, of the host or of slices that has no effect on the schedule."""
    for name, kind in _OF_SHARDED_STAGES.items():
        if getattr(settings, name) is not None and not schedule.has(kind):
            yield f"{name.replace('_', ' ')} have no effect: the schedule has no {kind.name}"
    if settings.gradient_bytes is not None and not costs.memory.in_bytes:
        yield "gradient bytes have no effect: without activation bytes, memory is counted in activations"
    if settings.offload not in ("none", ()) and not schedule.has(Kind.OFFLOAD):
        yield "offload has no effect: no activation is held long enough for both copies"
    if settings.slice_attention is not None and schedule.slices == 1:
        yield "slice attention has no effect: the schedule does not slice sequences"


_OF_SHARDED_STAGES = {
    "unshard_times": Kind.UNSHARD,
    "parameter_bytes": Kind.UNSHARD,
    "reduce_times": Kind.REDUCE_GRAD,
}


def _padding(settings: Settings, schedule: Schedule) -> Iterable[str]:
    """Yield a warning for each list that was made to fit."""
    if not settings.pad_times:
        return
    for name in _PER_STAGE:
        value = getattr(settings, name)
        if isinstance(value, tuple) and len(value) != schedule.stages:
            done = "the last one is repeated" if len(value) < schedule.stages else "the rest is left out"
            yield f"{name.replace('_', ' ')}: {len(value)} values for {schedule.stages} stages; {done}"


def _shared(settings: Settings, schedule: Schedule) -> Iterable[str]:
    """Yield a note on the lists that have a value per rank, where ranks hold several stages."""
    if settings.pad_times or schedule.ranks in (1, schedule.stages):
        return
    lists = (name for name in _PER_STAGE if isinstance(getattr(settings, name), tuple))
    if names := [name.replace("_", " ") for name in lists if len(getattr(settings, name)) == schedule.ranks]:
        yield f"{' and '.join(names)}: one value per rank, not per stage"


def _unpaired(settings: Settings, schedule: Schedule, costs: Costs) -> Iterable[str]:
    """Yield a note on settings of overlapped pairs if the schedule has none, and on communication that nothing hides."""
    if schedule.joined.any():
        return
    names = ["overlap times"] if settings.overlap_times is not None else []
    if not (settings.delayed_weights and schedule.has(Kind.B)):
        names += ["delayed weights"] if settings.delayed_weights else []
        names += ["pair slowdown"] if settings.pair_slowdown is not None else []
        if costs.segments is not None and costs.segments.communication:
            yield f"{costs.segments.communication} in ops is exposed: {_NO_PAIRS}"
    if names:
        yield f"{' and '.join(names)} {'has' if names == ['pair slowdown'] else 'have'} no effect: {_NO_PAIRS}"


_NO_PAIRS = "the schedule overlaps no forward with a backward"

_PER_STAGE = tuple(setting.name for setting in SETTINGS.values() if setting.kind in ("per_stage", "pair_times"))


class Summary(Record, frozen=True, kw_only=True):
    """Figures of one schedule: of its fullest rank and its longest span, where it has one for each rank."""

    placement: str
    chunks: int
    needs: tuple[Need, ...]
    makespan: float
    longest_span: float
    idle_over_total: float
    over_ideal: float
    span_bubble: float
    peak_activation: float
    peak_bytes: float | None
    fits: bool
    lower_bound: float
    gap: float | None

    @classmethod
    def of(cls, result: Result) -> Summary:
        """Return the figures of a result."""
        return cls(
            placement=result.schedule.placement.name,
            chunks=result.chunks,
            needs=result.needs,
            makespan=result.makespan,
            longest_span=result.timeline.longest_span,
            idle_over_total=result.bubble.idle_over_total,
            over_ideal=result.bubble.over_ideal,
            span_bubble=result.bubble.span,
            peak_activation=max(result.peak_activation),
            peak_bytes=None if result.peak_bytes is None else max(result.peak_bytes),
            fits=result.fits,
            lower_bound=result.lower_bound,
            gap=result.gap,
        )
