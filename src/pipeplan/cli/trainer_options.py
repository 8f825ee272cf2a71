"""The options of what a trainer must know beside the schedule, made from :class:`~pipeplan.formats.Training`."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from typing import Any

from cyclopts import Group, Parameter

from pipeplan.cli.options import option_of
from pipeplan.formats import TRAINING_NAMES, TRAINING_SETTINGS

_GROUP = Group("Settings of a trainer", sort_key=5)

_GivenTraining: Any = make_dataclass(
    "_GivenTraining",
    [(name, option_of(TRAINING_SETTINGS[name], _GROUP), None) for name in TRAINING_NAMES],
    frozen=True,
    kw_only=True,
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TrainerOptions(_GivenTraining):  # type: ignore[misc]
    """What is said of a training: a field for each, None where the command line does not say."""

    def given(self) -> dict[str, Any]:
        """What the command line gives."""
        said = {name: getattr(self, name) for name in TRAINING_NAMES}
        return {name: value for name, value in said.items() if value is not None}
