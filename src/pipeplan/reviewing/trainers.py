"""Trainers that a review knows, with the groups of rules that apply to each."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerKind:
    """Trainer of a configuration.

    Attributes
    ----------
    name, title
        Name in rows, and name in sentences.
    scopes
        Trainers and libraries whose rules apply, the trainer itself first.
    pattern
        Matches the names that rows and files give it.
    newest
        Newest release, whose rules apply if a configuration names none.
    core
        Release of Megatron-core that it comes with; empty: the newest.
    """

    name: str
    title: str
    scopes: tuple[str, ...]
    pattern: str
    newest: str = ""
    core: str = ""


_CORE = ("megatron-core", "transformer-engine")

TRAINER_KINDS = (
    TrainerKind(
        name="megatron-bridge", title="Megatron-Bridge", scopes=("megatron-bridge", *_CORE), newest="0.6",
        pattern=r"bridge",
    ),
    TrainerKind(name="nemo-rl", title="NeMo RL", scopes=("nemo-rl", "megatron-core"), pattern=r"^nemo-?rl$", core="0.16"),
    TrainerKind(name="primus", title="Primus", scopes=("primus", "megatron-lm", *_CORE), pattern=r"primus", core="0.16"),
    TrainerKind(name="ms-swift", title="ms-swift", scopes=("ms-swift", "megatron-core"), pattern=r"swift", core="0.15"),
    TrainerKind(name="verl", title="verl", scopes=("verl", "megatron-core"), pattern=r"\bverl\b", core="0.16"),
    TrainerKind(
        name="megatron-lm", title="Megatron-LM", scopes=("megatron-lm", *_CORE), newest="0.19",
        pattern=r"megatron|mcore|slime",
    ),
    TrainerKind(
        name="nemo-automodel", title="NeMo AutoModel", scopes=("nemo-automodel", "pytorch"), newest="0.5",
        pattern=r"automodel",
    ),
    TrainerKind(name="nemo", title="NeMo", scopes=("nemo", *_CORE), newest="2.5", pattern=r"nemo", core="0.14"),
    TrainerKind(
        name="torchtitan", title="torchtitan", scopes=("torchtitan", "pytorch"), newest="main", pattern=r"titan"
    ),
    TrainerKind(name="deepspeed", title="DeepSpeed", scopes=("deepspeed",), newest="0.19", pattern=r"deepspeed|neox"),
    TrainerKind(name="pytorch", title="PyTorch", scopes=("pytorch",), newest="2.13", pattern=r"pytorch|torch"),
)  # fmt: skip
"""Every trainer; the first whose pattern matches a name is meant."""

NEWEST = {kind.name: kind.newest for kind in TRAINER_KINDS} | {"megatron-core": "0.19", "transformer-engine": "2.17"}
"""Newest release of every trainer and library that has rules; empty: releases are not told apart."""

OTHER = TrainerKind(name="", title="the trainer", scopes=(), pattern=r"$^")
"""A trainer that a review does not know: only rules of every trainer apply."""


def trainer_kind(name: str | None) -> TrainerKind:
    """Return the trainer that a row or an option names; :data:`OTHER` if it is unknown.

    ``megatron-lm (slime)`` is Megatron-LM: what stands in brackets does not count unless nothing else is known.
    """
    text = str(name or "").lower()
    for part in (re.sub(r"\(.*?\)", "", text).strip(), text):
        kind = next((kind for kind in TRAINER_KINDS if re.search(kind.pattern, part)), None)
        if kind is not None:
            return kind
    return OTHER
