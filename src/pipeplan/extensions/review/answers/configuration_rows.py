"""Configurations in trainers' files, as estimates take them."""

from __future__ import annotations

from pathlib import Path

from pipeplan.extensions.planning.answers.estimates import ConfigurationRow
from pipeplan.extensions.review import NotSet, Reading, configured, missing_facts, read_configurations
from pipeplan.foundation.errors import PipeplanError


def configuration_rows(path: Path, *, may_be_own: bool) -> tuple[ConfigurationRow, ...]:
    """Return the configurations in a trainer's file, or in a plan's answer.

    Parameters
    ----------
    may_be_own
        Whether the file may be one of pipeplan's own, which has no rows here: its reader says what is missing.

    Raises
    ------
    PipeplanError
        If it cannot be read as a trainer's file, and is none of pipeplan's own.
    """
    try:
        readings = read_configurations(path)
    except PipeplanError:
        if may_be_own:
            return ()
        raise
    return tuple(map(_row, readings))


def _row(reading: Reading) -> ConfigurationRow:
    name = reading.facts.name or Path(reading.source.file).name
    try:
        made = configured(reading.facts)
    except NotSet:
        return ConfigurationRow(id=name, refused=missing_facts(reading.facts))
    return ConfigurationRow(
        id=name,
        model=made.model,
        cluster=made.cluster,
        configuration=made.configuration,
        assumed=made.assumed,
    )
