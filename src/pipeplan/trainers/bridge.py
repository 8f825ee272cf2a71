"""Megatron-Bridge: the configuration of a plan as Python code on top of one of its recipes; see ``bridge_plan``."""

from __future__ import annotations

from pipeplan.trainers.megatron import environment, read_layout, write_layout
from pipeplan.trainers.trainer import Trainer

TRAINER = Trainer(
    name="bridge",
    title="Megatron-Bridge",
    software="megatron-bridge-26.04",
    schedules=frozenset({"1f1b", "interleaved-1f1b"}),
    plans="pipeplan.trainers.bridge_plan",
    environment=environment,
    write_layout=write_layout,
    read_layout=read_layout,
    package="Megatron-Bridge",
    releases=("0.3", "0.4", "0.5", "0.6", "main"),
    latest="0.3",
)
