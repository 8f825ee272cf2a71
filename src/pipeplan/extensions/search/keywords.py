"""Keywords of functions, as type checkers see them; made by ``python -m docs.build.options --write``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.answers.keywords import AllowOptionsKeywords
from pipeplan.costs import SettingsKeywords

if TYPE_CHECKING:
    from pipeplan.answers.arguments import ScheduleLike
    from pipeplan.extensions.search.answers.options import LayoutChoice, Names
    from pipeplan.model import Objective


class ScheduleSearchOptionsKeywords(AllowOptionsKeywords, total=False):
    """Keywords of ScheduleSearchOptions."""

    placement: str
    seconds: float | None
    seed: int
    workers: int | None
    full_backward: bool
    leave: Names
    objective: Objective
    evaluations: int | None
    start: ScheduleLike | list[ScheduleLike] | tuple[ScheduleLike, ...]
    decide: Names


class SearchOptionsKeywords(ScheduleSearchOptionsKeywords, total=False):
    """Keywords of SearchOptions."""

    layout: LayoutChoice | None


class ParetoOptionsKeywords(ScheduleSearchOptionsKeywords, total=False):
    """Keywords of ParetoOptions."""

    points: int


class SearchKeywords(SettingsKeywords, SearchOptionsKeywords, total=False):
    """Options and settings of :func:`pipeplan.search`."""


class ParetoKeywords(SettingsKeywords, ParetoOptionsKeywords, total=False):
    """Options and settings of :func:`pipeplan.pareto`."""
