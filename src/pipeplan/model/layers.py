"""Kinds of a model's layers, as workloads and layouts name them."""

from __future__ import annotations

from typing import Literal, TypeAlias

LayerKind: TypeAlias = Literal["embedding", "dense", "moe", "mtp", "head", "loss"]
