"""Idle times with their causes, the critical path, and remedies: the function, the record and its table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Unpack, final

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from pipeplan.answers.answers import contents_of
from pipeplan.answers.arguments import ScheduleLike, apart, asked
from pipeplan.answers.explaining.communication import CommunicationInOps, communication_in_ops, in_columns
from pipeplan.answers.explaining.headline import headline_of
from pipeplan.answers.explaining.measured import FittedCosts, on_fitted_costs
from pipeplan.answers.explaining.remedies import NO_REMEDIES, Remedy, remedies
from pipeplan.answers.explaining.sentences import advice_of, ranks_told, sentences_of
from pipeplan.answers.explaining.waits import Wait, longest_waits
from pipeplan.answers.headlined import (
    BRIEF,
    HeadlinedAnswer,
    ShownOptions,
    more_details,
    more_rows,
)
from pipeplan.answers.parts import MOST_ROWS, activations_of, columns, facts, line, notes, shown_ranks, warnings
from pipeplan.answers.published import (
    AllowOptions,
    FasterWithMore,
    NeedsLike,
    allowed_in_words,
    allowed_needs,
    faster_with_more_in_words,
    round_off,
)
from pipeplan.answers.simulating.record import ResultRecord
from pipeplan.answers.simulating.result import (
    SUMMARY_FIELDS,
    Result,
    costs_name,
    idle_times_of,
    view_of_result,
    windows_of,
)
from pipeplan.answers.simulating.simulate import timed
from pipeplan.answers.simulating.table import notes_shown, shape_in_words, warnings_shown
from pipeplan.answers.sources import label, opened
from pipeplan.costs import Settings, options_of
from pipeplan.foundation.readable import Times, change, percent, size_texts
from pipeplan.foundation.records import Evidence, Record, holding
from pipeplan.model import Floats, Reason, Timeline, counted
from pipeplan.simulation import CriticalPath, LocatedWindow, critical_path

if TYPE_CHECKING:
    from pipeplan.answers.keywords import ExplainKeywords
    from pipeplan.answers.parts import Part
    from pipeplan.drawing import View
    from pipeplan.formats import Content, Format

MOST_STAGES = 4
"""Maximum number of listed stages of the critical path."""

_WINDOWS = {
    "first": "to the first backward",
    "trip": "round trip",
    "last": "from the last forward on",
    "owed": "after the last input backward",
}


class Reasons(Record, frozen=True, kw_only=True):
    """Idle time by reason, a list by rank for each reason; then remedies, in figures and in words.

    ``not_tried`` are the schedules that take too long to be tried here. ``fitted_costs``, of a measured timeline, are those
    that remedies are simulated on, and compared with. ``communication`` is that inside ops, if their segments are known.
    ``faster_with_more`` are the best published schedules that need more than is allowed, if they are faster than all others.
    """

    reasons: dict[str, list[float]]
    longest_waits: tuple[Wait | None, ...]
    per_microbatch: float
    critical_path: CriticalPath
    windows: tuple[LocatedWindow, ...]
    what_ifs: tuple[Remedy, ...]
    sentences: tuple[str, ...]
    advice: str
    faster_with_more: tuple[FasterWithMore, ...]
    not_tried: tuple[str, ...]
    fitted_costs: FittedCosts | None
    communication: CommunicationInOps | UnsetType = UNSET


@final
class Explanation(ResultRecord, HeadlinedAnswer, frozen=True, kw_only=True, eq=False):
    """Figures of one schedule, and why its ranks idle.

    ``to_frame()`` has a row per rank, and a column for each reason.
    """

    explain: Reasons

    result = Evidence[Result]()
    """The schedule on its costs, or the timeline as it was measured."""

    @cached_property
    def totals(self) -> Floats:
        """Idle time by rank and reason, shape (ranks, reasons)."""
        return np.array([self.explain.reasons[reason.key] for reason in Reason]).T

    @property
    def per_microbatch(self) -> float:
        """The makespan by the number of microbatches."""
        return self.explain.per_microbatch

    @property
    def what_ifs(self) -> tuple[Remedy, ...]:
        """Changes, each with the makespan it would give: simulated again, not estimated; the best first.

        Those of a measured timeline are simulated on costs fitted to it (``explain.fitted_costs``). Empty for a simulated
        timeline that has its times already.
        """
        return self.explain.what_ifs

    @property
    def helping(self) -> tuple[Remedy, ...]:
        """The changes that help, the best first."""
        return tuple(what for what in self.what_ifs if what.helps)

    @property
    def faster_with_more(self) -> tuple[FasterWithMore, ...]:
        """The best published schedules that need more than is allowed, if they are faster than all others."""
        return self.explain.faster_with_more

    @property
    def waits(self) -> tuple[Wait | None, ...]:
        """The longest wait of every rank between its first op and its last; None if it has none."""
        return self.explain.longest_waits

    @property
    def windows(self) -> tuple[LocatedWindow, ...]:
        """The windows of the result: where its rank must idle under its memory limit."""
        return self.explain.windows

    @property
    def sentences(self) -> tuple[str, ...]:
        """Time per microbatch, then idle time and its causes of each rank; of many ranks, only of the most telling ones."""
        return self.explain.sentences

    @property
    def advice(self) -> str:
        """Recommended next step, in a sentence; empty for a simulated timeline that has its times already."""
        return self.explain.advice

    def _summary_fields(self) -> str:
        return f"""{SUMMARY_FIELDS} explain.sentences explain.advice explain.what_ifs.change explain.what_ifs.makespan
        explain.what_ifs.per_microbatch explain.what_ifs.helps explain.faster_with_more"""

    def _views(self) -> Sequence[View]:
        """Return the result's timeline with the causes of its gaps."""
        return [view_of_result(self.result, reasons=True)]

    def _contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Return the writable contents of the result, with the idle reasons in its record and picture."""
        return {**contents_of(self.result), "record": lambda _: self.to_dict(), "pictures": lambda _: self._views()}

    def _below(self, shown: ShownOptions = BRIEF) -> Iterator[Part]:
        """Return the reasons by rank, the remedies and a recommendation.

        With ``verbose`` also a sentence for each rank, the windows, the critical path, and what does not help.
        """
        times = _format_of_times(self.result, self.what_ifs)
        of_ranks = 1 + len(ranks_told(self.result.timeline.idle))
        yield line(shape_in_words(self.result.schedule, costs_name(self.result)))
        on_bound = 1 if self.windows else 0
        yield from map(line, self.sentences[of_ranks : len(self.sentences) - on_bound])
        if shown.verbose:
            yield line()
            yield from map(line, (*self.sentences[1:of_ranks], *self.sentences[len(self.sentences) - on_bound :]))
        yield line()
        ranks = shown_ranks(self.ranks, self.ranks if shown.all else MOST_ROWS)
        yield _reasons(self, ranks, times)
        yield from more_rows(self.ranks - len(ranks), "rank")
        if shown.verbose and self.windows:
            yield line()
            yield _windows(self.windows, times)
        if shown.verbose:
            yield line()
            yield line("critical path", "bold")
            yield facts(_path(self, times))
        yield line()
        yield from _remedies(self, times, shown)
        skipped = [*_not_tried(self.explain.not_tried)]
        told = [text for text in notes_shown(self.notes, shown) if shown.verbose or text not in skipped]
        if skipped and not shown.verbose:
            yield line(f"{counted(len(self.explain.not_tried), 'schedule')} not tried, because they take too long here")
        yield from notes(told)
        yield from warnings(warnings_shown(self.warnings, self.headline))
        windows = ["the windows of the bound"] if self.windows else []
        details = ["why each rank waits", *windows, "the critical path"]
        details += ["what does not help"] if any(not what.helps for what in self.what_ifs) else []
        yield from more_details([*details, *(["what was not tried"] if skipped else [])], shown)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"rank": rank, "idle": self.idle[rank]}
            | {reason.key: float(row[reason]) for reason in Reason}
            | {title: times[rank] for title, times in in_columns(self.explain.communication).items()}
            for rank, row in enumerate(self.totals)
        ]


def explain(schedule: ScheduleLike | UnsetType = UNSET, /, **options: Unpack[ExplainKeywords]) -> Explanation:
    """Explain why each rank idles, what the critical path consists of, and what would help.

    Parameters
    ----------
    schedule
        Argument of :func:`pipeplan.simulate`; or a timeline, or the traces of a run, which keeps its times:
        measured ones, or simulated ones unless costs are given here. What would help a measured one is simulated on
        costs fitted to it.
    **options
        What recommended schedules may need, and shape and costs. What the explained schedule needs is allowed.

    Other Parameters
    ----------------
    allow
        Needs that the best or recommended schedule may have: slices (attention over earlier slices of a sequence and a
        loss per slice), copies (two copies of the model), recompute; repeatable or comma-separated. Setting slices or
        recompute allows it, too (default: what settings and named schedules need).
    settings, config
        Settings of shape and costs, as a value or a mapping, or in a config file; the other keywords override them. All
        are keywords, too: ``docs/reference/options.md`` lists them.

    Raises
    ------
    InputError
        For times or transfers in addition to a measured timeline, and for what :func:`pipeplan.simulate` raises it.
    PipeplanError
        For what :func:`pipeplan.simulate` raises it.

    Examples
    --------
    >>> explanation = pipeplan.explain("1f1b", ranks=4, microbatches=8, p2p_time=0.5)
    >>> [what.change for what in explanation.helping[:2]]
    ['zb-h2', 'zbv']
    """
    own, keywords = apart(AllowOptions, options)
    return explained(*asked(schedule, keywords), allow=options_of(AllowOptions, own).allow)


def explained(source: ScheduleLike, settings: Settings, *, allow: NeedsLike | None = None) -> Explanation:
    """See :func:`explain`."""
    opened_source = opened(source)
    result = timed(opened_source, settings, called=label(source))
    stands = isinstance(opened_source, Timeline) and result.timeline is opened_source
    order = opened_source.schedule if isinstance(opened_source, Timeline) else opened_source
    idle, windows = idle_times_of(result), windows_of(result)
    streams = result.costs.streams if result.costs.communication == "streams" else None
    totals, waits = idle.totals(result.ranks), longest_waits(result.timeline, idle, streams)
    allowed = allowed_needs(allow, settings).union(result.needs)
    fitted = None
    if stands and result.timeline.source == "measured":
        fitted = on_fitted_costs(result.timeline, settings, result, allowed)
    now, tried = (result, NO_REMEDIES) if fitted is None else (fitted.now, fitted.remedies)
    if not stands:
        tried = remedies(order, settings, result, allowed)
    what_ifs, times = tried.changes, _format_of_times(result, tried.changes)
    communication = communication_in_ops(result)
    explain = Reasons(
        reasons={reason.key: totals[:, reason].tolist() for reason in Reason},
        longest_waits=waits,
        per_microbatch=result.makespan / result.microbatches,
        critical_path=critical_path(result.timeline, result.costs),
        windows=windows,
        what_ifs=what_ifs,
        sentences=sentences_of(result, totals, waits, windows, communication, what_ifs=what_ifs, times=times),
        advice=advice_of(now, what_ifs, times),
        faster_with_more=tried.faster_with_more,
        not_tried=tried.left_out,
        fitted_costs=None if fitted is None else fitted.costs,
        communication=communication,
    )
    figures = msgspec.structs.asdict(result)
    figures["headline"] = headline_of(result, totals, what_ifs, times, now=now)
    if what_ifs:
        figures["notes"] = (*allowed_in_words(settings), *_not_tried(tried.left_out), *result.notes)
    return holding(Explanation(**figures, explain=explain), result=result)


def _not_tried(names: Sequence[str]) -> Iterator[str]:
    """Yield a note on the schedules that are left out, because they have too many ops."""
    if names:
        yield f"not tried, because they take too long here: {', '.join(names)}"


def _format_of_times(result: Result, what_ifs: Sequence[Remedy]) -> Times:
    return Times.of([result.makespan, *(what.makespan for what in what_ifs)], result.time_unit)


def _reasons(explanation: Explanation, shown: Sequence[int], times: Times) -> Part:
    """Return the table of idle time by rank and reason, without reasons that never occur; then of communication in ops."""
    totals = explanation.totals
    occurring = [reason for reason in Reason if totals[:, reason].any()]
    unit, in_ops = f" ({times.unit})" if times.unit else "", in_columns(explanation.explain.communication)
    titles = [*(reason.key for reason in occurring), *(title.replace(" ", "\n", 1) for title in in_ops)]
    table = columns("rank", f"idle{unit}", *titles, padding=1)
    for place, rank in enumerate(shown):
        if place and rank != shown[place - 1] + 1:
            table.add_row("...")
        idle = explanation.idle[rank]
        parts = times.parts(float(totals[rank, reason]) for reason in occurring)
        table.add_row(str(rank), times.number(idle), *parts, *(times.number(own[rank]) for own in in_ops.values()))
    shares = totals.sum(axis=0) / max(float(totals.sum()), 1e-300)
    table.add_row("all", percent(1.0 if occurring else 0.0), *(percent(float(shares[reason])) for reason in occurring))
    return table


def _path(explanation: Explanation, times: Times) -> list[tuple[str, str]]:
    path, makespan = explanation.explain.critical_path, explanation.makespan
    between = "transfers and waiting" if path.overhead else "between ops"
    named = list(path.by_kind.items())
    named += [("gaps between ops", path.overhead)] if path.overhead else []
    named.append((between, path.transfer))
    numbers = times.parts(time for _, time in named)
    rows = [
        (name, f"{number}  ({percent(time / makespan)})") for (name, time), number in zip(named, numbers, strict=True)
    ]
    longest = sorted(enumerate(path.by_stage), key=lambda stage: -stage[1])[:MOST_STAGES]
    stages = [f"{stage} ({percent(time / makespan)})" for stage, time in longest if time]
    return [*rows, ("stages", ", ".join(stages))]


def _remedies(explanation: Explanation, times: Times, shown: ShownOptions) -> Iterator[Part]:
    if not explanation.what_ifs:
        yield line("what-ifs need a schedule and its costs, since they are simulated")
        return
    if (fitted := explanation.explain.fitted_costs) is not None:
        yield line(fitted.sentence)
    helping = explanation.helping
    listed = helping if shown.all else helping[: MOST_ROWS - 1]
    if helping:
        yield _helping(explanation, listed, times)
        yield from more_rows(len(helping) - len(listed), "more change")
    rest = [what.change for what in explanation.what_ifs if not what.helps]
    if rest and (shown.verbose or not helping):
        yield line(f"{'also tried, without gain' if helping else 'tried, without gain'}: {', '.join(rest)}")
    yield line(explanation.advice)
    if faster := explanation.faster_with_more:
        fits = any(what.fits for what in explanation.what_ifs if what.kind == "schedule") or explanation.fits
        every = [*(more.value for more in faster), *(what.makespan for what in explanation.what_ifs)]
        yield line(faster_with_more_in_words(faster, Times.of(every, explanation.time_unit), fits=fits))


def _helping(explanation: Explanation, helping: Sequence[Remedy], times: Times) -> Part:
    """Return the table of remedies and the current schedule: makespan, time per microbatch, peak memory."""
    in_bytes, fitted = helping[0].peak_bytes is not None, explanation.explain.fitted_costs
    now = explanation.makespan if fitted is None else fitted.makespan
    now_each = now / explanation.microbatches
    share_times = Times.of([now_each, *(what.per_microbatch for what in helping)], explanation.time_unit)
    units = [f"\n({form.unit})" if form.unit else "" for form in (times, share_times)]
    peak = "peak\nmemory" if in_bytes else "peak\nact."
    step, share_of_step = f"makespan{units[0]}", f"per microbatch{units[1]}"
    table = columns("what would help", step, share_of_step, "change", peak, padding=1, least=(step, peak))
    peaks = (size_texts if in_bytes else activations_of)([explanation.result.peak, *(what.peak for what in helping)])
    mark = "" if explanation.fits else " !"
    table.add_row(
        f"({'now' if fitted is None else 'this order'}){mark}",
        times.number(now),
        share_times.number(now_each),
        "",
        peaks[0],
    )
    for what, held in zip(helping, peaks[1:], strict=True):
        share = round_off(what.per_microbatch) / round_off(now_each) - 1
        table.add_row(
            what.change, times.number(what.makespan), share_times.number(what.per_microbatch), change(share), held
        )
    return table


def _windows(windows: Sequence[LocatedWindow], times: Times) -> Part:
    """Return the table of windows, a row per kind with the least and the most of them."""
    unit = f" ({times.unit})" if times.unit else ""
    table = columns("windows", f"between{unit}", "long,\nat least", "idle,\nat least", "idle\nhere", padding=1)
    for kind, group in groupby(windows, key=lambda window: window.kind):
        alike = list(group)
        title = _WINDOWS[kind] if len(alike) == 1 else counted(len(alike), _WINDOWS[kind])
        values = [window.idle for window in alike]
        least, most = times.number(min(values)), times.number(max(values))
        table.add_row(
            title,
            f"{times.number(alike[0].start)} to {times.number(alike[-1].end)}",
            times.number(alike[0].least_length),
            times.number(alike[0].least_idle),
            least if least == most else f"{least} to {most}",
        )
    return table
