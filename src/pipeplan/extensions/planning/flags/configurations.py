"""pipeplan's own file of a configuration: model and cluster as a plan takes them, the rest by the names of ``fix``.

.. code-block:: yaml

    model: llama3-70b            # a preset, a config.json, or the keys of a shape
    cluster: h100-sxm:8x8
    global_batch: 128
    sequence: 8192
    tp: 4
    pp: 4
    vp: 5
    schedule: interleaved-1f1b
    recompute: core_attn
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pipeplan.extensions.planning import CHOICES, EARLY, Configuration, read_fixed, short_name, usual_software
from pipeplan.extensions.planning.hardware import Cluster, cluster, cluster_from
from pipeplan.extensions.planning.trainers import plan_trainers
from pipeplan.extensions.planning.workload import ModelShape, from_dict, known_model, model, read_config
from pipeplan.foundation.documents import ENDINGS, instead_of_keys, other_kind, read_document
from pipeplan.foundation.errors import FormatError, InputError, PipeplanError, UnknownNameError
from pipeplan.foundation.files import MEBIBYTE
from pipeplan.trainers.registry import read_layout

LARGEST = 64 * MEBIBYTE
"""Maximum size of a file of configurations, in bytes."""

_REQUIRED = {"model": "llama3-8b", "cluster": "h100-sxm:8x2", "global_batch": 128, "sequence": 8192}
"""Keys that every configuration has, with an example of each."""

_COUNTED = ("replicate", "lora_rank", "document")
"""Keys of a configuration that a plan does not choose; each is a count."""
_CHOSEN = tuple(choice for choice in CHOICES if choice.field in {field.name for field in fields(Configuration)})
_FIELDS = {name: choice.field for choice in _CHOSEN for name in (choice.field, *choice.names)} | {
    "layers_per_stage": "layers"
}
"""Field of the configuration by each name of it."""


def model_of(source: Any, folder: Path | None = Path(), *, approximate: bool = False) -> ModelShape:
    """Return a model's shape from a preset's name, a config.json or its folder, or the keys of a shape.

    File names are relative to the folder, and refused without one. ``approximate`` reads a config.json whose layers are not
    modelled as the nearest architecture.
    """
    if isinstance(source, ModelShape):
        return source
    if isinstance(source, Mapping) and not {"architectures", "model_type"} & source.keys():
        return from_dict(source)
    if isinstance(source, Mapping):
        return read_config(source, approximate=approximate)
    text = str(source)
    if folder is not None and known_model(text) is None:
        path = folder / text
        if path.suffix.lower() in ENDINGS or os.path.isfile(path) or os.path.isfile(path / "config.json"):
            return read_config(path, approximate=approximate)
    return model(text)


def cluster_of(source: Any, folder: Path | None = Path()) -> Cluster:
    """Return a cluster from ``GPU:PER_NODExNODES``, a file, or its keys; see ``cluster``."""
    if isinstance(source, Cluster):
        return source
    if isinstance(source, Mapping):
        return cluster_from(dict(source), "the cluster")
    text = str(source)
    if Path(text).suffix.lower() not in ENDINGS:
        return cluster(text)
    if folder is None:
        raise FormatError(
            f"the cluster '{text}' is a file: write GPU:PER_NODExNODES here, such as h100-sxm:8x8", field="cluster"
        )
    return cluster(folder / text)


def read_keys(path: Path, what: str = "configuration", limit: int = LARGEST) -> Mapping[str, Any]:
    """Return the keys in a file. Raises FormatError if it holds none."""
    document = read_document(path, what, limit=limit)
    if not isinstance(document, Mapping):
        raise FormatError(f"the {what} {path} holds no keys: {instead_of_keys(document, 'model: llama3-70b')}")
    return document


def is_configuration(document: Any) -> bool:
    """Return True for the content of a configuration file."""
    return isinstance(document, Mapping) and all(document.get(name) is not None for name in _REQUIRED)


def read_configuration(
    document: Mapping[str, Any], folder: Path | None = Path(), *, approximate: bool = False
) -> tuple[ModelShape, Cluster, Configuration]:
    """Return the model, the cluster and the configuration that the keys of a configuration file describe.

    The keys are ``model``, ``cluster``, ``global_batch`` and ``sequence``, and any of what ``fix`` takes by its names.
    ``recompute_by_stage`` is a list with what each stage computes again, ``offload`` may be a list, too, and ``replicate``
    is the number of copies of a sharded state (HSDP). ``lora_rank`` trains adapters of that rank only, and ``document`` is
    the length of the documents packed into a sequence. With tensor ranks, sequence parallelism is on unless it is set; a
    layout implies the chunks per rank, and several chunks the schedule interleaved-1f1b. See :func:`assumptions_of`, and
    :func:`model_of` for ``folder`` and ``approximate``.
    """
    missing = [name for name in _REQUIRED if document.get(name) is None]
    if missing and not {"model", "cluster"} <= document.keys() and (other := other_kind(document)):
        raise InputError(f"this is not a configuration: {other}", field=missing[0])
    if missing:
        lines = " and ".join(f"'{name}: {_REQUIRED[name]}'" for name in missing)
        raise InputError(f"a configuration needs {', '.join(missing)}: add lines such as {lines}", field=missing[0])
    values = {name: value for name, value in document.items() if value is not None and name not in _REQUIRED}
    shape = model_of(document["model"], folder, approximate=approximate)
    machines = cluster_of(document["cluster"], folder)
    counts: dict[str, Any] = {name: _count(name, document[name]) for name in ("global_batch", "sequence")}
    by_stage = values.pop("recompute_by_stage", None)
    offload = values.pop("offload", 0.0)
    counted: dict[str, Any] = {name: _count(name, values.pop(name)) for name in _COUNTED if name in values}
    chosen = _chosen(values)
    if by_stage is not None:
        each = _list("recompute_by_stage", by_stage)
        chosen["recompute_by_stage"] = tuple(_one("recompute", modules) for modules in each)
    single = not isinstance(offload, list)
    chosen["offload"] = _one("offload", offload) if single else tuple(_one("offload", share) for share in offload)
    chosen.setdefault("software", usual_software("megatron-core", machines.gpu))
    configuration = Configuration(**(counts | _implied(chosen) | chosen))
    data = configuration.data if "data" in chosen else _replicas(machines, configuration)
    return shape, machines, replace(configuration, data=data, **counted)


def _implied(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return what others imply: sequence parallelism by tensor ranks, chunks by a layout, the schedule by chunks."""
    implied: dict[str, Any] = {}
    if chosen.get("tensor", 1) > 1:
        implied["sequence_parallel"] = not str(chosen.get("software", "")).startswith(EARLY)
    stages, ranks = len(chosen.get("layers") or ()), chosen.get("pipeline", 1)
    if stages > ranks and stages % ranks == 0 and "chunks" not in chosen:
        implied |= {"chunks": stages // ranks, "schedule": "interleaved-1f1b"}
    elif chosen.get("chunks", 1) > 1:
        implied["schedule"] = "interleaved-1f1b"
    return implied


def assumptions_of(document: Mapping[str, Any], configuration: Configuration) -> tuple[str, ...]:
    """Return what :func:`read_configuration` assumes for settings that a document leaves out, one sentence each."""
    present = {_FIELDS[name] for name in document if name in _FIELDS}
    sentences = {
        "sequence_parallel": "sequence parallelism: " + ("on" if configuration.sequence_parallel else "off"),
        "chunks": f"chunks per rank: {configuration.chunks}, as many as the layout has stages for each rank",
        "schedule": f"schedule: {configuration.schedule}, because ranks have several chunks",
    }
    implied = _implied({field: getattr(configuration, field) for field in present})
    return tuple(sentences[field] for field in implied if field not in present)


def _chosen(values: Mapping[str, Any]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for name, value in values.items():
        field = _FIELDS.get(name)
        if field is None:
            known = {key.replace("-", "_") for key in (*_REQUIRED, *_COUNTED, *_FIELDS)}
            raise UnknownNameError("configuration key", str(name), known, field=str(name))
        if field in chosen:
            raise InputError(f"{short_name(field)} is given twice", field=str(name))
        chosen[field] = _one(name, value)
    return chosen


def _one(name: str, value: Any) -> Any:
    """Return the single value of a field. Raises InputError with the key as its field."""
    try:
        plain = _layers_of(value) if _FIELDS[name] == "layers" else value
        if isinstance(plain, list):
            plain = "+".join(map(str, plain)) or "none"
        ((only,),) = read_fixed({short_name(_FIELDS[name]): [plain]}, plan_trainers()).values()
    except PipeplanError as error:
        error.field = name
        raise
    return only


def _layers_of(value: Any) -> Any:
    """Return the layers of each stage of a layout's text, or of a list with the parts of each stage."""
    parts = isinstance(value, list) and all(isinstance(stage, list) for stage in value)
    return list(read_layout(str(value)).layers) if parts or isinstance(value, str) else value


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"invalid {name} {value!r}: expected an integer >= 1", field=name)
    return value


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise FormatError(f"{name} must be a list with one value per stage", field=name)
    return value


def _replicas(machines: Cluster, configuration: Configuration) -> int:
    tensor, pipeline, context = configuration.tensor, configuration.pipeline, configuration.context
    one = tensor * pipeline * context
    if machines.gpus % one:
        raise InputError(
            f"tp {tensor} x pp {pipeline} x cp {context} = {one} does not divide {machines.gpus} GPUs: "
            "set dp, or other degrees",
            field="dp",
        )
    return machines.gpus // one
