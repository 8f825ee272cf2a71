"""Record of a trainer with everything that pipeplan knows about it, and helpers that the plan flags of trainers share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipeplan.errors import InputError, PipeplanError
from pipeplan.formats import Format, TrainerSettings
from pipeplan.model import Schedule, one_line
from pipeplan.trainers.layout import TrainerLayout

if TYPE_CHECKING:
    from pipeplan.hardware import Cluster
    from pipeplan.planner import Configuration
    from pipeplan.workload import ModelShape

_NONE: Mapping[str, tuple[str, str]] = MappingProxyType({})


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
        Module with the function ``plan_flags`` that :meth:`plan_flags` calls; it is imported only for plans. None: the
        trainer takes schedules, but no plans.
    refuses
        Returns why the trainer cannot build a model, empty if it can; None: it builds every model.
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
    refuses: Callable[[ModelShape], str] | None = None
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

    def plan_flags(
        self,
        model: ModelShape,
        cluster: Cluster,
        configuration: Configuration,
        schedule: Schedule,
        version: str | None = None,
    ) -> TrainerSettings:
        """Return the flags of a configuration that runs a schedule, for a release; None: the newest supported one."""
        assert self.plans is not None
        write: Callable[..., TrainerSettings] = import_module(self.plans).plan_flags
        return write(model, cluster, configuration, schedule, version)

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


def recomputed_anywhere(configuration: Configuration) -> tuple[str, ...]:
    """Return the modules that any stage recomputes, in the order of their table; with all of them every stage fits."""
    from pipeplan.workload import RECOMPUTE

    by_stage = configuration.recompute_by_stage or (configuration.recompute,)
    chosen = {module for stage in by_stage for module in stage}
    return ("full",) if "full" in chosen else tuple(module for module in RECOMPUTE if module in chosen)


def recompute_by_stage_in_words(configuration: Configuration) -> str:
    """Return runs of stages with their recomputation, ``0-3: full; 4-7: nothing``; empty if all do the same."""
    runs: list[tuple[int, int, tuple[str, ...]]] = []
    for stage, modules in enumerate(configuration.recompute_by_stage or ()):
        if runs and set(runs[-1][2]) == set(modules):
            runs[-1] = (runs[-1][0], stage, modules)
        else:
            runs.append((stage, stage, modules))
    if len({frozenset(modules) for _, _, modules in runs}) < 2:
        return ""
    return "; ".join(
        f"{first if first == last else f'{first}-{last}'}: {' '.join(modules) or 'nothing'}"
        for first, last, modules in runs
    )


def offloaded_anywhere(configuration: Configuration) -> float:
    """Return the largest fraction of its kept bytes that a stage offloads to the host."""
    return (
        max(configuration.offload, default=0.0) if isinstance(configuration.offload, tuple) else configuration.offload
    )


def bash_script(
    command: str,
    arrays: Mapping[str, Iterable[str]],
    cluster: Cluster,
    *,
    heading: Iterable[str],
    to_set: Mapping[str, str],
    to_add: Iterable[str] = (),
    usual: Mapping[str, tuple[str, str]] = _NONE,
    environment: Iterable[str],
) -> str:
    """Return a launch script: what the user has to set, the environment, arrays of flags, and torchrun with all of them.

    The type of the GPUs has no flag; NVIDIA's own launchers take it from ``GPU_TYPE``, and so does a review.

    Parameters
    ----------
    command
        Program that every process runs, as torchrun takes it.
    arrays
        Flags by the name of their bash array, in the order of the command line.
    cluster
        Machines: a process per GPU; several nodes meet at the first one, and each runs the script.
    heading
        Comments.
    to_set
        Meanings of variables that the user has to set, by name; bash ends with the meaning of one that is not set.
    to_add
        Descriptions of flags that the user has to add.
    usual
        Values of variables that the user may set, with their meanings.
    environment
        Lines that set environment variables.
    """
    torchrun = f"torchrun --nproc-per-node {cluster.per_node} --nnodes {cluster.nodes}"
    if cluster.nodes > 1:
        torchrun += ' --rdzv-backend c10d --rdzv-endpoint "$HEAD_NODE:29500"'
        to_set = {**to_set, "HEAD_NODE": "name of the first node"}
    words = [torchrun, command, *(f'"${{{name}[@]}}"' for name in arrays)]
    lines = ["#!/usr/bin/env bash", *heading, "set -euo pipefail", "# You still need to set:"]
    lines += [f"# {flags}" for flags in to_add]
    lines += [f': "${{{name}:?{meaning}}}"' for name, meaning in to_set.items()]
    lines += [f'{name}="${{{name}:-{value}}}"  # {meaning}' for name, (value, meaning) in usual.items()]
    lines += [*_gpu_type(cluster), *environment]
    for name, flags in arrays.items():
        lines += bash_array(name, flags)
    return "\n".join([*lines, " \\\n    ".join(words), ""])


def _gpu_type(cluster: Cluster) -> Iterator[str]:
    """Yield the line with the type of the GPUs, unless the machines differ from the preset of that name."""
    from pipeplan.hardware import cluster as cluster_named

    try:
        usual = cluster_named(f"{cluster.gpu.name}:{cluster.per_node}x{cluster.nodes}")
    except PipeplanError:
        return
    if replace(usual, gpu=replace(usual.gpu, price=cluster.gpu.price)) == cluster:
        yield f"export GPU_TYPE={cluster.gpu.name}"


def function_name(model: ModelShape, *, joined: bool = False) -> str:
    """Return the usual name of the function that configures a model, ``llama3_70b``; ``own_..`` if it changes that model.

    A config.json of a published model has that model's function, whatever its name.

    ``joined`` leaves out the point of a version: ``llama31_405b``.
    """
    from pipeplan.workload import known_model, published_model

    published = published_model(model)
    model = published or model
    name = re.sub(r"[-_ ]?(\d)\.(\d)", r"\1\2", model.name) if joined else model.name
    plain = re.sub(r"\W+", "_", name.lower()).strip("_") or "model"
    return plain if published or known_model(model.name) is None else f"own_{plain}"


def bash_array(name: str, flags: Iterable[str]) -> list[str]:
    """Return the lines of a bash array of flags."""
    return [f"{name}=(", *(f"    {flag}" for flag in flags), ")"]
