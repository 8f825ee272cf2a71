"""Kernels written as C, and compiled: for builds, which import nothing else of pipeplan, and for moves from outside."""
