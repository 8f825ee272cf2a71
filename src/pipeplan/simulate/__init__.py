"""A plan and its costs give a timeline, memory, and a bound."""

from pipeplan.simulate.bounds import Bound, lower_bound
from pipeplan.simulate.memory import memory_use
from pipeplan.simulate.simulator import Communication, Simulation, simulate

__all__ = ["Bound", "Communication", "Simulation", "lower_bound", "memory_use", "simulate"]
