"""Orders of microbatches for batch after batch, as a data loader needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pipeplan.answers.arguments import ScheduleLike, configured
from pipeplan.answers.simulating.simulate import ordered
from pipeplan.costs import Costs, SettingsLike, settings_given, settings_of
from pipeplan.extensions.search import Reorderer
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.records import Record
from pipeplan.model import Schedule

Batch = Sequence[float | Sequence[float]] | np.ndarray[Any, np.dtype[Any]]
"""Tokens of each microbatch, or of each of its documents."""


class Replan(Record, frozen=True, kw_only=True):
    """An order of the microbatches of a batch.

    Attributes
    ----------
    order
        The microbatch of the batch that the schedule runs as microbatch 0, as microbatch 1, and so on.
    makespan
        Makespan of the step in this order.
    given
        Makespan with the microbatches in the order of the batch.
    fits
        True if every rank is within its memory limit in this order. An order within the limit is preferred to one that is
        not; of two orders that are both within it, or both not, the shorter one.
    """

    order: list[int]
    makespan: float
    given: float
    fits: bool

    @property
    def gain(self) -> float:
        """Return the share of the makespan that the order saves."""
        return 1 - self.makespan / self.given


class Replanner:
    """Orders the microbatches of one batch after the other for a schedule; the ops of its ranks keep their order.

    Calling it takes milliseconds. If no order that it finds is within the memory limit, the result is at most as long as
    the order of the batch, and its ``fits`` is False.

    Parameters
    ----------
    schedule
        A strategy's name, a file, or a schedule, such as the one of :func:`pipeplan.search`.
    settings
        Shape and costs, with the rule of how times depend on lengths (``attention_share``, ``reference_length``): a
        ``Settings``, ``Costs``, a mapping, or a config file. Its own lengths and factors are
        those of another batch, and ignored.
    **options
        Settings that override these.

    Raises
    ------
    InputError
        For what :func:`pipeplan.simulate` raises it.

    Examples
    --------
    >>> replanner = pipeplan.Replanner("1f1b", ranks=2, microbatches=4)
    >>> replanner([900, 4000, 500, 2000])
    (2, 3, 1, 0)
    """

    def __init__(
        self,
        schedule: ScheduleLike = "1f1b",
        settings: SettingsLike | Costs | None = None,
        **options: Any,
    ) -> None:
        base = settings_of(settings) if isinstance(settings, Costs) else settings
        own = configured({**options, "settings": base})[1]
        self._settings = replace(own, lengths=None, microbatch_factors=None)
        self._source = schedule
        self._reorderers: dict[int, Reorderer] = {}
        if self._settings.microbatches is not None or isinstance(schedule, Schedule):
            self._reorderer(self._settings.microbatches)

    def __call__(self, lengths: Batch) -> tuple[int, ...]:
        """Return the order: the schedule runs microbatch ``order[0]`` of the batch as its microbatch 0, and so on.

        Parameters
        ----------
        lengths
            Tokens of each microbatch of the batch, or of each of its documents.

        Raises
        ------
        InputError
            For lengths that are not more than 0, or of another number than the schedule has microbatches.
        """
        return tuple(self.plan(lengths).order)

    def plan(self, lengths: Batch) -> Replan:
        """Return the order with the makespans of it and of the given order; see :meth:`__call__`."""
        typed = settings_given({"lengths": lengths})["lengths"]
        reorderer = self._reorderer(self._settings.microbatches or len(typed))
        if len(typed) != reorderer.schedule.microbatches:
            raise InputError(
                f"lengths: {len(typed)} values for {reorderer.schedule.microbatches} microbatches", field="lengths"
            )
        factors = replace(self._settings, lengths=typed).factors(reorderer.schedule.placement)
        assert factors is not None
        found = reorderer(factors)
        return Replan(
            order=found.order.tolist(),
            makespan=found.reordered.timeline.makespan,
            given=found.given.timeline.makespan,
            fits=found.fits,
        )

    def _reorderer(self, microbatches: int | None) -> Reorderer:
        known = self._reorderers.get(microbatches or 0)
        if known is not None:
            return known
        rule = {"reference_length": None, "attention_share": None, "attention_model": None}
        settings = replace(self._settings, **rule, microbatches=microbatches)  # type: ignore[arg-type]
        schedule = ordered(self._source, settings, posted=False)
        costs, limits = settings.costs(schedule.placement), settings.limits(schedule.placement)
        made = Reorderer(schedule, costs, limits, settings.communication)
        self._reorderers[microbatches or 0] = self._reorderers[schedule.microbatches] = made
        return made
