"""The options of what a trainer must know beside the schedule, made from :class:`~pipeplan.formats.Training`."""

from __future__ import annotations

from dataclasses import dataclass, fields, make_dataclass
from typing import Annotated, Any

from cyclopts import Group, Parameter

from pipeplan.formats import TRAINING_NAMES, Training

_GROUP = Group("Settings of a trainer", sort_key=5)


def _option_of(name: str) -> Any:
    about = next(each for each in fields(Training) if each.name == name)
    held = str if "str" in str(about.type) else int
    flags = (f"--{name.replace('_', '-')}", *about.metadata["flags"])
    return Annotated[held | None, Parameter(name=flags, help=about.metadata["help"], group=_GROUP, show_default=False)]


_GivenTraining: Any = make_dataclass(
    "_GivenTraining", [(name, _option_of(name), None) for name in TRAINING_NAMES], frozen=True, kw_only=True
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TrainerOptions(_GivenTraining):  # type: ignore[misc]
    """What is said of a training: a field for each, None where the command line does not say."""

    def given(self) -> dict[str, Any]:
        """What the command line gives."""
        said = {name: getattr(self, name) for name in TRAINING_NAMES}
        return {name: value for name, value in said.items() if value is not None}
