"""What a trainer's framework holds in memory, by its software: formats of state, placeholders, workspaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeplan.planner.software import software
from pipeplan.workload import Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRules:
    """One trainer's.

    Attributes
    ----------
    gradient_bytes
        Of an accumulated gradient.
    masters
        Where 32-bit parameters are: ``beside`` 16-bit ones, or ``only`` these.
    placeholders
        Whether a 16-bit tensor of each shape of weights stands for gradients that were added in place (Transformer Engine
        from 2.3 on, ``get_dummy_wgrad``).
    workspace
        Of the matrix library; bytes.
    """

    gradient_bytes: float = 4
    masters: Literal["beside", "only"] = "beside"
    placeholders: bool = True
    workspace: float = 32 * 2**20

    def weight_bytes(self, precision: Precision) -> float:
        """Of a parameter that products read."""
        return 2.0 if precision else 2.0


def memory_rules(name: str) -> MemoryRules:
    """Of the trainer of this name.

    Raises
    ------
    UnknownNameError
        For software that nobody knows.
    """
    trainer = software(name)
    if trainer.name.startswith("torchtitan") or trainer.name == "llm-foundry":
        return MemoryRules(gradient_bytes=4, masters="only", placeholders=False)
    if trainer.name in {"megatron-lm-2021", "megatron-deepspeed"}:
        return MemoryRules(placeholders=False, workspace=0)
    return MemoryRules(gradient_bytes=4 if trainer.fp32_gradients else 2)
