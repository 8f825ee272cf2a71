"""Table of trainers, with releases, packages and the rules that apply to each; and the record of one that takes schedules.

``check --for``, ``review --for``, ``export --to`` and ``plan --flags`` take any of a row's names. ``checked`` is the release
on PyPI or GitHub that a row was last compared with (November 2026).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pipeplan.formats import TORCH_RELEASES, Format
from pipeplan.foundation.errors import InputError
from pipeplan.model import one_line
from pipeplan.trainers.layout import TrainerLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerKind:
    """Trainer of a configuration.

    Attributes
    ----------
    name, title
        Name in rules, and name in sentences.
    aliases
        Further names, the shortest first: it names the trainer in plans and checks.
    scopes
        Trainers and libraries whose rules apply, the trainer itself first.
    package
        Package or project whose releases count.
    releases
        Releases that settings can be written for, the oldest first; empty: none, or they do not depend on it.
    newest
        Newest release, whose rules apply and which settings are for by default.
    checked
        Release that the row was compared with.
    core
        Release of Megatron-core that it comes with; empty: the newest.
    software
        Row of the planner's software table for configurations that do not show more.
    """

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    package: str = ""
    releases: tuple[str, ...] = ()
    newest: str = ""
    checked: str = ""
    core: str = ""
    software: str = "megatron-core"

    @property
    def names(self) -> tuple[str, ...]:
        """All of its names, the shortest first."""
        return (*self.aliases, self.name)


_CORE = ("megatron-core", "transformer-engine")

TRAINER_KINDS = (
    TrainerKind(
        name="megatron-bridge", title="Megatron-Bridge", aliases=("bridge",),
        scopes=("megatron-bridge", *_CORE), software="megatron-bridge-26.04",
        package="Megatron-Bridge", releases=("0.3", "0.4", "0.5", "0.6", "main"), newest="0.6", checked="0.6.2",
    ),
    TrainerKind(
        name="nemo-rl", title="NeMo RL", scopes=("nemo-rl", "megatron-core"), core="0.16",
    ),
    TrainerKind(
        name="primus", title="Primus", scopes=("primus", "megatron-lm", *_CORE), core="0.16",
        software="primus", package="Primus", releases=("26.5", "main"), newest="26.5", checked="26.5",
    ),
    TrainerKind(
        name="ms-swift", title="ms-swift", scopes=("ms-swift", "megatron-core"), core="0.18",
        package="ms-swift", newest="4.6", checked="4.6.0",
    ),
    TrainerKind(
        name="verl", title="verl", scopes=("verl", "megatron-core"), core="0.16",
        package="verl", newest="0.9", checked="0.9.1",
    ),
    TrainerKind(
        # Sizes and splits are Megatron-LM's; slime sets its batches itself.
        name="slime", title="slime", scopes=("slime", "megatron-core"), core="0.16",
    ),
    TrainerKind(
        # It patches Megatron-LM 0.12 on Ascend NPUs: some of its checks, and all that is of Transformer Engine.
        name="mindspeed", title="MindSpeed-LLM", scopes=("mindspeed", "megatron-core"), core="0.12",
    ),
    TrainerKind(
        # It brings Megatron-LM of September 2025 or earlier.
        name="pai-megatron-patch", title="Pai-Megatron-Patch", scopes=("pai-megatron-patch", "megatron-lm", *_CORE),
        core="0.14",
    ),
    TrainerKind(
        name="megatron-lm", title="Megatron-LM", aliases=("megatron",),
        scopes=("megatron-lm", *_CORE), package="Megatron-core",
        # Overlapped pairs need 0.14 or later.
        releases=("0.14", "0.15", "0.16", "0.17", "0.18", "0.19"), newest="0.19", checked="0.19.2",
    ),
    TrainerKind(
        name="nemo-automodel", title="NeMo AutoModel", aliases=("automodel",),
        scopes=("nemo-automodel", "pytorch"), software="automodel",
        package="nemo-automodel", releases=("0.5", "0.6", "0.7", "main"), newest="0.7", checked="0.7.0",
    ),
    TrainerKind(
        # Releases from 2.6 on no longer train language models.
        name="nemo", title="NeMo", scopes=("nemo", *_CORE), core="0.14", software="nemo",
        package="nemo-toolkit", newest="2.5", checked="2.5.3",
    ),
    TrainerKind(
        name="torchtitan", title="torchtitan", scopes=("torchtitan", "pytorch"), software="torchtitan",
        package="torchtitan", releases=("0.3", "main"), newest="0.3", checked="0.3.0",
    ),
    TrainerKind(
        name="gpt-neox", title="GPT-NeoX", aliases=("neox",), scopes=("gpt-neox", "deepspeed"),
        software="megatron-deepspeed",
    ),
    TrainerKind(name="nanotron", title="nanotron", scopes=("nanotron",)),
    TrainerKind(name="openrlhf", title="OpenRLHF", scopes=("openrlhf", "deepspeed"), software="megatron-deepspeed"),
    TrainerKind(
        name="deepspeed", title="DeepSpeed", scopes=("deepspeed",),
        software="megatron-deepspeed", package="deepspeed", newest="0.19", checked="0.19.8",
    ),
    TrainerKind(
        name="pytorch", title="PyTorch", scopes=("pytorch",), software="torchtitan",
        package="torch", releases=TORCH_RELEASES, newest=TORCH_RELEASES[-1], checked="2.15.0",
    ),
)  # fmt: skip
"""Every trainer; the first whose pattern matches a name is meant."""


def trainer_names() -> tuple[str, ...]:
    """Return every name of a trainer, those of plans and checks first."""
    return tuple(dict.fromkeys(kind.names[place] for place in (0, -1) for kind in TRAINER_KINDS))


OTHER = TrainerKind(name="", title="the trainer")
"""A trainer that is not in the table: only rules of every trainer apply."""

NEWEST = {kind.name: kind.newest for kind in TRAINER_KINDS} | {"megatron-core": "0.19", "transformer-engine": "2.20"}
"""Newest release of every trainer and library that has rules; empty: releases are not told apart."""


def trainer_kind(name: str) -> TrainerKind:
    """Return the trainer with a name; :data:`OTHER` if there is none."""
    return next((kind for kind in TRAINER_KINDS if name in kind.names), OTHER)


_NEWER = re.compile(r"(?:^|/)(?:main|master|trunk|head|latest|nightly|dev(?:elop)?)(?:$|[-@+])", re.IGNORECASE)
"""Matches names of a trainer's latest state, such as ``origin/main``, which is newer than every release."""

