"""Compare schedules on the same ranks, microbatches and costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack, cast

from pipeplan.answers.arguments import ScheduleLike, options_and_settings
from pipeplan.answers.comparing.comparison import Comparison, comparison_of_results
from pipeplan.answers.published import (
    Allowed,
    AllowOptions,
    NeedsLike,
    allowed_in_words,
    allowed_needs,
    as_candidate,
    rank,
)
from pipeplan.answers.simulating.result import Result
from pipeplan.answers.simulating.simulate import simulated
from pipeplan.answers.sources import Source, label, opened, same_ranks, settings_for
from pipeplan.costs import Settings
from pipeplan.foundation.errors import InputError, PipeplanError, UnknownNameError
from pipeplan.foundation.records import replaced
from pipeplan.model import Timeline
from pipeplan.strategies import STRATEGIES, Strategy

if TYPE_CHECKING:
    from pipeplan.answers.keywords import CompareKeywords


def compare(*schedules: ScheduleLike | Sequence[ScheduleLike], **options: Unpack[CompareKeywords]) -> Comparison:
    """Compare schedules on the same ranks, microbatches and costs; without schedules, all that are possible.

    All are sorted by what they need (``result.needs``): first those that need nothing but what ``allow`` and the settings
    allow, then those with sequence slices, with two copies of the model, with recomputation. Without ``allow``, schedules
    that are named may need anything.

    Parameters
    ----------
    *schedules
        As ``simulate`` takes them, one by one or in a list; none: every strategy. The first one that is a file
        or an object sets the default ``ranks`` and ``microbatches``.
    **options
        The options of a comparison, and shape and costs. An option that a schedule does not have, such as ``chunks``, is
        left out for it.

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
        For what :func:`pipeplan.simulate` raises it, on the first of the schedules; for schedules of different ranks or
        microbatches; without schedules, if none fits.
    NegativeAnswer
        If there is no schedule under the memory limit.

    Examples
    --------
    >>> table = pipeplan.compare("1f1b", "zbv", ranks=4, microbatches=8)
    >>> table.best.name, table["1f1b"].makespan
    ('zbv', 33.0)
    """
    chosen, settings = options_and_settings(AllowOptions, options)
    return comparison_of(listed_schedules(schedules), settings, allow=chosen.allow)


def listed_schedules(schedules: Iterable[ScheduleLike | Sequence[ScheduleLike]]) -> list[ScheduleLike]:
    """Return schedules, and those of lists among them, in their order. Raises InputError if all lists are empty."""
    listed: list[ScheduleLike] = []
    for entry in schedules:
        listed.extend(entry if isinstance(entry, list | tuple) else [cast("ScheduleLike", entry)])
    if schedules and not listed:
        raise InputError("the list of schedules is empty: leave it out for all", field="schedules")
    return listed


def comparison_of(
    schedules: Sequence[ScheduleLike], settings: Settings, *, allow: NeedsLike | None = None
) -> Comparison:
    """See :func:`compare`."""
    results, refused, allowed = compared(schedules, settings, allow=allow, named=bool(schedules))
    for error in refused.values():
        if not results or (schedules and isinstance(error, InputError)):
            raise error
    comparison = comparison_of_results(
        results,
        allowed,
        refused={name: str(error) for name, error in refused.items()},
        notes=() if schedules else allowed_in_words(settings),
    )
    if not schedules or not refused:
        return comparison
    left_out = (f"{name} is not possible here: {str(error).splitlines()[0]}" for name, error in refused.items())
    return replaced(comparison, headline="; ".join([comparison.headline, *left_out]))


def compared(
    sources: Iterable[ScheduleLike], settings: Settings, *, allow: NeedsLike | None = None, named: bool = True
) -> tuple[list[Result], dict[str, PipeplanError], Allowed]:
    """Return the results, the best first, the error of every other schedule by its name, and what the best one may need.

    Results are sorted by what they need beyond what is allowed, each group from the fastest to those over the limit.
    ``named``: the question names the schedules, and whatever is named may be the best unless the question says otherwise;
    else they are all that there are. See :func:`compare`.
    """
    settings = same_ranks(settings)
    entrants: list[tuple[str, Source]] = []
    results: list[Result] = []
    refused: dict[str, PipeplanError] = {}
    for source in list(sources) or STRATEGIES.values():
        try:
            entrants.append((label(source), opened(source)))
        except PipeplanError as error:
            refused[label(source)] = error
    _require_variant([entrant for _, entrant in entrants], settings.variant)
    settings = with_shape_of([entrant for _, entrant in entrants], settings)
    for name, entrant in entrants:
        try:
            results.append(simulated(entrant, settings_for(entrant, settings), called=name))
        except PipeplanError as error:
            refused[name] = error
    needs = (need for result in results for need in result.needs) if named and allow is None else ()
    allowed = allowed_needs(allow, settings).union(needs)
    return sorted(results, key=lambda result: rank(as_candidate(result), allowed)), refused, allowed


def _require_variant(entrants: Iterable[Source], variant: str | None) -> None:
    """Check that one of the schedules has the variant; the others ignore it."""
    if variant is None:
        return
    variants = {name for entrant in entrants if isinstance(entrant, Strategy) for name in entrant.variants}
    if not variants:
        raise InputError("none of these schedules has variants", field="variant")
    if variant not in variants:
        raise UnknownNameError("variant", variant, variants, field="variant")


def with_shape_of(entrants: Iterable[Source], settings: Settings) -> Settings:
    """Return the settings with the ranks and microbatches of the first schedule that has its own, unless they are set."""
    for entrant in entrants:
        if not isinstance(entrant, Strategy):
            schedule = entrant.schedule if isinstance(entrant, Timeline) else entrant
            ranks = schedule.ranks if settings.ranks is None else settings.ranks
            microbatches = settings.microbatch_count or schedule.microbatches
            return replace(settings, ranks=ranks, microbatches=microbatches)
    return settings
