"""Published runs: a row of a file of them made a model, a cluster and a configuration, with what had to be assumed.

A row names its source, model, hardware, degrees, batch and what was measured; what it does not say is assumed by a rule, and
the rule is said. A row that is no prediction of a whole step (times of layers or stages, models without a shape) is refused in
one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeplan.documents import read_document
from pipeplan.errors import FormatError, InputError, PipeplanError
from pipeplan.files import MEBIBYTE
from pipeplan.hardware import Cluster
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.row_hardware import cluster_of
from pipeplan.planner.row_measured import Measured, measured_of
from pipeplan.planner.row_replicas import expert_tensor_of, replicas_by_state
from pipeplan.planner.row_schedules import chunks_of, layout_from, scheduled
from pipeplan.planner.row_software import precision_of, software_of
from pipeplan.planner.unsaid import balanced_layout, lightest
from pipeplan.workload import ModelShape, from_dict

_LARGEST = 64 * MEBIBYTE
"""Of a file of runs."""

_RECOMPUTE: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"^none", ()),
    (r"recomputes RMSNorm and MLA up-projection", ("layernorm", "mla_up_proj")),
    (r"^full", ("full",)),
    (r"per[ -]op|recipe default", ("selective-op",)),
    (r"^selective", ("core_attn",)),
)
"""Words of a row, and the modules that they mean: Megatron's ``selective`` is the attention core."""


_EARLY = ("megatron-lm-2021", "megatron-lm-2021-unfused", "zero-bubble", "megatron-deepspeed")
"""Trainers without sequence parallelism and sharded optimizers where nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A published run.

    Attributes
    ----------
    id, source
        Its name in the file, and the title of where it was published.
    model, cluster, configuration
        What ran; None where the row is refused.
    measured
        What was measured of it.
    assumed
        What the row does not say, a sentence each.
    refused
        Why it cannot be predicted; empty where it can.
    rival
        What another tool predicted for it: ``tool``, ``step_time_s``, ``peak_memory_gib``.
    """

    id: str
    source: str
    model: ModelShape | None = None
    cluster: Cluster | None = None
    configuration: Configuration | None = None
    measured: Measured = field(default_factory=Measured)
    assumed: tuple[str, ...] = ()
    refused: str = ""
    rival: Mapping[str, Any] = field(default_factory=dict)


def read_rows(path: Path) -> list[Row]:
    """The rows of a file that holds ``rows``, as tables of published runs do.

    Raises
    ------
    InputError
        If it cannot be read.
    FormatError
        If it has no rows, or is broken.
    """
    document = read_document(path, "file of runs", limit=_LARGEST)
    rows = document.get("rows") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise FormatError(f"the file of runs {path} has no list of 'rows'")
    return [row_from(row, index) for index, row in enumerate(rows)]


def row_from(document: Any, index: int = 0) -> Row:
    """A row of a file; what is wrong with it is said in ``refused``."""
    if not isinstance(document, dict):
        return Row(
            id=f"row {index}", source="", refused="a row is a mapping of keys such as model, hardware and parallel"
        )
    source = document.get("source", "")
    named = {
        "id": str(document.get("id", f"row {index}")),
        "source": source if isinstance(source, str) else str(source.get("title", "")),
        "rival": document.get("rival_prediction") or {},
    }
    try:
        return _whole(document, named)
    except PipeplanError as error:
        return Row(**named, refused=str(error))
    except (TypeError, ValueError, KeyError, AttributeError, ZeroDivisionError) as error:
        return Row(**named, refused=f"the row is not in the form of published runs: {type(error).__name__}: {error}")


def _whole(row: Mapping[str, Any], named: dict[str, Any]) -> Row:
    if row.get("kind"):
        raise InputError(f"it holds {row['kind']}, which are not a whole step's")
    _require(row)
    model = from_dict(row["model"])
    parallel, batch = row["parallel"], row["batch"]
    tensor, pipeline = int(parallel["tp"]), int(parallel["pp"])
    context = int(parallel.get("cp", 1))
    hardware = row["hardware"]
    data, said_data = _data(row, model, tensor * pipeline * context)
    cluster, assumed = cluster_of(hardware, tensor * pipeline * context * data)
    assumed = [*said_data, *assumed]
    unsaid = "vp" in (row.get("assumed") or ())
    chunks, said = chunks_of(row.get("schedule"), pipeline, model.layers, parallel.get("vp"), unsaid)
    schedule = scheduled(row.get("schedule"), pipeline, chunks)
    trainer, said_software = software_of(row)
    if schedule.barrier is False and trainer == "megatron-lm-2021":
        trainer = "zero-bubble"
    if trainer.startswith("megatron-lm-2021") and parallel.get("zero") == 3:
        trainer = "deepspeed-zero3"
    precision, said_precision = precision_of(row.get("precision"))
    recompute = _recompute(row)
    micro, batch_size, said_batch = _batch(batch, data, pipeline)
    assumed += [each for each in (said, said_software, said_precision, *said_batch) if each]
    configuration = Configuration(
        sequence=int(row["model"]["seq"]),
        global_batch=batch_size,
        microbatch_size=micro,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        data=data,
        expert=int(parallel.get("ep", 1)),
        expert_tensor=expert_tensor_of(row, model),
        chunks=chunks,
        schedule=schedule.strategy,
        in_flight=None if schedule.in_flight is None else schedule.in_flight * pipeline,
        layers=layout_from(row.get("layout"), pipeline, chunks, model.layers),
        sequence_parallel=bool(parallel.get("sp", _has_sequence_parallelism(trainer))) and tensor > 1,
        zero=_zero(row, trainer),
        precision=precision,
        recompute=recompute or (),
        software=trainer,
    )
    configuration, said_rest = _settled(row, model, cluster, configuration)
    return Row(
        **named,
        model=model,
        cluster=cluster,
        configuration=configuration,
        measured=measured_of(row, model, cluster, configuration),
        assumed=(*assumed, *said_rest),
    )


