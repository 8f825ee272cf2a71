"""What a page asks of a search: the settings of its form, where to search, how long, and from what to start."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pipeplan.api.searching.options import AUTO
from pipeplan.api.searching.problems import DEFAULT_CHUNKS
from pipeplan.solver import CHOICES, Choice
from pipeplan.web.requests import FileIn, Name, SettingsIn, Strict

MOST_SECONDS = 60.0
"""The budget of a search here."""

MOST_POINTS = 12
"""Limits of a front here."""

Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS)]
Session = Annotated[str, Field(min_length=1, max_length=80)]
PlacementName: Any = Literal[(AUTO, *DEFAULT_CHUNKS)]


class _Searched(Strict):
    """What every search is told."""

    settings: SettingsIn = SettingsIn()
    placement: PlacementName = Field(
        default=AUTO, description="Which rank holds each stage; auto: every placement that can win."
    )
    objective: Literal["makespan", "span"] = Field(
        default="makespan", description="What should be small; span: the longest rank's own span."
    )
    session: Session = Field(default="", description="Any text of the page's own: it has one search at a time.")


class SearchIn(_Searched):
    """A search for a better schedule under the memory limit of its settings."""

    seconds: Seconds = Field(default=10.0, description="The budget.")
    decide: list[Choice] = Field(
        default=[], max_length=len(CHOICES), description="What is decided beside what every search decides."
    )
    start: list[Name] = Field(default=[], max_length=4, description="Names of schedules to go on from.")
    files: list[FileIn] = Field(default=[], max_length=4, description="Schedules of one's own to go on from.")


class FrontIn(_Searched):
    """A search under each of several memory limits, and under none."""

    seconds: Seconds = Field(default=30.0, description="The budget of the whole front.")
    points: Annotated[int, Field(ge=2, le=MOST_POINTS)] = Field(default=6, description="About how many limits.")
