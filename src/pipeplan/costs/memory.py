"""Memory that stages hold, and the memory limits of ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from pipeplan.foundation.errors import CostError
from pipeplan.model import (
    NOT_GIVEN,
    Bools,
    Floats,
    MemoryRule,
    MemoryUse,
    Placement,
    held_throughout,
    in_activations,
    kept_and_moved,
    require_range,
    tolerances,
)


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Memory limit of every rank, shape (ranks,): in bytes including static memory, or in activations."""

    values: Floats
    in_activations: bool

    def exceeded(self, memory: MemoryUse) -> Bools:
        """Return a mask of the ranks that hold more than their limit, shape (ranks,)."""
        held = memory.peak_activation if self.in_activations else memory.peak_bytes
        assert held is not None
        over: Bools = held > self.values * (1 + tolerances.MEMORY)
        return over


def _not_given() -> Floats:
    return NOT_GIVEN


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Memory of the stages, each array of shape (stages,).

    Attributes
    ----------
    activation
        Memory held from the start of a forward for one microbatch; in bytes, or in activations if bytes are unknown.
    freed_by_weight
        Part of it that only W frees; I frees the rest, and B all of it. If it exceeds the activation, I allocates the
        rest.
    static
        Bytes of parameters, gradients and optimizer state of one copy of the stage.
    in_bytes
        True if ``activation`` is in bytes.
    recompute_keeps
        Part of the activation that a recomputed forward keeps, the input of the recomputation; default 0.
    offloaded
        Part of the activation that an offload copies to the host; default all.
    factors
        Factor of each microbatch on all activations and their parts, shape (stages, microbatches); empty if microbatches
        are alike.
    parameters, gradients
        Bytes of a stage's gathered parameters (from UNSHARD to RESHARD), and of its whole gradients (from the start of the
        first B or W to WAIT_REDUCE_GRAD); empty for none.

    Raises
    ------
    CostError
        If a size is too large or too small, or a part exceeds its whole.
    """

    activation: Floats
    freed_by_weight: Floats
    static: Floats
    in_bytes: bool
    recompute_keeps: Floats = field(default_factory=_not_given)
    offloaded: Floats = field(default_factory=_not_given)
    factors: Floats = field(default_factory=_not_given)
    parameters: Floats = field(default_factory=_not_given)
    gradients: Floats = field(default_factory=_not_given)

    def __post_init__(self) -> None:
        kept, moved = kept_and_moved(self.activation, self.recompute_keeps, self.offloaded)
        object.__setattr__(self, "recompute_keeps", kept)
        object.__setattr__(self, "offloaded", moved)
        self._require_part("recompute_bytes", kept)
        self._require_part("offload_bytes", moved)
        require_range("activation bytes", self.activation, divides=True, field="activation_bytes")
        require_range("weight activation bytes", self.freed_by_weight, field="weight_activation_bytes")
        require_range("static bytes", self.static, field="static_bytes")
        for name, sizes in (("parameter", self.parameters), ("gradient", self.gradients)):
            self._require_sizes(f"{name}_bytes", sizes)

    def _require_part(self, field: str, part: Floats) -> None:
        """Raise CostError unless a part is at most the activation on every stage."""
        words = field.replace("_", " ")
        if len(part) != len(self.activation):
            raise CostError(
                f"{words}: {len(part)} values for {len(self.activation)} stages; expected one per stage", field=field
            )
        wrong = np.flatnonzero(~((part >= 0) & (part <= self.activation * (1 + tolerances.ROUNDING))))
        if wrong.size:
            stage = int(wrong[0])
            unit = "bytes" if self.in_bytes else "activations"
            raise CostError(
                f"{words} of stage {stage} must be from 0 to its activation, {self.activation[stage]:g} {unit}, "
                f"not {part[stage]:g}",
                field=field,
            )

    def _require_sizes(self, field: str, sizes: Floats) -> None:
        """Raise CostError unless there are no sizes, or one per stage, all of at least 0."""
        words = field.replace("_", " ")
        if len(sizes) not in (0, len(self.activation)):
            raise CostError(
                f"{words}: {len(sizes)} values for {len(self.activation)} stages; expected one per stage", field=field
            )
        if (wrong := np.flatnonzero(~(sizes >= 0))).size:
            stage = int(wrong[0])
            raise CostError(f"{words} of stage {stage} must be at least 0, not {sizes[stage]:g}", field=field)
        require_range(words, sizes, field=field)

    def uniform(self, reduce: Callable[..., Floats] = np.mean) -> Memory:
        """Return the memory of equal microbatches; see :meth:`Costs.uniform <pipeplan.costs.Costs.uniform>`."""
        if not self.factors.size:
            return self
        factor = reduce(self.factors, axis=1)
        return replace(
            self,
            activation=self.activation * factor,
            freed_by_weight=self.freed_by_weight * factor,
            recompute_keeps=self.recompute_keeps * factor,
            offloaded=self.offloaded * factor,
            factors=NOT_GIVEN,
        )

    def rule(self, placement: Placement, limits: Limits | None) -> MemoryRule:
        """Return the memory rule of a placement: in bytes if the limits are in bytes, else in activations.

        Raises
        ------
        CostError
            If there is not one limit per rank, or limits are in bytes but activations are not.
        """
        if limits is not None and len(limits.values) != placement.ranks:
            raise CostError(
                f"memory limit: {len(limits.values)} values for {placement.ranks} ranks", field="memory_limit"
            )
        if limits is None or limits.in_activations:
            limit = np.full(placement.ranks, np.inf) if limits is None else limits.values
            held, freed, kept, moved = in_activations(
                placement, self.activation, self.freed_by_weight, self.recompute_keeps, self.offloaded
            )
            return MemoryRule(held, freed, limit, recompute_keeps=kept, offloaded=moved, factors=self.factors)
        if not self.in_bytes:
            raise CostError(
                "a memory limit in bytes needs activation bytes; set them, or use a limit in activations",
                field="memory_limit",
            )
        static = held_throughout(placement, self.static)
        limit = limits.values - static
        sizes = self.activation, self.freed_by_weight
        parts = self.recompute_keeps, self.offloaded, self.factors, self.parameters, self.gradients, static
        return MemoryRule(*sizes, limit, "bytes", *parts)
