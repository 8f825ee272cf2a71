"""The steady state: schedules that repeat, what each further microbatch costs, and proofs that it cannot cost less."""

from pipeplan.solver.periodic.pattern import Pattern
from pipeplan.solver.periodic.steady_states import SteadyState, steady_state

__all__ = ["Pattern", "SteadyState", "steady_state"]
