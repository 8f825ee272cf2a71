"""What the page of plans asks: the settings of a plan as JSON, made from their table, and one configuration of an answer."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, create_model
from pydantic_core import PydanticCustomError

from pipeplan.api.planning.planned import PlanOptions
from pipeplan.costs import table_of
from pipeplan.web.requests import FileIn, Strict, setting_field

_FIELDS: dict[str, Any] = {
    setting.name: setting_field(setting) for setting in table_of(PlanOptions).values() if setting.in_form
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


_DEEPEST = 16
"""Groups within groups of a configuration; it has four."""

_MOST_VALUES = 50_000
"""Values of a configuration, layouts included."""


def _small(document: Any) -> Any:
    """A document of no more values, nested no deeper, than it can mean: it is to be copied, and sent to a process."""
    level: list[Any] = [document] if isinstance(document, (dict, list)) else []
    values = 0
    for _ in range(_DEEPEST):
        values += sum(map(len, level))
        if values > _MOST_VALUES:
            raise PydanticCustomError("values", f"holds more than {_MOST_VALUES:,} values")
        level = [each for group in level for each in (group.values() if isinstance(group, dict) else group)]
        level = [each for each in level if isinstance(each, (dict, list))]
        if not level:
            return document
    raise PydanticCustomError("depth", f"holds more than {_DEEPEST} groups within groups")


class ChosenIn(Strict):
    """A configuration to look at."""

    document: Annotated[dict[str, Any], BeforeValidator(_small)] = Field(
        description="As a plan's answer has it under `document`, and a file of one's own."
    )