def _settled(
    row: Mapping[str, Any], model: ModelShape, cluster: Cluster, configuration: Configuration
) -> tuple[Configuration, list[str]]:
    """With a layout and a recomputation where the row says none of its own, and what was assumed."""
    said = []
    uneven = model.mtp_layers or model.layers % configuration.stages
    if configuration.layers is None and configuration.stages > 1 and uneven:
        configuration = replace(configuration, layers=balanced_layout(model, cluster, configuration))
        said.append("layout: balanced by the time that layers take")
    if _recompute(row) is None:
        configuration = lightest(model, cluster, configuration)
        modules, moved = "+".join(configuration.recompute) or "none", configuration.offload
        said.append(
            f"recomputation: {modules}, the least that fits" + (f", with {moved:.0%} on the host" if moved else "")
        )
    return configuration, said


def _require(row: Mapping[str, Any]) -> None:
    for part, keys in (("model", ("seq",)), ("hardware", ("gpu",)), ("parallel", ("tp", "pp")), ("batch", ())):
        if not isinstance(row.get(part), dict):
            raise InputError(f"the row has no '{part}'", field=part)
        for key in keys:
            if row[part].get(key) is None:
                raise InputError(f"the row does not say {part}.{key}", field=f"{part}.{key}")


def _data(row: Mapping[str, Any], model: ModelShape, others: int) -> tuple[int, list[str]]:
    """Replicas: as printed, what the GPUs leave, what the measured state says, or the fewest that hold the experts."""
    parallel, hardware = row["parallel"], row["hardware"]
    if parallel.get("dp"):
        return int(parallel["dp"]), []
    if hardware.get("count"):
        return max(1, int(hardware["count"]) // others), []
    if allocated := row.get("measured", {}).get("allocated_gib"):
        replicas = replicas_by_state(row, float(allocated), model)
        return replicas, [f"replicas: {replicas}, whose state comes nearest to what was allocated between steps"]
    experts = int(parallel.get("ep", 1)) * int(parallel.get("etp", 1))
    inside = int(parallel["tp"]) * int(parallel.get("cp", 1))
    fewest = max(1, -(-experts // inside))
    return fewest, [f"replicas: {fewest}, the fewest that hold the experts"]


def _batch(batch: Mapping[str, Any], data: int, pipeline: int) -> tuple[int, int, list[str]]:
    """Microbatch size, global batch, and what was assumed."""
    said = []
    micro = batch.get("micro")
    if micro is None:
        micro = 1
        said.append("microbatch size: 1")
    count = batch.get("microbatches")
    whole = batch.get("global")
    if whole is None:
        if count is None:
            count = 1 if pipeline == 1 else 4 * pipeline
            said.append(
                "microbatches: 1, for there is one pipeline rank"
                if pipeline == 1
                else f"microbatches: {count}, four times the ranks"
            )
        whole = int(count) * int(micro) * data
    return int(micro), int(whole), said


def _recompute(row: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The modules of a row's words, or of its notes where it has none; None where they say nothing."""
    text = row.get("recompute") or row.get("notes") or ""
    for words, modules in _RECOMPUTE:
        if re.search(words, text):
            return modules
    return None


def _has_sequence_parallelism(trainer: str) -> bool:
    """Whether tensor parallelism comes with sequence parallelism where nobody says: since Megatron Core."""
    return trainer not in _EARLY


def _zero(row: Mapping[str, Any], trainer: str) -> Any:
    parallel = row["parallel"]
    sharded = parallel.get("fsdp") or re.search(r"\bFSDP\b", row.get("framework") or "")
    if sharded:
        return 2 if "GRAD" in str(sharded).upper() else 3
    if parallel.get("zero") is not None:
        return int(parallel["zero"])
    return 0 if trainer in _EARLY else 1
