"""What can be asked about a schedule that somebody edits, and what is answered."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from pipeplan.api import EditedShape
from pipeplan.model import Placement
from pipeplan.web.requests import Name, SettingsIn, Strict
from pipeplan.web.responses import ResultOut

TEXT_LIMIT = 4 << 20
"""The most characters that an edited text can have."""

_MOST_STAGES = 20_000
_Text = Annotated[str, Field(max_length=TEXT_LIMIT)]
_Ranks = Annotated[list[int], Field(min_length=1, max_length=_MOST_STAGES, fail_fast=True)]
_Count = Annotated[int, Field(ge=1, le=10**7)]


class EditShapeIn(Strict):
    """The shape of what is edited, as it was answered when the edit began."""

    placement: Annotated[list[_Ranks], Field(min_length=1, max_length=64)] = Field(
        description="The rank of each stage, for each copy of the model."
    )
    microbatches: _Count
    slices: Annotated[int, Field(ge=1, le=32_768)] = 1

    def shape(self) -> EditedShape:
        """The same for the workbench. Raises ShapeError where it cannot be."""
        return EditedShape(Placement.of(*map(tuple, self.placement)), self.microbatches, self.slices)


class EditIn(Strict):
    """A text to judge."""

    settings: SettingsIn = Field(default=SettingsIn(), description="Costs and memory limit; the shape is the text's.")
    name: Name = "edited"
    rows: _Text = Field(description="A line a rank, ops apart by blanks.")
    shape: EditShapeIn | None = Field(default=None, description="Null: it is read off the text.")
    before: _Text | None = Field(default=None, description="The rows before the last change, to say what that did.")
    draw: bool = Field(default=True, description="Whether to answer the timeline.")


class EditShapeOut(BaseModel):
    """The shape of a text."""

    placement: list[list[int]]
    microbatches: int
    slices: int


class EditBeginOut(BaseModel):
    """What an edit begins with."""

    name: str
    rows: str
    shape: EditShapeOut
    ops: int


class FlawOut(BaseModel):
    """One thing that is wrong."""

    rule: str
    message: str
    places: list[list[int]] = Field(description="The words at fault: line and word, from 0.")


class WaitingOut(BaseModel):
    """Where a rank stops for ever."""

    rank: int
    op: str
    message: str
    places: list[list[int]]


class StoppedOut(BaseModel):
    """How far a text runs that is not right."""

    until: float = Field(description="When the last op that runs ends.")
    ran: int
    ops: int
    waiting: list[WaitingOut] = Field(description="Of the first ranks that stop.")


class TrainerOut(BaseModel):
    """Whether a trainer runs it."""

    trainer: str
    format: str
    runs: bool
    reason: str


class EditOut(BaseModel):
    """The verdict on a text."""

    valid: bool
    flaws: list[FlawOut]
    more: int = Field(description="How many more flaws there are.")
    over: list[FlawOut] = Field(description="Where ranks first exceed their memory limit.")
    notes: list[str]
    shape: EditShapeOut | None
    result: ResultOut | None
    changed: str = Field(description="What the last change did and why; empty where nothing is known of before.")
    stopped: StoppedOut | None
    trainers: list[TrainerOut] | None = Field(description="Null where it does not run, or is too large to be tried.")
    timeline: dict[str, Any] | None = Field(description="What mountTimeline takes.")
