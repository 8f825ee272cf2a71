"""Runs and profiles of real models, and costs out of runs."""
