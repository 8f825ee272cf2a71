"""Launch scripts of plans, and what the flags of several trainers read from a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType

from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.hardware import cluster as cluster_named
from pipeplan.extensions.planning.workload import RECOMPUTE, ModelShape, known_model, published_model
from pipeplan.foundation.errors import PipeplanError
from pipeplan.trainers.trainer import bash_array

_NONE: Mapping[str, tuple[str, str]] = MappingProxyType({})


def recomputed_anywhere(configuration: Configuration) -> tuple[str, ...]:
    """Return the modules that any stage recomputes, in the order of their table; with all of them every stage fits."""
    by_stage = configuration.recompute_by_stage or (configuration.recompute,)
    chosen = {module for stage in by_stage for module in stage}
    return ("full",) if "full" in chosen else tuple(module for module in RECOMPUTE if module in chosen)


def recompute_by_stage_in_words(configuration: Configuration) -> str:
    """Return runs of stages with their recomputation, ``0-3: full; 4-7: nothing``; empty if all do the same."""
    stages = list(enumerate(configuration.recompute_by_stage or ()))
    runs = [list(run) for _, run in groupby(stages, key=lambda stage: frozenset(stage[1]))]
    if len(runs) < 2:
        return ""
    return "; ".join(
        f"{first if first == last else f'{first}-{last}'}: {' '.join(modules) or 'nothing'}"
        for (first, _), (last, modules) in ((run[0], run[-1]) for run in runs)
    )


def bash_script(
    command: str,
    arrays: Mapping[str, Iterable[str]],
    cluster: Cluster,
    *,
    heading: str,
    warnings: Iterable[str],
    to_set: Mapping[str, str],
    to_add: Iterable[str] = (),
    usual: Mapping[str, tuple[str, str]] = _NONE,
    environment: Iterable[str],
) -> str:
    """Return a launch script: what the user has to set, the environment, arrays of flags, and torchrun with all of them.

    The type of the GPUs has no flag; NVIDIA's own launchers take it from ``GPU_TYPE``, and so does a review.

    Parameters
    ----------
    command, arrays
        Program that every process runs, as torchrun takes it, and its flags by the name of their bash array, in order.
    cluster
        Machines: a process per GPU; several nodes meet at the first one, and each runs the script.
    to_set, usual
        Meanings of variables that the user has to set, by name; bash ends with the meaning of one that is not set. Values
        of those that the user may set, with their meanings.
    to_add
        Descriptions of flags that the user has to add.
    """
    torchrun = f"torchrun --nproc-per-node {cluster.per_node} --nnodes {cluster.nodes}"
    if cluster.nodes > 1:
        torchrun += ' --rdzv-backend c10d --rdzv-endpoint "$HEAD_NODE:29500"'
        to_set = {**to_set, "HEAD_NODE": "name of the first node"}
    words = [torchrun, command, *(f'"${{{name}[@]}}"' for name in arrays)]
    lines = ["#!/usr/bin/env bash", f"# {heading}.", *(f"# Warning: {sentence}." for sentence in warnings)]
    lines += ["set -euo pipefail", "# You still need to set:"]
    lines += [f"# {flags}" for flags in to_add]
    lines += [f': "${{{name}:?{meaning}}}"' for name, meaning in to_set.items()]
    lines += [f'{name}="${{{name}:-{value}}}"  # {meaning}' for name, (value, meaning) in usual.items()]
    lines += [*_gpu_type(cluster), *environment]
    for name, flags in arrays.items():
        lines += bash_array(name, flags)
    return "\n".join([*lines, " \\\n    ".join(words), ""])


def _gpu_type(cluster: Cluster) -> Iterator[str]:
    """Yield the line with the type of the GPUs, unless the machines differ from the preset of that name."""
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
    published = published_model(model)
    model = published or model
    name = re.sub(r"[-_ ]?(\d)\.(\d)", r"\1\2", model.name) if joined else model.name
    plain = re.sub(r"\W+", "_", name.lower()).strip("_") or "model"
    return plain if published or known_model(model.name) is None else f"own_{plain}"
