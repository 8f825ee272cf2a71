"""Record of a trainer: what its schedules and layouts look like, and where the flags of its plans are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pipeplan.formats import Format
from pipeplan.foundation.errors import InputError
from pipeplan.model import one_line
from pipeplan.trainers.layout import TrainerLayout


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trainer:
    """Trainer that can run a plan or a schedule.

    Attributes
    ----------
    name, title
        Name on the command line, and name in sentences.
    aliases
        Further names that commands take.
    software
        Row of the planner's software table that describes the trainer.
    schedules
        Names of the strategies that it supports; None: it runs any order of ops.
    plans
        Module with the function ``plan_flags``, which returns the settings of a plan, and optionally ``refusal_of``; it is
        imported only for plans. None: the module with the trainer's name in the planner's ``flags``, if there is one.
    formats
        Formats of ``export`` with its settings for a schedule; the first one decides whether it can run a schedule.
    write_layout, parse_layout
        Conversion of a layout to the trainer's text, and back; None if it has no such text. Writing raises ShapeError,
        reading InputError.
    layout_mark
        Regular expression that finds something only in this trainer's layouts.
    package, releases, latest
        Package that is installed, releases of it that the settings support, and the newest one that pip installs; those of
        built-in trainers are in the table of trainers. Without releases, settings are only for the installed release.
    """

    name: str
    title: str
    software: str
    plans: str | None = None
    schedules: frozenset[str] | None = None
    formats: tuple[Format, ...] = ()
    write_layout: Callable[[TrainerLayout], str] | None = None
    parse_layout: Callable[[str], TrainerLayout] | None = None
    layout_mark: str = ""
    aliases: tuple[str, ...] = ()
    package: str = ""
    releases: tuple[str, ...] = ()
    latest: str = ""

    @property
    def read_layout(self) -> Callable[[str], tuple[int, ...]] | None:
        """Reader of the transformer layers of each stage of a layout; None if the trainer has no such text."""
        parse = self.parse_layout
        return None if parse is None else lambda text: parse(text).layers

    def release(self, version: str | None) -> str:
        """Return the supported minor release of a version such as 0.16.1; :attr:`latest` for None.

        Raises
        ------
        InputError
            If the version is not supported.
        """
        release = self.latest if version is None else ".".join(version.split(".")[:2])
        if version is not None and not self.releases:
            raise InputError(
                f"flags of {self.name} support only the installed release, not {one_line(version)}",
                field="trainer_version",
            )
        if version is not None and release not in self.releases:
            supported = " and ".join(filter(None, (", ".join(self.releases[:-1]), self.releases[-1])))
            raise InputError(
                f"unsupported {self.package} {one_line(version)}: expected {supported}",
                field="trainer_version",
            )
        return release


def bash_array(name: str, flags: Iterable[str]) -> list[str]:
    """Return the lines of a bash array of flags."""
    return [f"{name}=(", *(f"    {flag}" for flag in flags), ")"]
