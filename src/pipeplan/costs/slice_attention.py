"""Slices of a sequence that differ, because causal attention makes later ones longer.

Of k slices with equally many tokens, slice q attends to its own tokens and to those of the q slices before it. Its
attention is proportional to 2q + 1, and the mean over the slices is k. If a share a of an op's time on the whole sequence
is attention, the op of slice q takes ``1 - a + a (2q + 1) / k`` times its equal share. The slices together take as long as
the whole sequence.

The attention of a backward for inputs is twice that of the forward, and a backward for weights has none, as in
``microbatch_factors``. Bytes do not differ. SlimPipe (Li et al., 2025, arXiv:2504.14519) exchanges the
attention work between ranks, so that all slices take equally long; that is the same as a share of 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.foundation.errors import CostError
from pipeplan.model import Floats, Kind


@dataclass(frozen=True, slots=True, eq=False)
class SliceAttention:
    """Shares of attention in the times of each stage for a whole sequence, arrays of shape (stages,).

    Attributes
    ----------
    forward
        Share in F and R.
    backward_input, backward_weight
        Share in I and in W. A full backward has their mean, weighted by the two times of its microbatch.
    """

    forward: Floats
    backward_input: Floats
    backward_weight: Floats

    @classmethod
    def of(cls, forward: Floats) -> SliceAttention | None:
        """Return the shares that follow from those in the forwards, shape (stages,); None if all are 0.

        Raises CostError for a share that is not from 0 to 1.
        """
        if wrong := [value for value in forward.tolist() if not 0 <= value <= 1]:
            raise CostError(f"slice attention must be from 0 to 1, not {wrong[0]:g}", field="slice_attention")
        return cls(forward, 2 * forward / (1 + forward), np.zeros(len(forward))) if forward.any() else None

    def in_kind(self, kind: Kind, inputs: Floats, weights: Floats) -> Floats:
        """Return the share of attention in the times of a kind, in the shape of ``inputs`` and ``weights``.

        These are the times of I and W, shape (stages, microbatches); (stages, 1) if microbatches are alike.
        """
        forward, of_inputs, of_weights = (
            np.broadcast_to(share[:, None], inputs.shape)
            for share in (self.forward, self.backward_input, self.backward_weight)
        )
        if kind == Kind.B:
            both: Floats = (inputs * of_inputs + weights * of_weights) / (inputs + weights)
            return both
        return {Kind.I: of_inputs, Kind.W: of_weights}.get(kind, forward)


def factors_of_slices(share: Floats, part: NDArray[np.integer], slices: int) -> Floats:
    """Return the factor of each op on its equal share of the time of a whole sequence.

    Parameters
    ----------
    share, part
        Share of attention in the time of each op, and its slice, arrays of one shape.
    """
    factors: Floats = 1.0 + share * (2 * part.astype(np.int64) + 1 - slices) / slices
    return factors
