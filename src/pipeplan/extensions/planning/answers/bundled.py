"""Costs of configurations that come with pipeplan, as a plan predicts them."""

from __future__ import annotations

from pathlib import Path

from pipeplan.costs import Config
from pipeplan.extensions.planning.answers.one_configuration import costs_planned_for
from pipeplan.extensions.planning.flags import read_configuration
from pipeplan.foundation.documents import read_document


def costs_in(path: Path) -> Config:
    """Return the settings of a configuration's costs."""
    return costs_planned_for(*read_configuration(read_document(path, "configuration"), None))