_COMMIT = re.compile(r"(?=.*[a-f])[0-9a-f]{7,40}", re.IGNORECASE)
"""Matches the hash of a commit, which tells no release."""


def in_releases(release: str, releases: str) -> bool:
    """Return True if a release is one of a range such as ``>=0.14 <0.16``; True if the release is unknown.

    A branch such as ``main`` is newer than every release.
    """
    own = [float("inf")] if _NEWER.search(release.strip()) else _numbers(release)
    if not own:
        return True
    return all(_compared(own, bound) for bound in releases.split())


def is_release(text: str) -> bool:
    """Return True if a text names a release: it has a number, or is a branch such as ``main``."""
    return _NEWER.search(text.strip()) is not None or bool(_numbers(text))


def _compared(own: list[float], bound: str) -> bool:
    match = re.fullmatch(r"(>=|<)([\d.]+)", bound)
    if match is None:
        raise ValueError(f"invalid range of releases {bound!r}")
    other = _numbers(match[2])
    # 0.16 is 0.16.0.
    longest = max(len(own), len(other))
    own, other = ([*numbers, *[0.0] * (longest - len(numbers))] for numbers in (own, other))
    return (own >= other) if match[1] == ">=" else (own < other)


def _numbers(release: str) -> list[float]:
    """Return the numbers of a release, such as those of ``v0.16.0`` and of ``core_r0.16.0``."""
    match = None if _COMMIT.fullmatch(release.strip()) else re.search(r"\d+(?:\.\d+)*", release)
    return [float(part) for part in match[0].split(".")] if match else []


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


def built_in(name: str, **more: Any) -> Trainer:
    """Return a trainer of :data:`TRAINER_KINDS`, with what its row says and ``more`` attributes."""
    kind = trainer_kind(name)
    row = {"title": kind.title, "software": kind.software, "aliases": kind.names, "package": kind.package}
    return Trainer(**{"name": kind.names[0], **row, "releases": kind.releases, "latest": kind.newest, **more})


def bash_array(name: str, flags: Iterable[str]) -> list[str]:
    """Return the lines of a bash array of flags."""
    return [f"{name}=(", *(f"    {flag}" for flag in flags), ")"]
