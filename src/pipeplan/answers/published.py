"""The best published schedule of a question, and what would be faster with more: every answer asks here.

A published schedule is what a strategy generates from the settings of a question, with its defaults for what they leave
open. It takes part whatever it needs of the model and the trainer (``needs``); the best one is the fastest
of those that need nothing but what the question allows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pipeplan.costs import Options, Settings, names_of, option
from pipeplan.foundation.errors import UnknownNameError
from pipeplan.foundation.readable import Times
from pipeplan.foundation.records import Record
from pipeplan.model import NEEDS, Need, counted_either, needs_in_words, tolerances

if TYPE_CHECKING:
    from pipeplan.answers.simulating.result import Result

NeedsLike = str | Iterable[str]
"""Names of needs, or one text with commas between them."""


@dataclass(frozen=True, kw_only=True)
class AllowOptions(Options):
    """Needs that the best published schedule may have."""

    allow: NeedsLike | None = option(
        kind="names",
        group="choosing",
        usual=False,
        choices=NEEDS,
        default="what settings and named schedules need",
        help="Needs that the best or recommended schedule may have: slices (attention over earlier slices of a sequence and "
        "a loss per slice), copies (two copies of the model), recompute; repeatable or comma-separated. Setting slices or "
        "recompute allows it, too.",
        hint="What the best schedule may need: slices, copies, recompute.",
    )


class FasterWithMore(Record, frozen=True, kw_only=True):
    """A published schedule that is faster than the answer, and needs more than the question allows.

    ``value`` is its makespan; in a search, its objective.
    """

    schedule: str
    value: float
    needs: tuple[Need, ...]


Allowed = frozenset[Need]
"""Needs that a question allows."""


def allowed_needs(allow: NeedsLike | None = None, settings: Settings | None = None) -> Allowed:
    """Return the needs that a question allows: by name, or by settings that slice sequences or recompute.

    Raises UnknownNameError for any other name.
    """
    allowed: set[Need] = set()
    for name in names_of(allow or ()):
        match = next((need for need in NEEDS if need == name.lower()), None)
        if match is None:
            raise UnknownNameError("need", name, NEEDS, field="allow")
        allowed.add(match)
    return frozenset(allowed | {need for need, _ in _set_by(settings)})


def _set_by(settings: Settings | None) -> Iterator[tuple[Need, str]]:
    """Yield the needs that settings allow, with the setting."""
    if settings is None:
        return
    if (settings.slices or 1) > 1:
        yield "slices", f"slices {settings.slices}"
    if settings.recompute not in ("none", ()):
        stages = settings.recompute
        yield "recompute", f"recompute {stages if isinstance(stages, str) else ','.join(map(str, stages))}"


def allowed_in_words(settings: Settings) -> tuple[str, ...]:
    """Return a note for each setting that allows a need."""
    return tuple(f"{text} allows schedules that need {needs_in_words([need])}" for need, text in _set_by(settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCandidate:
    """A published schedule as the best one is chosen by it: what it needs, whether it fits, its value and peak memory."""

    name: str
    needs: tuple[Need, ...]
    fits: bool
    value: float
    peak: float


def as_candidate(result: Result) -> PublishedCandidate:
    """Return the result of a published schedule as a candidate for the best one."""
    return PublishedCandidate(
        name=result.name, needs=result.needs, fits=result.fits, value=result.makespan, peak=result.peak
    )


_Source = TypeVar("_Source")

Rank = tuple[int, tuple[int, ...], bool, float, float, str]


def missing(needs: Collection[Need], allowed: Allowed) -> tuple[Need, ...]:
    """Return the needs that a question does not allow."""
    return tuple(need for need in NEEDS if need in needs and need not in allowed)


def rank(candidate: PublishedCandidate, allowed: Allowed) -> Rank:
    """Return the place of a schedule among others, for sorting.

    Those that need nothing more than is allowed come first, then one group of needs after the other. In a group, schedules
    over the memory limit come last, and of equally fast ones the leaner is first, of equal ones the first by name.
    """
    more = missing(candidate.needs, allowed)
    groups = tuple(NEEDS.index(need) for need in more)
    return len(more), groups, not candidate.fits, round_off(candidate.value), round_off(candidate.peak), candidate.name


def round_off(figure: float) -> float:
    """Round a time or a size so that equal ones compare equal."""
    return float(f"{figure:.12g}")


def best_published(
    sources: Iterable[_Source], allowed: Allowed, candidate_of: Callable[[_Source], PublishedCandidate]
) -> _Source | None:
    """Return the fastest schedule within the memory limit that needs nothing more than is allowed; None without any."""
    ranked = [(rank(candidate, allowed), source) for source in sources if (candidate := candidate_of(source)).fits]
    eligible = [(place, source) for place, source in ranked if place[0] == 0]
    return min(eligible, key=lambda pair: pair[0])[1] if eligible else None


def faster_with_more(
    candidates: Iterable[PublishedCandidate], allowed: Allowed, than: float | None
) -> tuple[FasterWithMore, ...]:
    """Return the best schedule within the limit of each group of further needs, the fastest first.

    Only those that are faster than ``than`` count, unless it is None: the question has no answer within the limit then.
    """
    best: dict[tuple[Need, ...], PublishedCandidate] = {}
    for candidate in sorted(candidates, key=lambda candidate: rank(candidate, allowed)):
        if candidate.fits and (more := missing(candidate.needs, allowed)):
            best.setdefault(more, candidate)
    shorter = [
        candidate for candidate in best.values() if than is None or candidate.value < than * (1 - tolerances.ROUNDING)
    ]
    return tuple(
        FasterWithMore(schedule=candidate.name, value=candidate.value, needs=candidate.needs)
        for candidate in sorted(shorter, key=lambda candidate: (round_off(candidate.value), candidate.peak))
    )


def faster_with_more_in_words(faster: Sequence[FasterWithMore], times: Times, *, fits: bool = True) -> str:
    """Return one sentence: ``Faster with more: mepipe, 0.972 s, needs sequence slices.``; empty without any."""
    if not faster:
        return ""
    clauses = (f"{more.schedule}, {times.text(more.value)}, needs {needs_in_words(more.needs)}" for more in faster)
    return f"{'Faster' if fits else 'Within the memory limit'} with more: {'; '.join(clauses)}."


def kind_in_words(allowed: Collection[Need], slices: Collection[int]) -> str:
    """Return which schedules need nothing more than is allowed, for bounds that hold for these alone.

    ``slices`` are the numbers of slices that are covered where these are allowed.
    """
    parts = [
        *([] if "copies" in allowed else ["with one copy of the model"]),
        f"in {counted_either(slices, 'slice')}" if set(slices) - {1} else "without slices",
        *([] if "recompute" in allowed else ["without recomputation"]),
    ]
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if parts[1:] else parts[0]
