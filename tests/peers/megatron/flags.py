"""Megatron-core's configuration from the flags that pipeplan writes.

Megatron-LM makes most of its flags from the fields of the configuration, a dash for an underscore, or as a field's metadata
says. Those flags are read by these fields here, so that one that no field has is refused. Three belong to Megatron-LM's
trainer, which the package does not ship; what it makes of them is written down here as its ``validate_args`` has it.
"""

import shlex
from argparse import ArgumentParser
from dataclasses import MISSING, dataclass, fields
from typing import Any

import torch
from megatron.core.transformer import TransformerConfig

OF_THE_TRAINER = {
    "--micro-batch-size": "micro_batch_size",
    "--global-batch-size": "global_batch_size",
    "--num-virtual-stages-per-pipeline-rank": "virtual_pipeline_model_parallel_size",
}
MIXTURE_OF_EXPERTS = {
    "num_moe_experts": 4,
    "expert_model_parallel_size": 2,
    "moe_token_dispatcher_type": "alltoall",
    "bf16": True,
}
"""What the text says that overlapped pairs need beside the flags."""


@dataclass(frozen=True)
class Configured:
    """What a text of flags asks for."""

    config: TransformerConfig
    micro_batch_size: int
    global_batch_size: int


def words_of(text: str) -> list[str]:
    """The flags of a bash array, without the comments before it."""
    return shlex.split(text.partition("PIPELINE_ARGS=(")[2].rpartition(")")[0])


def parser() -> ArgumentParser:
    """A flag for each field of the configuration that a flag can give, and the trainer's three."""
    made = ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for each in fields(TransformerConfig):
        names = each.metadata.get("argparse_meta", {}).get("arg_names", [f"--{each.name.replace('_', '-')}"])
        if "bool" in str(each.type):
            made.add_argument(*names, dest=each.name, action="store_true", default=MISSING)
        elif each.name != "virtual_pipeline_model_parallel_size":
            kind = int if "int" in str(each.type) else str
            made.add_argument(*names, dest=each.name, type=kind, default=MISSING)
    for flag, name in OF_THE_TRAINER.items():
        made.add_argument(flag, dest=name, type=int, default=MISSING)
    return made


def configured(text: str, *, layers_per_stage: int = 1, **users: Any) -> Configured:
    """The configuration that a text asks for, with the sizes of a small model and what the user gives beside it.

    ``layers_per_stage`` is for a text without a layout, which leaves the number of layers to the user.
    """
    given = {name: value for name, value in vars(parser().parse_args(words_of(text))).items() if value is not MISSING}
    batch = {name: given.pop(name) for name in ("micro_batch_size", "global_batch_size")}
    layout = given.get("pipeline_model_parallel_layout")
    chunks = given.pop("virtual_pipeline_model_parallel_size", 1)
    if layout is not None:
        assert chunks == 1, "Megatron-LM takes no number of chunks beside a layout"
        chunks = len(layout.split("|")) // given["pipeline_model_parallel_size"]
    else:
        given["num_layers"] = layers_per_stage * chunks * given["pipeline_model_parallel_size"]
    if given.get("overlap_moe_expert_parallel_comm"):
        given = MIXTURE_OF_EXPERTS | given
    interleaved = chunks > 1
    return Configured(
        TransformerConfig(
            **{
                "hidden_size": 8,
                "num_attention_heads": 1,
                "params_dtype": torch.float64,
                "pipeline_dtype": torch.float64,
                # Megatron-LM sets it; gloo, which sends without a stream, would read what is freed by then.
                "deallocate_pipeline_outputs": False,
                "virtual_pipeline_model_parallel_size": chunks if interleaved else None,
                "overlap_p2p_comm": interleaved,
                "batch_p2p_comm": not interleaved,
            }
            | given
            | users
        ),
        **batch,
    )
