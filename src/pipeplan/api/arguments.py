"""What the functions of the public API take: schedules in any form, and settings by name, from keywords and a file."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import cast

from msgspec import UNSET, UnsetType

from pipeplan.api.results import Result
from pipeplan.costs import Config, Settings, SettingsGiven, merged, settings_from, settings_given
from pipeplan.errors import InputError
from pipeplan.files import path_of
from pipeplan.model import Schedule, Timeline

ScheduleLike = str | os.PathLike[str] | Schedule | Timeline | Result
"""A strategy's name, a file that holds a schedule or a timeline, or one of these itself."""

DEFAULT_SCHEDULE = "1f1b"


class Given(SettingsGiven, total=False):
    """The settings as keywords, and ``config``: a file with some of them, which the keywords override."""

    config: str | os.PathLike[str] | None


def settings_of(given: Given) -> Settings:
    """Settings from keywords and their config file, names and types checked.

    Raises
    ------
    UnknownNameError
        For an unknown name; the message suggests the nearest one.
    InputError
        For a value of the wrong type, and a config file that cannot be read or understood.
    """
    return _laid_over(_config(given), given)


def asked(schedule: ScheduleLike | UnsetType, given: Given) -> tuple[ScheduleLike, Settings]:
    """The schedule that is meant and the settings; without one it is the config file's, else ``1f1b``.

    Raises what :func:`settings_of` does, and InputError for None, which stands for no schedule.
    """
    if schedule is None:
        raise InputError(
            "a schedule is a name, a file, a schedule or a timeline, not None; leave it out for 1f1b",
            field="schedule",
        )
    config = _config(given)
    meant = config.schedule or DEFAULT_SCHEDULE if schedule is UNSET else schedule
    return meant, _laid_over(config, given)


def _config(given: Given) -> Config:
    path = given.get("config")
    if path is None:
        return Config()
    from pipeplan.api.config_files import load_config

    return load_config(path_of(path, "the config file", field="config"))


def _laid_over(config: Config, given: Given) -> Settings:
    keywords = {name: value for name, value in given.items() if name != "config"}
    return merged(config.settings, settings_given(keywords)) if config.settings else settings_from(keywords)


def as_keywords(settings: Settings) -> Given:
    """Settings as the keywords that give them: those that are not the default."""
    default = Settings()
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return cast("Given", {name: value for name, value in values.items() if value != getattr(default, name)})
