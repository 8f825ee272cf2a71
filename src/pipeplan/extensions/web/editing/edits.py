"""Edits of a schedule as text: validity, cost, and reasons for failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeplan.answers.checking import memory_rule
from pipeplan.answers.simulating.result import Result
from pipeplan.answers.simulating.simulate import messages, simulated
from pipeplan.checking import check as check_schedule
from pipeplan.costs import Settings
from pipeplan.extensions.web.editing.edit_texts import MOST_FLAWS, EditedShape, EditText, Flaw, read_edit
from pipeplan.extensions.web.editing.stopped_runs import StoppedRun, stopped_run
from pipeplan.foundation.errors import InvalidScheduleError, PipeplanError, ShapeError
from pipeplan.foundation.readable import Times, change
from pipeplan.foundation.records import Evidence, Record, holding, replaced
from pipeplan.model import Schedule, format_schedule
from pipeplan.simulation import Cause, cause_of_delay

_SHAPE_SETTINGS = (
    "ranks",
    "stages",
    "microbatches",
    "chunks",
    "slices",
    "group_size",
    "variant",
    "recompute",
    "offload",
)
"""The settings that the text itself answers."""


class Edit(Record, frozen=True, kw_only=True, eq=False):
    """Verdict on a text.

    Attributes
    ----------
    valid
        True if the schedule runs.
    shape
        The shape that it is judged by.
    flaws
        Flaws that keep it from running, at most ``MOST_FLAWS``; empty if it runs.
    more
        Number of further flaws.
    over
        The ops at which ranks exceed their memory limit.
    result
        Figures of the schedule; None if it does not run.
    stopped
        Partial run of an invalid schedule; None if it runs, or if nothing of it can be drawn.
    notes
        Further notes, a sentence each.
    """

    valid: bool
    flaws: tuple[Flaw, ...] = ()
    more: int = 0
    over: tuple[Flaw, ...] = ()
    notes: tuple[str, ...] = ()
    shape: EditedShape | None
    result: Result | None = None
    stopped: StoppedRun | None = None

    schedule = Evidence[Schedule | None]()
    """Its schedule; None if some words are not ops."""


def text_of(schedule: Schedule) -> str:
    """Return the text that an edit begins with: one line per rank."""
    return format_schedule(schedule)


def edited(text: str, settings: Settings, *, shape: EditedShape | None = None, name: str = "edited") -> Edit:
    """Return whether a schedule's text is valid, its times and flaws; flaws are reported, never raised.

    Parameters
    ----------
    text
        One row of ops per line; see :mod:`pipeplan.formats.rows`.
    settings
        Costs and memory limit; the shape is the text's own.
    shape
        Shape of the edited schedule. A text that is only valid for the shape implied by its numbers has that one.
    name
        Name of its schedule.
    """
    default = Settings()
    settings = replace(settings, **{name: getattr(default, name) for name in _SHAPE_SETTINGS})
    read = read_edit(text, ranks=None if shape is None else shape.placement.ranks)
    if read.flaws or not any(map(len, read.ops)):
        flaws = [*read.flaws, *(() if shape is None else read.out_of_shape(shape))] or [_EMPTY]
        return _refused(shape, flaws)
    if shape is not None:
        edit = _judged(read, shape, settings, name)
        return edit if edit.valid else _by_its_own_shape(read, shape, settings, name) or edit
    try:
        return _judged(read, read.own_shape(), settings, name)
    except (InvalidScheduleError, ShapeError) as error:
        return _refused(None, [Flaw("placement", str(error), ())])


_EMPTY = Flaw("notation", "there are no ops: type them as 0F0 0B0, a line for each rank", ())


def _refused(shape: EditedShape | None, flaws: Sequence[Flaw]) -> Edit:
    first, rest = tuple(flaws[:MOST_FLAWS]), flaws[MOST_FLAWS:]
    return holding(Edit(valid=False, flaws=first, more=len(rest), shape=shape), schedule=None)


def _by_its_own_shape(read: EditText, shape: EditedShape, settings: Settings, name: str) -> Edit | None:
    """Return the verdict for the shape implied by the text's numbers; None if it does not run there either."""
    try:
        own = read.own_shape()
        edit = None if own == shape else _judged(read, own, settings, name)
    except PipeplanError:
        return None
    if edit is None or not edit.valid:
        return None
    return replaced(edit, notes=(*edit.notes, f"changed shape: {own.in_words()}"))


def _judged(read: EditText, shape: EditedShape, settings: Settings, name: str) -> Edit:
    outside = [*read.out_of_shape(shape)]
    if len(read.ops) != shape.placement.ranks:
        message = f"{len(read.ops)} lines of ops for {shape.placement.ranks} ranks: expected one line per rank"
        outside.append(Flaw("rows", message, ()))
    if outside:
        return _refused(shape, outside)
    schedule = read.schedule(shape, name)
    report = check_schedule(schedule, memory=memory_rule(schedule, settings), **messages(settings))
    wrong = [problem for problem in report.problems if problem.rule != "memory"]
    over = [problem for problem in report.problems if problem.rule == "memory"]
    flaws_over = tuple(read.flaws_of(over, schedule))
    if not wrong:
        try:
            result = simulated(schedule, settings)
        except InvalidScheduleError as error:
            # Right by itself, and stuck with the messages that are put in.
            stuck = (Flaw("deadlock", str(error).partition("\n")[0], ()),)
            return holding(Edit(valid=False, flaws=stuck, over=flaws_over, shape=shape), schedule=schedule)
        return holding(Edit(valid=True, over=flaws_over, shape=shape, result=result), schedule=schedule)
    flaws = read.flaws_of(wrong, schedule)
    return holding(
        Edit(
            valid=False,
            flaws=tuple(flaws[:MOST_FLAWS]),
            more=len(flaws[MOST_FLAWS:]),
            over=flaws_over,
            shape=shape,
            stopped=stopped_run(schedule, settings, wrong, lambda position: read.place(schedule, position)),
        ),
        schedule=schedule,
    )


def change_in_words(before: Result, after: Result) -> str:
    """Return the effect of an edit, and the op that causes it: ``+0.4 (+1.2%): rank 2 now waits for 3B0 ...``."""
    if EditedShape.of(before.schedule) != EditedShape.of(after.schedule):
        return "The shape has changed, so the makespans are not comparable."
    difference = after.makespan - before.makespan
    times = Times.of((difference, before.makespan, after.makespan), after.timeline.unit)
    if times.number(difference) == times.number(0.0):
        return "The makespan is unchanged."
    slower, faster = (after, before) if difference > 0 else (before, after)
    sign = "+" if difference > 0 else ""
    sentence = f"{sign}{times.text(difference)} ({change(difference / before.makespan)})"
    cause = cause_of_delay(slower.timeline, faster.timeline, after.costs)
    return f"{sentence}." if cause is None else f"{sentence}, because {_because(cause, times, slows=difference > 0)}."


def _because(cause: Cause, times: Times, *, slows: bool) -> str:
    by = f"{times.text(cause.later)} {'later' if slows else 'sooner'}"
    behind, again = cause.behind, "now" if slows else "no longer"
    if behind is None:
        return f"{cause.op} on rank {cause.rank} starts {by}"
    if cause.behind_rank == cause.rank:
        verb = "runs" if slows else "has to run"
        return f"rank {cause.rank} {again} {verb} {behind} before {cause.op}, which starts {by}"
    verb = "waits" if slows else "has to wait"
    return f"rank {cause.rank} {again} {verb} for {behind} on rank {cause.behind_rank} before {cause.op}, which starts {by}"
