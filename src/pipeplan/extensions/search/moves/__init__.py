"""The moves of the annealing: each is a small change that is proposed, applied, and undone if it does not pay."""

from pipeplan.extensions.search.moves.move import Move, moves_for
from pipeplan.extensions.search.moves.table import MOVES

__all__ = ["MOVES", "Move", "moves_for"]
