"""The suite ``pairs``: random schedules with pairs whose time depends on both stages, against the slow simulator."""

from __future__ import annotations

from tests.torture.schedules import simulations


def attempt(seed: int) -> None:
    """One schedule with pairs on times of pairs, mostly from segments or a matrix."""
    simulations.attempt(seed, pairs=True)
