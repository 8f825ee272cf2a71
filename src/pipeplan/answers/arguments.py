"""Arguments of the public API: schedules in any form, options, and settings from keywords and a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import UnsetType

from pipeplan.answers.simulating.result import Result
from pipeplan.costs import (
    ALIASES,
    SETTING_NAMES,
    Config,
    Options,
    Settings,
    SettingsKeywords,
    options_of,
    parse_config,
    table_of,
)
from pipeplan.foundation.errors import InputError, UnknownNameError
from pipeplan.foundation.files import path_of
from pipeplan.foundation.names import ScheduleName
from pipeplan.model import Schedule, Timeline, shortened
from pipeplan.strategies import Strategy

ScheduleLike = ScheduleName | str | os.PathLike[str] | Schedule | Timeline | Result | Strategy
"""A strategy or its name, a file that holds a schedule or a timeline, or one of these itself."""

DEFAULT_SCHEDULE = "1f1b"

_Record = TypeVar("_Record", bound=Options)


def options_and_settings(record: type[_Record], keywords: Mapping[str, Any]) -> tuple[_Record, Settings]:
    """Return the options of a function and the settings among its keywords."""
    options, settings = apart(record, keywords)
    return options_of(record, options), configured(settings)[1]


def apart(record: type[Options], keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keywords of a record's options, and those of settings. Raises UnknownNameError for any other."""
    own = table_of(record)
    names = (*own, *SETTING_NAMES, "settings", "config", *ALIASES)
    for name in keywords:
        if name not in names:
            raise UnknownNameError("option", name, names, field=name)
    return (
        {name: value for name, value in keywords.items() if name in own},
        {name: value for name, value in keywords.items() if name not in own},
    )


def configured(keywords: Mapping[str, Any] | SettingsKeywords) -> tuple[Config, Settings]:
    """Return the content of the config file among the keywords, and the settings: a keyword overrides its base.

    The base is a value, a mapping or a file as ``settings``, or a file as ``config``.
    """
    values = dict(keywords)
    base, file = values.pop("settings", None), values.pop("config", None)
    if base is file is None:
        return Config(), _with_counts(Settings(**values))
    if None not in (base, file):
        raise InputError("settings and config both name settings to start from: pass only one of them", field="config")
    config, settings = (Config(), base) if isinstance(base, Settings) else _base(base, file)
    return config, _with_counts(settings.replace(**values) if values else settings)


NO_OVERRIDES: Mapping[str, Any] = MappingProxyType({})
"""Options of a call whose settings all come from elsewhere."""


def require_used(overrides: Mapping[str, Any], unused: Iterable[str], reason: str) -> None:
    """Raise InputError for an option of one call that has no effect on it.

    A config file, or a value as ``settings``, may have the option: several commands share them.
    """
    names = {ALIASES.get(name, name) for name, value in overrides.items() if value is not None}
    for name in unused:
        if name in names:
            raise InputError(f"{name} has no effect here: {reason}; drop {name}", field=name)


def _with_counts(settings: Settings) -> Settings:
    """Return settings with numbers of layers in place of a trainer's text, where layers have costs."""
    if not isinstance(settings.layers_per_stage, str):
        return settings
    from pipeplan.trainers import with_stage_layers  # most calls have no text for the layers

    return with_stage_layers(settings)


def _base(base: Any, file: Any) -> tuple[Config, Settings]:
    """Return the config that one of these names, and its settings."""
    if isinstance(base, Mapping):
        config = parse_config(base, "settings")
    elif base is None or isinstance(base, str | os.PathLike):
        from pipeplan.answers.config_files import load_config  # most calls have no config file

        config = load_config(path_of(file if base is None else base, "the config file", field="config"))
    else:
        raise InputError(
            f"settings must be a pipeplan.Settings, a mapping or a config file, not {shortened(repr(base), 60)}",
            field="settings",
        )
    return config, Settings(**config.settings)


def asked(
    schedule: ScheduleLike | UnsetType | None, keywords: Mapping[str, Any] | SettingsKeywords
) -> tuple[ScheduleLike, Settings]:
    """Return the requested schedule and the settings; the default schedule is the config file's, else ``1f1b``.

    Raises InputError for None.
    """
    if schedule is None:
        raise InputError(
            "a schedule is a name, a file, a strategy, a schedule or a timeline, not None; leave it out for 1f1b",
            field="schedule",
        )
    config, settings = configured(keywords)
    return config.schedule or DEFAULT_SCHEDULE if isinstance(schedule, UnsetType) else schedule, settings
