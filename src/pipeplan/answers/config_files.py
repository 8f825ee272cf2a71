"""Reader of ``--config``: a config file, costs written by ``pipeplan export --to costs``, or the name of bundled costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from pipeplan.costs import SETTINGS, Config, settings_beside, settings_of
from pipeplan.costs import load_config as load_settings
from pipeplan.formats import is_costs_json, parse_costs_json
from pipeplan.foundation.documents import ENDINGS, SIZE_LIMIT
from pipeplan.foundation.errors import InputError, UnknownNameError
from pipeplan.foundation.extensions import required_service, service
from pipeplan.foundation.files import read_text
from pipeplan.foundation.records import Record

Origin = Literal["measured", "planned"]

_ORIGINS: tuple[Origin, ...] = ("measured", "planned")

_ENDING = ".yaml"
_MEASURED = Path(__file__).parent / "profiles"


class BundledCosts(Record, frozen=True, kw_only=True):
    """Costs that come with pipeplan.

    Attributes
    ----------
    name
        Name of the costs, such as ``gpt-6.2b-24``.
    origin
        ``measured`` on GPUs, or ``planned``: predicted from the model's shape and the GPUs' data sheet.
    about
        Model, machine and source, in a sentence or two.
    """

    name: str
    origin: Origin
    about: str


def shipped() -> tuple[BundledCosts, ...]:
    """Return all costs that come with pipeplan, the measured ones first."""
    return tuple(
        BundledCosts(
            name=file.name.removesuffix(_ENDING),
            origin=origin,
            about=_comment(file.read_text(encoding="utf-8")),
        )
        for origin in _ORIGINS
        for file in _files(origin)
    )


def shipped_costs(name: str) -> Config:
    """Return the settings of the costs with this name.

    Those of a configuration are what a plan predicts: the mean of the stages' times, so that schedules with any number of
    chunks can be compared, and what the fullest rank holds besides activations.

    Raises UnknownNameError for an unknown name; the message suggests the nearest one.
    """
    entry = next((candidate for candidate in shipped() if candidate.name == name), None)
    if entry is None:
        raise UnknownNameError("preset", name, [candidate.name for candidate in shipped()], field="preset")
    path = next(file for file in _files(entry.origin) if file.stem == name)
    if entry.origin == "measured":
        return load_settings(path)
    planned: Config = required_service("planning", "costs_of_configuration")(path)
    return planned


def is_shipped(name: str) -> bool:
    """Return whether costs of this name come with pipeplan."""
    return any(file.name == f"{name}{_ENDING}" for origin in _ORIGINS for file in _files(origin))


def load_config(path: Path) -> Config:
    """Read a config file; if there is none of this name, the costs of this name that come with pipeplan.

    Costs are settings with a value for each stage; ``stages`` is then how many there are. Their file also has the other
    settings that they were made from. Without a name they have the file's.

    Raises UnknownNameError for a name that is neither; the message suggests the nearest one. Raises InputError for a file
    that cannot be read; for whatever :func:`pipeplan.costs.config.load_config` raises it.
    """
    if not path.exists() and path.name == str(path):
        if is_shipped(path.name):
            return _named(shipped_costs(path.name), path.name)
        if path.suffix.lower() not in ENDINGS or is_shipped(path.stem):
            names = [candidate.name for candidate in shipped()]
            raise UnknownNameError("config file or bundled costs", path.name, names, field="config")
    if path.suffix.lower() in (".csv", ".txt") and path.is_file():
        raise InputError(
            f"{path} is not a config file: a schedule is an argument, as in 'pipeplan simulate {path}'", field="config"
        )
    if path.suffix.lower() == ".json":
        text = read_text(path, limit=SIZE_LIMIT, what="config file")
        if is_costs_json(text):
            costs = parse_costs_json(text, name=f"config file {path}")
            return _named(Config(settings=settings_of(costs) | settings_beside(costs)), path.stem)
    return _named(load_settings(path), path.stem)


def _named(config: Config, name: str) -> Config:
    """Return the config with a name of its costs, its own or this one."""
    if not any(SETTINGS[setting].timing for setting in config.settings):
        return config
    return replace(config, settings={"costs_name": name, **config.settings})


def _files(origin: Origin) -> list[Path]:
    return [] if (folder := _folder(origin)) is None else sorted(folder.glob(f"*{_ENDING}"))


def _folder(origin: Origin) -> Path | None:
    """Return the folder of bundled costs; those of configurations come with the extension that predicts them."""
    if origin == "measured":
        return _MEASURED
    package = service("planning", "bundled_configurations")
    return None if package is None else Path(package.__path__[0])


def _comment(text: str) -> str:
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)
