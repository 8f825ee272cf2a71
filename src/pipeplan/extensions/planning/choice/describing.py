"""Description of a configuration: in a few words, in its differences from another, and as the keys of its file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict as fields_of
from dataclasses import fields, replace
from itertools import groupby
from typing import Any

from msgspec.structs import asdict

from pipeplan.extensions.planning.choice.request import CHOICES, part_of, short_name, written
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.hardware import Cluster, cluster
from pipeplan.extensions.planning.results import Estimate
from pipeplan.extensions.planning.workload import ModelShape, known_model, short_form
from pipeplan.foundation.errors import PipeplanError

_DEGREES = ("tensor", "pipeline", "context", "data", "expert", "expert_tensor")


def degrees_in_words(configuration: Configuration) -> str:
    """Return the degrees above one: ``tp8 pp4 dp2``."""
    degrees = {name: getattr(configuration, name) for name in _DEGREES}
    return " ".join(f"{short_name(name)}{degree}" for name, degree in degrees.items() if degree > 1) or "one GPU"


def zero_in_words(configuration: Configuration) -> str:
    """Return the ZeRO stage, and the copies of the sharded state if there are several: ``ZeRO-3 in 8 copies``."""
    return f"ZeRO-{configuration.zero}" + (
        f" in {configuration.replicate} copies" if configuration.replicate > 1 else ""
    )


def recompute_in_words(configuration: Configuration) -> str:
    """Return the recomputed modules in words: ``none``, ``full``, ``core_attn+mlp``, ``full on 3 of 8 stages``."""
    by_stage = configuration.recompute_by_stage
    if by_stage is None or len(set(by_stage)) == 1:
        modules = configuration.recompute if by_stage is None else by_stage[0]
        words = "+".join(modules) or "none"
    else:
        words = ", ".join(
            f"{'+'.join(modules)} on {by_stage.count(modules)} of {len(by_stage)} stages"
            for modules in dict.fromkeys(by_stage)
            if modules
        )
    share = configuration.most_offloaded
    moves = f"{share:.0%} offloaded"
    return words if not share else moves if words in ("", "none") else f"{words}, {moves}"


def in_words(configuration: Configuration) -> str:
    """Return a configuration in one line, with everything that distinguishes it within a plan."""
    schedule = f"{schedule_in_words(configuration)}, " if configuration.gpus > 1 else ""
    recompute = recompute_in_words(configuration)
    again = "" if recompute == "none" else f", {recompute}" if recompute[0].isdigit() else f", recompute {recompute}"
    zero = f", {zero_in_words(configuration)}" if configuration.zero > 1 or configuration.replicate > 1 else ""
    adapters = f", LoRA of rank {configuration.lora_rank}" if configuration.lora_rank else ""
    packed = f", documents of {configuration.document}" if configuration.document else ""
    return (
        f"{degrees_in_words(configuration)}, {schedule}microbatch {configuration.microbatch_size}{again}{zero}"
        f"{adapters}{packed}"
    )


def brief(configuration: Configuration) -> str:
    """Return the degrees of a configuration, and its ZeRO stage if more than the optimizer state is sharded."""
    zero = f", {zero_in_words(configuration)}" if configuration.zero > 1 or configuration.replicate > 1 else ""
    return degrees_in_words(configuration) + zero


def layout_in_words(configuration: Configuration) -> str:
    """Return the layers of each stage, equal neighbours grouped: ``19, 6 x 20, 21``."""
    layers = configuration.layers
    if layers is None:
        return "even"
    runs = [(len(list(equal)), count) for count, equal in groupby(layers)]
    return ", ".join(f"{times} x {count}" if times > 1 else str(count) for times, count in runs)


def schedule_in_words(configuration: Configuration) -> str:
    """Return the schedule with its chunks per rank: ``interleaved-1f1b v2``, ``no pipeline``."""
    if configuration.pipeline == 1:
        return "no pipeline" + (", microbatches overlapped" if configuration.schedule != "1f1b" else "")
    return configuration.schedule + (f" v{configuration.chunks}" if configuration.chunks > 1 else "")


def differences(here: Configuration, there: Configuration) -> str:
    """Return how a configuration differs from another in a few words: ``tp2 cp1, zb-h1, microbatch 2``."""
    degrees = " ".join(
        f"{short_name(name)}{getattr(here, name)}" for name in _DEGREES if getattr(here, name) != getattr(there, name)
    )
    return ", ".join(filter(None, (degrees, *_other_differences(here, there)))) or "another layout"


def beside(here: Configuration, there: Configuration) -> str:
    """Return the degrees of a configuration, and how the rest differs from another: ``tp2 pp4 dp2, zb-h1, microbatch 2``."""
    others = list(_other_differences(here, there))
    same = not others and degrees_in_words(here) == degrees_in_words(there)
    return ", ".join((degrees_in_words(here), *(["another layout"] if same else others)))


def _other_differences(here: Configuration, there: Configuration) -> Iterator[str]:
    def differ(*names: str) -> bool:
        return any(getattr(here, name) != getattr(there, name) for name in names)

    recompute = "recompute stage by stage"
    if here.recompute_by_stage is None:
        recompute = f"recompute {'+'.join(here.recompute)}" if here.recompute else "no recomputation"
    share = here.most_offloaded
    if schedule_in_words(here) != schedule_in_words(there):
        yield schedule_in_words(here)
    if differ("microbatch_size"):
        yield f"microbatch {here.microbatch_size}"
    if differ("recompute", "recompute_by_stage"):
        yield recompute
    if differ("offload"):
        yield f"{share:.0%} offloaded" if share else "no offload"
    if differ("zero"):
        yield f"ZeRO-{here.zero}"
    if differ("replicate"):
        yield f"copies of the state: {here.replicate}"


def described(shape: ModelShape, machines: Cluster, estimate: Estimate) -> dict[str, Any]:
    """Return the fields of a planned configuration: its predictions, its words, and the keys of its file."""
    configuration = estimate.configuration
    return asdict(estimate) | {
        "words": in_words(configuration),
        "layout": layout_in_words(configuration),
        "recompute": recompute_in_words(configuration),
        "document": configuration_document(shape, part_for(estimate, machines), configuration),
    }


def part_for(estimate: Estimate, machines: Cluster) -> Cluster:
    """Return the part of a cluster that a configuration uses; the objective ``gpus`` may leave GPUs unused."""
    per_node = min(machines.per_node, estimate.configuration.gpus)
    return part_of(machines, estimate.configuration.gpus // per_node, per_node)


def configuration_document(shape: ModelShape, machines: Cluster, configuration: Configuration) -> dict[str, Any]:
    """Return the keys of a configuration file, without defaults.

    :func:`~pipeplan.extensions.planning.flags.read_configuration` reads them back.
    """
    usual = {field.name: field.default for field in fields(Configuration)}
    document: dict[str, Any] = {
        "model": _model_document(shape),
        "cluster": _cluster_document(machines),
        "global_batch": configuration.global_batch,
        "sequence": configuration.sequence,
    }
    for choice in CHOICES:
        if choice.field not in usual:
            continue
        value = getattr(configuration, choice.field)
        # What depends on another setting is always written.
        implied = choice.field == "data" or (choice.field == "sequence_parallel" and configuration.tensor > 1)
        if value != usual[choice.field] or implied:
            document[short_name(choice.field)] = _plain(choice.field, value)
    if configuration.lora_rank:
        document["lora_rank"] = configuration.lora_rank
    if configuration.document is not None:
        document["document"] = configuration.document
    if configuration.recompute_by_stage is not None:
        document["recompute_by_stage"] = [written("recompute", modules) for modules in configuration.recompute_by_stage]
    return document


def _model_document(shape: ModelShape) -> Any:
    """Return a preset's name, or the keys of a shape, under another name where it differs from its preset."""
    preset = known_model(shape.name)
    if preset == shape:
        return shape.name
    return short_form(shape if preset is None else replace(shape, name=f"{shape.name} (changed)"))


def _plain(field: str, value: Any) -> Any:
    if field in ("recompute", "layers"):
        return written(field, value)
    return list(value) if isinstance(value, tuple) else value


def _cluster_document(machines: Cluster) -> Any:
    """Return ``GPU:PER_NODExNODES`` for a preset, else the numbers of the cluster."""
    text = f"{machines.gpu.name}:{machines.per_node}x{machines.nodes}"
    try:
        if cluster(text) == machines:
            return text
    except PipeplanError:
        pass  # the user's own GPU has no known name
    gpu = {field.name: getattr(machines.gpu, field.name) for field in fields(machines.gpu)}
    links = {name: _without_empty(fields_of(getattr(machines, name))) for name in ("inside", "between")}
    sizes = {"per_node": machines.per_node, "nodes": machines.nodes, "domain": machines.domain}
    return {"gpu": _without_empty(gpu | {"peak": dict(machines.gpu.peak)}), **sizes, **links}


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None and value != ""}
