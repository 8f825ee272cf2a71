"""What the form of the page of plans is made of, and the colours of what the page shows."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, Field

from pipeplan.api import gpus, models
from pipeplan.api.planning.planned import PlanOptions
from pipeplan.costs import table_of
from pipeplan.drawing import DARK, LIGHT, MEMORY_SHARES, TIME_SHARES, Share
from pipeplan.web.form import FieldOut, GroupOut, field_of, groups_of

_NODES = 8
"""Of the clusters that are suggested."""


class ShareOut(BaseModel):
    """A part of a bar."""

    key: str = Field(description="As in `breakdown`, without its unit.")
    title: str
    light: str = Field(description="Its colour on a light page.")
    dark: str


class PlanFormOut(BaseModel):
    """All groups and fields, in their order, and what time is spent on and memory held by."""

    groups: list[GroupOut]
    fields: list[FieldOut]
    time: list[ShareOut]
    memory: list[ShareOut]


def plan_form() -> PlanFormOut:
    """The form, made from the table of a plan's settings."""
    suggestions = {
        "model": [each.name for each in models()],
        "cluster": [f"{each.gpu.name}:{each.node.per_node}x{_NODES}" for each in gpus()],
    }
    settings = [setting for setting in table_of(PlanOptions).values() if setting.in_form]
    return PlanFormOut(
        groups=groups_of(settings),
        fields=[field_of(setting, suggestions.get(setting.name, ())) for setting in settings],
        time=_shares(TIME_SHARES),
        memory=_shares(MEMORY_SHARES),
    )


def _shares(shares: Mapping[str, Share]) -> list[ShareOut]:
    return [
        ShareOut(key=key, title=share.title, light=share.colour(LIGHT), dark=share.colour(DARK))
        for key, share in shares.items()
    ]
