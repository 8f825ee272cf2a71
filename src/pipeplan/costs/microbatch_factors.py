"""Factors of microbatches that differ, given as numbers or following from the tokens of each microbatch.

A microbatch of T tokens whose documents have d1, d2, ... tokens takes the following times and bytes, relative to one of
``reference_length`` tokens R in one document; a is the share of the forward that is attention, at that length::

    forward          (1 - a) T / R + a (d1^2 + d2^2 + ...) / R^2
    backward, inputs the same with 2 a / (1 + a): the backward of attention is twice its forward
    backward, weights T / R: attention has no weights
    memory, messages T / R

These are the terms of a transformer's FLOPs and activations that are linear and quadratic in the length (Korthikanti et al.,
"Reducing Activation Recomputation in Large Transformer Models", MLSys 2023, with attention that keeps no scores).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeplan.foundation.errors import CostError
from pipeplan.foundation.extensions import required_service
from pipeplan.model import Floats

SMALLEST_FACTOR, LARGEST_FACTOR = 1e-6, 1_000_000
"""Range of factors: products with any time stay within the range of floats."""

Lengths = tuple[float | tuple[float, ...], ...]
"""Tokens of each microbatch: one number, or those of each of its documents."""


FactorTable = tuple[float | tuple[float, ...], ...]
"""One factor per microbatch, or such a list for each stage or rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorTables:
    """Tables of factors as a setting and a file have them, where times and bytes have different ones.

    Attributes
    ----------
    forward, backward_input, backward_weight, size
        As in :class:`MicrobatchFactors`.
    """

    forward: FactorTable
    backward_input: FactorTable
    backward_weight: FactorTable
    size: FactorTable


@dataclass(frozen=True, slots=True, eq=False)
class MicrobatchFactors:
    """Factors of each microbatch on the costs of each stage, arrays of shape (stages, microbatches).

    Attributes
    ----------
    forward
        Factor on the times of F and R.
    backward_input, backward_weight
        Factor on the times of I and of W. A full backward has their mean, weighted by the two times.
    size
        Factor on the bytes of activations, of their copies to the host, and of the messages that the stage sends to the next
        one and gets back from it.
    """

    forward: Floats
    backward_input: Floats
    backward_weight: Floats
    size: Floats

    def __post_init__(self) -> None:
        for name in self.__slots__:
            values = getattr(self, name)
            if values.shape != self.forward.shape or values.ndim != 2 or not values.size:
                raise CostError(
                    f"microbatch factors: {values.shape} values of {name}; expected one per stage and microbatch",
                    field="microbatch_factors",
                )
            wrong = np.argwhere(~((values >= SMALLEST_FACTOR) & (values <= LARGEST_FACTOR)))
            if len(wrong):
                stage, microbatch = wrong[0].tolist()
                raise CostError(
                    f"factor of microbatch {microbatch} must be from {SMALLEST_FACTOR:g} to {LARGEST_FACTOR:g}, not "
                    f"{values[stage, microbatch]:g}",
                    field="microbatch_factors",
                )

    @classmethod
    def of(cls, tables: FactorTable | FactorTables, rank_of: Sequence[int]) -> MicrobatchFactors:
        """Return the factors of a setting on stages, of which ``rank_of`` has the rank of each.

        Raises CostError for lists of other lengths than stages, ranks and microbatches.
        """
        names = cls.__slots__
        if isinstance(tables, FactorTables):
            return cls(*(_array_of(getattr(tables, name), rank_of) for name in names))
        return cls(*[_array_of(tables, rank_of)] * len(names))

    @property
    def tables(self) -> FactorTable | FactorTables:
        """Return the value of the setting with these factors: one table if that is enough."""
        tables = {name: _table_of(getattr(self, name)) for name in self.__slots__}
        first = tables["forward"]
        return first if all(table == first for table in tables.values()) else FactorTables(**tables)

    @property
    def all(self) -> Floats:
        """All factors, shape (4 x stages, microbatches)."""
        return np.vstack([getattr(self, name) for name in self.__slots__])

    @property
    def microbatches(self) -> int:
        """Number of microbatches."""
        return int(self.forward.shape[1])

    def with_median(self, microbatch: int) -> MicrobatchFactors:
        """Return the factors with one microbatch that has the median of each."""
        here = np.arange(self.microbatches) == microbatch
        medians = (np.median(getattr(self, name), axis=1, keepdims=True) for name in self.__slots__)
        return MicrobatchFactors(
            *(np.where(here, median, getattr(self, name)) for median, name in zip(medians, self.__slots__, strict=True))
        )

    def relative_to(self, units: Callable[[Floats], Floats]) -> MicrobatchFactors:
        """Return the factors divided by what ``units`` makes of each array, of shape (stages, 1)."""
        arrays = (getattr(self, name) for name in self.__slots__)
        return MicrobatchFactors(*(array / units(array) for array in arrays))

    def taken(self, microbatches: Sequence[int]) -> MicrobatchFactors:
        """Return the factors of some microbatches, in this order."""
        order = list(microbatches)
        return MicrobatchFactors(*(getattr(self, name)[:, order] for name in self.__slots__))


