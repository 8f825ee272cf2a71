"""Proofs: the problem in whole numbers, as constraints for CP-SAT, and the engine that runs it."""
