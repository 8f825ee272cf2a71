"""How fast the core is: against PyTorch's own code, at a million ops, and from a cold process.

Run with ``make bench``. Prints figures and ratios; asserts only known values (a makespan), never a time.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.model import Schedule
from pipeplan.simulation import Simulation, simulate
from pipeplan.strategies import strategy

Value = TypeVar("Value")


def cpu(job: Callable[[], Value], repeats: int = 5) -> tuple[float, Value]:
    """The least CPU seconds of some runs of a job, and what it gave."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        value = job()
        times.append(time.process_time() - begin)
    return min(times), value


def build(name: str, ranks: int, microbatches: int, chunks: int) -> Schedule:
    """A strategy's schedule."""
    rule = strategy(name)
    return rule(rule.shape(ranks, microbatches, chunks))


def build_check_simulate(name: str, ranks: int, microbatches: int, chunks: int) -> Simulation:
    """All that a prediction takes."""
    schedule = build(name, ranks, microbatches, chunks)
    check(schedule).require_valid()
    simulation = simulate(schedule, Settings().costs(schedule.placement))
    simulation.memory.peak_activation  # noqa: B018 - a lazy property
    simulation.bound  # noqa: B018
    return simulation


def first_call() -> None:
    """98,304 ops: CPU milliseconds of the first call in this process, and of later ones."""
    first, simulation = cpu(lambda: build_check_simulate("interleaved-zb", 32, 256, 4), repeats=1)
    later, _ = cpu(lambda: build_check_simulate("interleaved-zb", 32, 256, 4))
    print(
        f"{len(simulation.schedule)} ops: {1e3 * first:.0f} ms CPU in the first call, {1e3 * later:.0f} ms in later ones"
    )


def against_pytorch(ranks: int = 32, microbatches: int = 256, chunks: int = 4) -> None:
    """InterleavedZeroBubble built, lowered and simulated by PyTorch, and built, checked and simulated here."""
    try:
        from benchmarks.pytorch_simulation import build_lower_simulate
    except ImportError:
        print("PyTorch is not installed: its side of the comparison is left out")
        return
    theirs, steps = cpu(lambda: build_lower_simulate(ranks, microbatches, chunks), repeats=1)
    ours, simulation = cpu(lambda: build_check_simulate("interleaved-zb", ranks, microbatches, chunks))
    ops = len(simulation.schedule)
    print(f"interleaved-zb {ranks} x {microbatches} x {chunks}, {ops} ops, {steps} simulated steps in PyTorch")
    print(f"  PyTorch build + lower + simulate   {theirs:8.3f} s CPU")
    print(f"  pipeplan build + check + simulate  {ours:8.4f} s CPU")
    print(f"  ratio                              {theirs / ours:8.0f} x")


def large() -> None:
    """0.8 million ops: CPU seconds and bytes an op at the peak."""
    for name in ("interleaved-1f1b", "interleaved-zb"):
        seconds, simulation = cpu(lambda name=name: build_check_simulate(name, 64, 1024, 4))  # type: ignore[misc]
        ops = len(simulation.schedule)
        tracemalloc.start()
        build_check_simulate(name, 64, 1024, 4)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"{name} 64 x 1024 x 4: {ops} ops, {seconds:.3f} s CPU, {peak / ops:.0f} bytes an op at the peak")


def growth() -> None:
    """Nanoseconds an op from ten thousand to ten million ops."""
    print("ops          ns an op (build + check + simulate, interleaved-zb, 16 ranks, 4 chunks)")
    for microbatches in (52, 164, 520, 1644, 5208, 52_080):
        repeats = 5 if microbatches < 10_000 else 2
        seconds, simulation = cpu(lambda m=microbatches: build_check_simulate("interleaved-zb", 16, m, 4), repeats)  # type: ignore[misc]
        print(f"{len(simulation.schedule):9d}    {seconds / len(simulation.schedule) * 1e9:7.0f}")


def cold(*command: str) -> float:
    """CPU seconds of a fresh process, the least of five."""
    least = float("inf")
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least


def main() -> None:
    """Print all of it."""
    bare = cold("-c", "pass")
    print(f"python -c pass                                      {bare:.3f} s CPU")
    print(f"import pipeplan                                     {cold('-c', 'import pipeplan') - bare:.3f} s CPU more")
    command = ("-m", "pipeplan", "simulate", "-s", "4", "-b", "8", "--no-visualization")
    print(f"pipeplan simulate -s 4 -b 8 --no-visualization      {cold(*command):.3f} s CPU in all")
    first_call()
    assert build_check_simulate("1f1b", 4, 8, 1).timeline.makespan == 33
    large()
    growth()
    against_pytorch()


if __name__ == "__main__":
    main()
