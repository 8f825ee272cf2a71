"""Primus's own reader of experiment files, Megatron-LM's ``validate_args`` on what it makes of them, and its schedulers.

In a process of its own, without a GPU. What is missing here is replaced by stand-ins, as for Megatron-LM's trainer.
"""

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from tests.peers.megatron import trainer
from tests.peers.megatron.expected import plain
from tests.peers.stand_ins import gpu

KINDS = {"F": "F", "B": "I", "W": "W", "BW": "B"}
"""Our kinds of Primus's compute nodes."""


@dataclass(frozen=True)
class Case:
    """An experiment file, the arguments that it must set, and the ops of each rank where Primus orders them itself."""

    text: str
    wanted: dict[str, Any]
    gpus: int
    rows: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True)
class Job:
    """Cases by name; the sources of Primus and of the Megatron-LM that it is for, and a folder to write to."""

    sources: tuple[str, str]
    folder: str
    cases: dict[str, Case]


def main(job: Job) -> dict[str, dict[str, str]]:
    """What of each case is not as wanted; a refusal stands under the name of its error."""
    root = Path(job.folder, "root")
    (root / "third_party").mkdir(parents=True)
    primus, megatron = job.sources
    (root / "primus").symlink_to(Path(primus, "primus"))
    (root / "third_party" / "Megatron-LM").symlink_to(megatron)
    sys.path.insert(0, str(root))
    with mock.patch.object(torch, "compile", lambda function, **_: function):
        arguments = trainer.imported(Path(megatron), "loguru", "termcolor")
    schema = import_module("primus.core.config.schema_check")
    known = schema.build_schema(root, "megatron"), schema.build_allowlist(root, "megatron", None)
    return {name: judged(arguments, schema, known, root, case) for name, case in job.cases.items()}


def judged(arguments: Any, schema: Any, known: tuple[Any, Any], root: Path, case: Case) -> dict[str, str]:
    path = root / "experiment.yaml"
    path.write_text(case.text)
    users = {"PRIMUS_MODEL": "llama3_70B", "WORLD_SIZE": str(case.gpus), "RANK": "0", "LOCAL_RANK": "0"}
    with mock.patch.dict(os.environ, users), gpu("MI300X", "hopper", gib=192):
        unknown, _ = schema.scan_file(path, "megatron", *known, "experiment.yaml")
        faults = {finding.key: "not a key of Primus's or Megatron-LM's" for finding in unknown}
        experiment = import_module("primus.core.config.primus_config").load_primus_config(path)
        [module] = experiment.modules
        keys = vars(module.params)
        builder = import_module("primus.backends.megatron.argument_builder").MegatronArgBuilder()
        parsed = builder.update({name: value for name, value in keys.items() if name not in OF_PRIMUS}).finalize()
        parsed.apply_rope_fusion = False  # needs Transformer Engine
        try:
            arguments.validate_args(parsed)
            config = arguments.core_transformer_config_from_args(parsed)
            rows = None if case.rows is None else rows_of(keys, parsed)
        except (AssertionError, RuntimeError, TypeError, ValueError) as error:
            return faults | {type(error).__name__: str(error)}
    values = keys | vars(parsed) | {name: value for name, value in vars(config).items() if name in case.wanted}
    faults |= {
        name: f"{plain(name, values, case.wanted)!r}, wanted: {value!r}"
        for name, value in case.wanted.items()
        if plain(name, values, case.wanted) != value
    }
    if rows != case.rows:
        faults["order"] = f"{keys['pp_algorithm']} runs other ops"
    return faults


OF_PRIMUS = ("tokenizer_type", "tokenizer_model", "attention_backend")
"""Keys of a model that need what is not here: a tokenizer and kernels."""


def rows_of(keys: dict[str, Any], parsed: Any) -> tuple[tuple[str, ...], ...]:
    """The ops of each rank that Primus's own pipeline runs; chunks are on a V if there are two."""
    ranks, chunks = parsed.pipeline_model_parallel_size, parsed.virtual_pipeline_model_parallel_size or 1
    microbatches = parsed.global_batch_size // (parsed.micro_batch_size * parsed.data_parallel_size)
    factory = import_module("primus.core.pipeline_parallel.scheduler.schedule_table_factory")
    table = factory.produce_schedule_instance(
        keys["pp_algorithm"], ranks, chunks, microbatches
    ).generate_schedule_table()
    return tuple(
        tuple(
            f"{rank if node.chunk == 0 else 2 * ranks - 1 - rank}{KINDS[node.func_type.name]}{node.mini_batch}"
            for node in row
            if node.func_type.name in KINDS
        )
        for rank, row in enumerate(table)
    )