def _array_of(table: FactorTable, rank_of: Sequence[int]) -> Floats:
    """Return a table, with a row for all stages, one per stage or one per rank, as an array (stages, microbatches)."""
    stages, ranks = len(rank_of), len(set(rank_of))
    rows = [row for row in table if isinstance(row, tuple)]
    if not rows:
        return np.broadcast_to(np.array(table, np.float64), (stages, len(table)))
    if len(table) not in (stages, ranks) or len(rows) != len(table) or len({len(row) for row in rows}) > 1:
        of_ranks = "" if ranks == stages else f" or {ranks} ranks"
        raise CostError(
            f"microbatch factors: {len(table)} rows, not all of them lists of one length; expected one number per "
            f"microbatch, or a list of these for each of {stages} stages{of_ranks}",
            field="microbatch_factors",
        )
    values = np.array(rows, np.float64)
    return values if len(table) == stages else values[list(rank_of)]


def _table_of(factors: Floats) -> FactorTable:
    """Return an array as a table, with one row for all stages if they are the same."""
    if (factors == factors[0]).all():
        return tuple(factors[0].tolist())
    return tuple(tuple(row) for row in factors.tolist())


def microbatches_of(tables: FactorTable | FactorTables) -> int:
    """Return the number of microbatches of a setting's factors."""
    table = tables.forward if isinstance(tables, FactorTables) else tables
    return len(table[0]) if isinstance(table[0], tuple) else len(table)


def factors_of_lengths(lengths: Lengths, share: Floats, reference: float | None = None) -> MicrobatchFactors:
    """Return the factors of microbatches of these tokens.

    Parameters
    ----------
    lengths
        Tokens of each microbatch, or of each of its documents.
    share
        Share of each stage's forward that is attention at the reference length, shape (stages,).
    reference
        Tokens of the microbatch that the costs are for; None: the mean of ``lengths``.
    """
    tokens = tokens_of(lengths)
    squares = np.array([np.square(np.atleast_1d(length)).sum() for length in lengths], np.float64)
    unit = float(tokens.mean()) if reference is None else reference
    linear, quadratic = tokens / unit, squares / unit**2
    share = share[:, None]
    twice = 2 * share / (1 + share)
    whole = np.broadcast_to(linear, (len(share), len(linear)))
    return MicrobatchFactors(
        forward=(1 - share) * linear + share * quadratic,
        backward_input=(1 - twice) * linear + twice * quadratic,
        backward_weight=whole,
        size=whole,
    )


def tokens_of(lengths: Lengths) -> Floats:
    """Return the tokens of each microbatch, shape (microbatches,)."""
    return np.array([np.sum(length) for length in lengths], np.float64)


def attention_share_of(model: str, tokens: float) -> float:
    """Return the share of a layer's forward FLOPs that grows with the square of the length, at a length in tokens.

    Windowed attention and recurrences are linear in the length and do not count.
    """
    share: float = required_service("planning", "attention_share")(model, tokens)
    return share
