"""What plans find: beside published configurations by the same model, in time and memory, and candidates a second.

For each published configuration the planner gets its model, cluster, batch, precision and trainer, and nothing else. Its
choice is compared with the published configuration by the same estimates, so that the ratio says what the search is
worth, not what the model is; beside it stands why the published one was not chosen. The second part is 10,000 estimates
of valid configurations on one worker and on two.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from itertools import islice

from pipeplan.errors import PipeplanError
from pipeplan.files import GIBIBYTE
from pipeplan.hardware import Cluster, cluster
from pipeplan.planner import Configuration, Estimate, estimate, plan
from pipeplan.planner.fitting import default_limit
from pipeplan.planner.selection.branching import Space
from pipeplan.planner.selection.candidates import as_configuration
from pipeplan.planner.selection.comparing import differences, lost_because
from pipeplan.planner.selection.request import PlanRequest
from pipeplan.planner.selection.trials import Trial, identity, tried
from pipeplan.sweeps import sweep
from pipeplan.workload import model

CANDIDATES = 10_000


@dataclass(frozen=True)
class Published:
    """A configuration that was published, and where."""

    model: str
    cluster: str
    configuration: Configuration
    source: str


def _llama_70b(data: int) -> Published:
    return Published(
        "llama3-70b",
        f"h100-sxm:8x{4 * data}",
        Configuration(
            sequence=8192,
            global_batch=64 * data,
            tensor=4,
            pipeline=4,
            context=2,
            data=data,
            chunks=5,
            schedule="interleaved-1f1b",
            sequence_parallel=True,
            software="nemo",
        ),
        "NVIDIA dgxc-benchmarking, llama3-70b bf16",
    )


PUBLISHED = (
    _llama_70b(2),
    _llama_70b(64),
    Published(
        "llama3.1-405b",
        "h100-sxm:8x2048",
        Configuration(
            sequence=8192,
            global_batch=2048,
            tensor=8,
            pipeline=16,
            data=128,
            chunks=8,
            schedule="interleaved-1f1b",
            sequence_parallel=True,
        ),
        "arXiv 2407.21783 table 4 (chunks assumed)",
    ),
    Published(
        "deepseek-v3",
        "h800-sxm:8x256",
        Configuration(
            sequence=4096,
            global_batch=15360,
            pipeline=16,
            data=128,
            expert=64,
            schedule="dualpipe",
            precision="fp8",
            recompute=("layernorm", "mla_up_proj"),
            software="hai-llm",
        ),
        "arXiv 2412.19437 sections 3.1, 3.2, 4.2",
    ),
)


def compare(published: Published, seconds: float, workers: int) -> None:
    """Print one line: the published configuration, the plan's, and what lies between them."""
    shape, machines, given = model(published.model), cluster(published.cluster), published.configuration
    begin = time.monotonic()
    found = plan(
        shape,
        machines,
        global_batch=given.global_batch,
        sequence=given.sequence,
        fix={"precision": given.precision, "software": given.software},
        seconds=seconds,
        workers=workers,
    )
    took = time.monotonic() - begin
    there = _estimate_of(published, shape, machines)
    print(f"{published.model} on {machines.gpus} {machines.gpu.name}: {published.source}")
    if found.best is None:
        print("  nothing fits")
        return
    if there is not None:
        print(f"  published {_line(there)}")
    print(f"  plan      {_line(found.best)}")
    print(f"            {differences(found.best.configuration, given)}")
    if there is not None:
        reason = lost_because(there, found.best, found.memory_limit)
        print(f"  published / plan {there.step_time / found.best.step_time:.3f}: {reason}")
        assert found.best.step_time <= there.step_time or there.peak_bytes > found.memory_limit, (
            "the published one is better"
        )
    counts = found.counts
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(
        f"  {took:.1f} s, {memory / 1024:.0f} MiB at most a process; {counts.legal:,} valid, {counts.over_memory:,} exceed "
        f"memory and {counts.too_slow:,} ruled out by bounds, {counts.estimated:,} estimated; complete: {found.complete}"
    )


def _estimate_of(published: Published, shape: object, machines: Cluster) -> Estimate | None:
    try:
        return estimate(shape, machines, published.configuration)  # type: ignore[arg-type]
    except PipeplanError as error:
        print(f"  the published configuration cannot be estimated: {error}")
        return None


def _line(found: Estimate) -> str:
    return f"{found.step_time:8.3f} s  MFU {found.mfu:.3f}  {found.peak_bytes / GIBIBYTE:6.1f} GiB"


def sample(count: int) -> tuple[PlanRequest, list[Configuration]]:
    """Legal configurations of Llama-3 70B on 512 GPUs, drawn evenly over frames and their variants."""
    machines = cluster("h100-sxm:8x64")
    request = PlanRequest(
        model=model("llama3-70b"),
        cluster=machines,
        global_batch=1024,
        sequence=8192,
        memory_limit=default_limit(machines),
    )
    space, choose = Space.of(request), random.Random(0)
    found: dict[Configuration, None] = {}
    frames = list(space.frames())
    while len(found) < count:
        frame = choose.choice(frames)
        order, saving = choose.choice(space.orders(frame)), choose.choice(space.savings(frame))
        found[as_configuration(request, {**frame, **order, **saving})] = None
    return request, list(found)


def candidates_a_second(count: int) -> None:
    """Print how many estimates a second one worker makes, and two."""
    request, configurations = sample(count)
    here = request.cluster
    trials = [Trial(each, here.nodes, here.per_node) for each in configurations]
    rates = []
    for workers in (1, 2):
        begin = time.monotonic()
        finished = sum(
            each.failure is None
            for each in sweep(
                partial(tried, model=request.model, cluster=here, calibration=None),
                [trial.task for trial in trials],
                answer=Estimate,
                asked=identity(request.model, here, None),
                workers=workers,
            )
        )
        rates.append(count / (time.monotonic() - begin))
        print(f"  workers {workers}: {rates[-1]:7.0f} candidates a second, {finished:,} of {count:,} estimated")
    print(f"  two workers / one: {rates[1] / rates[0]:.2f}")


def main() -> None:
    """All of it, each published configuration in a process of its own so that its memory is its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, help="compare this published configuration alone, counted from 0")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--candidates", type=int, default=CANDIDATES)
    given = parser.parse_args()
    if given.only is not None:
        for published in islice(PUBLISHED, given.only, given.only + 1):
            compare(published, given.seconds, given.workers)
        return
    for number in range(len(PUBLISHED)):
        options = ["--only", str(number), "--seconds", str(given.seconds), "--workers", str(given.workers)]
        subprocess.run([sys.executable, "-m", "benchmarks.planning", *options], check=True)
    print(f"{given.candidates:,} candidates, Llama-3 70B on 512 GPUs")
    candidates_a_second(given.candidates)


if __name__ == "__main__":
    main()
