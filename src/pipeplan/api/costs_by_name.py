"""Bundled costs: measured profiles, and configurations whose costs are predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pipeplan.costs import Config
from pipeplan.costs import load_config as load_settings
from pipeplan.documents import read_document
from pipeplan.errors import UnknownNameError
from pipeplan.records import Record

Origin = Literal["measured", "planned"]

_FOLDERS: dict[Origin, str] = {"measured": "profiles", "planned": "configurations"}
_ENDING = ".yaml"
_HERE = Path(__file__).parent


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
    """Return all costs that come with pipeplan by name, the measured ones first.

    Raises
    ------
    InputError
        Never: every file of the package is right.
    """
    return tuple(
        BundledCosts(
            name=file.name.removesuffix(_ENDING),
            origin=origin,
            about=_comment(file.read_text(encoding="utf-8")),
        )
        for origin in _FOLDERS
        for file in _files(origin)
    )


def shipped_costs(name: str) -> Config:
    """Return the settings of the costs with this name.

    Those of a configuration are what a plan predicts: the mean of the stages' times, so that schedules with any number of
    chunks can be compared, and what the fullest rank holds besides activations.

    Raises
    ------
    UnknownNameError
        For an unknown name; the message suggests the nearest one.
    """
    entry = next((candidate for candidate in shipped() if candidate.name == name), None)
    if entry is None:
        raise UnknownNameError("preset", name, [candidate.name for candidate in shipped()], field="preset")
    path = _HERE / _FOLDERS[entry.origin] / f"{name}{_ENDING}"
    return load_settings(path) if entry.origin == "measured" else _planned(path)


def is_shipped(name: str) -> bool:
    """Return whether costs of this name come with pipeplan."""
    return any(file.name == f"{name}{_ENDING}" for origin in _FOLDERS for file in _files(origin))


def _files(origin: Origin) -> list[Path]:
    return sorted((_HERE / _FOLDERS[origin]).glob(f"*{_ENDING}"))


def _comment(text: str) -> str:
    """Return the comment at the top of a file."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)


def _planned(path: Path) -> Config:
    from pipeplan.api.planning.one_configuration import planned_costs

    return planned_costs(read_document(path, "configuration"))
