"""Requests about a schedule that the user edits."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeplan.api import EditedShape
from pipeplan.web.requests import Name, SettingsIn, Strict

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
        """Return the same for the workbench. Raises ShapeError where it cannot be."""
        shape = EditedShape(tuple(map(tuple, self.placement)), self.microbatches, self.slices)
        shape.placement  # noqa: B018 - raises for ranks that no placement has
        return shape


class EditIn(Strict):
    """A text to judge."""

    settings: SettingsIn = Field(default=SettingsIn(), description="Costs and memory limit; the shape is the text's.")
    name: Name = "edited"
    rows: _Text = Field(description="A line a rank, ops apart by blanks.")
    shape: EditShapeIn | None = Field(default=None, description="Null: it is read off the text.")
    before: _Text | None = Field(default=None, description="The rows before the last change, to say what that did.")
    draw: bool = Field(default=True, description="Whether to answer the timeline.")
