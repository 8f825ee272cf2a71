"""Published runs: a row of a file of them made a model, a cluster and a configuration, with what had to be assumed.

A row names its source, model, hardware, degrees, batch and what was measured; what it does not say is assumed by a rule,
and the rule is said. A row that is no prediction of a whole step (times of layers or stages, models without a shape) is
refused in one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeplan.documents import read_document
from pipeplan.errors import FormatError, PipeplanError
from pipeplan.files import MEBIBYTE
from pipeplan.hardware import Cluster
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.published_runs.form import require_form
from pipeplan.planner.published_runs.hardware import cluster_of
from pipeplan.planner.published_runs.measured import Measured, measured_of
from pipeplan.planner.published_runs.replicas import expert_tensor_of, replicas_by_state
from pipeplan.planner.published_runs.schedules import Named, chunks_of, layout_from, scheduled
from pipeplan.planner.published_runs.software import precision_of, software_of
from pipeplan.planner.published_runs.unsaid import balanced_layout, lightest
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
    document = {key: _said(value) for key, value in document.items()}
    source, rival = document.get("source") or "", document.get("rival_prediction")
    row = Row(
        id=str(document.get("id", f"row {index}")),
        source=str(source.get("title", "")) if isinstance(source, dict) else str(source),
        rival=rival if isinstance(rival, dict) else {},
    )
    try:
        require_form(document)
        return _whole(document, row)
    except PipeplanError as error:
        return replace(row, refused=str(error))


def _said(value: Any) -> Any:
    """Without keys that hold nothing."""
    return {key: each for key, each in value.items() if each is not None} if isinstance(value, dict) else value


def _whole(document: Mapping[str, Any], row: Row) -> Row:
    """The row with what ran."""
    model = from_dict(document["model"])
    parallel, hardware = document["parallel"], document["hardware"]
    tensor, pipeline, context = parallel["tp"], parallel["pp"], parallel.get("cp") or 1
    data, said_data = _data(document, model, tensor * pipeline * context)
    cluster, said_cluster = cluster_of(hardware, tensor * pipeline * context * data)
    unsaid = "vp" in (document.get("assumed") or ())
    chunks, said_chunks = chunks_of(document.get("schedule"), pipeline, model.layers, parallel.get("vp"), unsaid)
    schedule = scheduled(document.get("schedule"), pipeline, chunks)
    trainer, said_software = _trainer(document, schedule)
    precision, said_precision = precision_of(document.get("precision"))
    micro, whole, said_batch = _batch(document.get("batch", {}), data, pipeline)
    configuration = Configuration(
        sequence=document["model"]["seq"],
        global_batch=whole,
        microbatch_size=micro,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        data=data,
        expert=parallel.get("ep") or 1,
        expert_tensor=expert_tensor_of(document, model),
        chunks=chunks,
        schedule=schedule.strategy,
        in_flight=None if schedule.in_flight is None else schedule.in_flight * pipeline,
        layers=layout_from(document.get("layout"), pipeline, chunks, model.layers),
        sequence_parallel=bool(parallel.get("sp", trainer not in _EARLY)) and tensor > 1,
        zero=_zero(document, trainer),
        precision=precision,
        recompute=_recompute(document) or (),
        software=trainer,
    )
    configuration, said_rest = _settled(document, model, cluster, configuration)
    said = (*said_data, *said_cluster, said_chunks, said_software, said_precision, *said_batch, *said_rest)
    return replace(
        row,
        model=model,
        cluster=cluster,
        configuration=configuration,
        measured=measured_of(document, model, cluster, configuration),
        assumed=tuple(each for each in said if each),
    )


def _trainer(row: Mapping[str, Any], schedule: Named) -> tuple[str, str]:
    """The software, of which some is told by the schedule or by ZeRO."""
    trainer, said = software_of(row)
    if schedule.barrier is False and trainer == "megatron-lm-2021":
        return "zero-bubble", said
    if trainer.startswith("megatron-lm-2021") and row["parallel"].get("zero") == 3:
        return "deepspeed-zero3", said
    return trainer, said


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


def _zero(row: Mapping[str, Any], trainer: str) -> Any:
    parallel = row["parallel"]
    sharded = parallel.get("fsdp") or re.search(r"\bFSDP\b", row.get("framework") or "")
    if sharded:
        return 2 if "GRAD" in str(sharded).upper() else 3
    if parallel.get("zero") is not None:
        return int(parallel["zero"])
    return 0 if trainer in _EARLY else 1
