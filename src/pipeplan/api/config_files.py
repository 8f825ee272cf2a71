"""Reader of ``--config``: a config file, costs written by ``pipeplan export --to costs``, or the name of bundled costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeplan.api.costs_by_name import is_shipped, shipped_costs
from pipeplan.costs import SETTINGS, Config, settings_of
from pipeplan.costs import load_config as load_settings
from pipeplan.documents import SIZE_LIMIT
from pipeplan.files import read_text
from pipeplan.formats import is_costs_json, parse_costs_json


def load_config(path: Path) -> Config:
    """Read a config file; where there is none of this name, the costs that come with pipeplan under it.

    Costs are settings with a value for each stage; ``stages`` is then how many there are. Without a name they have the
    file's.

    Raises
    ------
    InputError
        For a file that cannot be read; for whatever :func:`pipeplan.costs.config.load_config` raises it.
    """
    if is_shipped(str(path)) and not path.exists():
        return _named(shipped_costs(str(path)), str(path))
    if path.suffix.lower() == ".json":
        text = read_text(path, limit=SIZE_LIMIT, what="config file")
        if is_costs_json(text):
            costs = parse_costs_json(text, name=f"config file {path}")
            return _named(Config(settings=settings_of(costs)), path.stem)
    return _named(load_settings(path), path.stem)


def _named(config: Config, name: str) -> Config:
    """Return the config with a name of its costs, its own or this one."""
    if not any(SETTINGS[setting].timing for setting in config.settings):
        return config
    return replace(config, settings={"costs_name": name, **config.settings})
