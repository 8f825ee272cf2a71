"""What the page of plans asks: the settings of a plan as JSON, made from their table, and one configuration of an answer."""

from __future__ import annotations

from typing import Any

from pydantic import Field, create_model

from pipeplan.api.planning.planned import PLAN_SETTINGS
from pipeplan.web.requests import FileIn, Strict, setting_field

_FIELDS: dict[str, Any] = {
    setting.name: setting_field(setting) for setting in PLAN_SETTINGS.values() if setting.in_form
}
_GivenPlan: Any = create_model("_GivenPlan", __base__=Strict, **_FIELDS)


class PlanSettingsIn(_GivenPlan):  # type: ignore[misc]
    """What to plan, by the names of the command line; what is left out has its default."""


class PlanIn(Strict):
    """What to plan."""

    settings: PlanSettingsIn = PlanSettingsIn()
    model_file: FileIn | None = Field(
        default=None, description="A model hub's config.json, in place of a model's name."
    )


class ChosenIn(Strict):
    """A configuration to look at."""

    document: dict[str, Any] = Field(description="As a plan's answer has it under `document`, and a file of one's own.")
