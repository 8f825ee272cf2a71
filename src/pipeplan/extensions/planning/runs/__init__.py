"""Runs that were made: their logs, their comparison with predictions, and what a ledger of them says about a machine."""
