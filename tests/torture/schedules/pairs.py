"""The suite ``pairs``: random schedules with pairs whose time depends on both stages, against the slow simulator."""

from functools import partial

from tests.torture.schedules import simulations

attempt = partial(simulations.attempt, pairs=True)
