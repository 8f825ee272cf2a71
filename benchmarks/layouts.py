"""What the best layout of a model's layers gains over the best even split, at degrees that the model was trained with.

``python -m benchmarks.layouts`` prints tables in Markdown: a row a run. Of the runs in ``planning/published_runs.json`` (in
the folder ``shared`` beside the checkout) it takes those named here; where none of a preset is published, degrees that are
used for it. The first table is of times alone; in the second each stage may compute something else again, under the GPU's
memory, and the even split computes one thing again everywhere. ``--seconds`` is what each search may take.

It asserts that no layout is worse than the best even split, nor better than its bound.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from time import monotonic

from benchmarks.published_runs.files import read_runs
from pipeplan.extensions.planning import Configuration, estimate
from pipeplan.extensions.planning.choice.finalists import best_layout_of, held_besides
from pipeplan.extensions.planning.hardware import Cluster, cluster
from pipeplan.extensions.planning.workload import ModelShape, model
from pipeplan.extensions.search.layouts import BestLayout
from pipeplan.foundation.errors import PipeplanError
from pipeplan.strategies import strategy

FOLDER = Path(__file__).parents[2] / "shared" / "planning"
"""Where the published runs lie."""

PUBLISHED = (
    "zb-4-28.3B-p32-m96-b1-1F1B",
    "mtnlg-420",
    "dgxc-v25.02.02-gpt3-175b-bf16-H100-SXM-80GB-2048",
    "dgxc-v25.02.02-llama3-70b-bf16-H100-SXM-80GB-2048",
    "mbridge-26.04.01-LLAMA3_70B-DGX-H100-FP8-n64-b256",
    "mbridge-26.02.01-LLAMA3_70B-DGX-GB300-MXFP8-n64-b256",
    "folding-4-Mixtral-8x22B-MCore-1024",
    "golden-mixtral_8x7b_alltoall_tp2pp4ep4_release-h100-sxm-80gb",
    "mbridge-26.02.01-Qwen3_30B_a3B-DGX-H100-FP8-n16-b1024",
    "mbridge-25.09-DeepSeekV3-DGX-H100-FP8-n1024-b8192",
    "mbridge-26.04-DeepSeekV3-DGX-B300-MXFP8-n256-b4096",
    "deepseek-v3-2048",
)

DENSE = Configuration(sequence=8192, global_batch=256, tensor=8, sequence_parallel=True)
EXPERTS = Configuration(sequence=4096, global_batch=1024)
DEEP = replace(EXPERTS, pipeline=16, data=64, expert=64)
USUAL: tuple[tuple[str, str, Configuration], ...] = (
    ("llama-3-405b", "h100-sxm:8x16", replace(DENSE, global_batch=64, pipeline=16)),
    (
        "llama-3-405b",
        "h100-sxm:8x16",
        replace(DENSE, global_batch=64, pipeline=16, chunks=8, schedule="interleaved-1f1b"),
    ),
    ("nemotron-4-340b", "h100-sxm:8x12", replace(DENSE, sequence=4096, global_batch=64, pipeline=12)),
    ("qwen3-235b-a22b", "h100-sxm:8x32", replace(EXPERTS, pipeline=8, data=32, expert=32)),
    ("gpt-oss-120b", "h100-sxm:8x8", replace(EXPERTS, global_batch=256, pipeline=4, data=16, expert=16)),
    ("kimi-k2", "h100-sxm:8x128", DEEP),
    ("deepseek-v3", "h100-sxm:8x128", DEEP),
    (
        "deepseek-v3",
        "h100-sxm:8x128",
        replace(EXPERTS, global_batch=4096, pipeline=16, data=64, expert=64, chunks=2, schedule="dualpipev"),
    ),
    ("gemma-3-27b", "h100-sxm:8x4", replace(DENSE, tensor=4, global_batch=64, pipeline=8)),
    ("llama-3-70b", "h100-sxm:8x8", replace(DENSE, global_batch=64, pipeline=8)),
    ("llama-3-70b", "h100-sxm:8x8", replace(DENSE, global_batch=64, pipeline=8, schedule="zb-h1")),
    ("llama-3-70b", "h100-sxm:8x8", replace(DENSE, global_batch=64, pipeline=8, chunks=2, schedule="zbv")),
)
"""Presets without a published run of several ranks, and other schedules of those with one."""

CHOICES = ((), ("layernorm",), ("mla_up_proj",), ("mlp",), ("moe",), ("full",))
"""What a stage may compute again in the second table."""

Case = tuple[str, ModelShape, Cluster, Configuration]


def cases() -> Iterator[Case]:
    """Name, model, cluster and configuration of every row."""
    rows = {row.id: row for row in read_runs(FOLDER / "published_runs.json")}
    for name in PUBLISHED:
        row = rows[name]
        if row.model is None or row.cluster is None or row.configuration is None:
            raise SystemExit(f"{name}: {row.refused}")
        yield name, row.model, row.cluster, row.configuration
    for name, machines, configuration in USUAL:
        yield name, model(name), cluster(machines), configuration


def laid(case: Case, seconds: float, *, by_stage: bool) -> BestLayout:
    """The best layout of a row."""
    _, shape, machines, configuration = case
    rule = strategy(configuration.schedule)
    schedule = rule(
        rule.shape(
            configuration.pipeline,
            configuration.microbatches,
            configuration.chunks,
            group_size=configuration.group_size,
        )
    )
    if not by_stage:
        return best_layout_of(shape, machines, configuration, schedule, seconds=seconds)
    start = estimate(shape, machines, replace(configuration, layers=None), with_error_bar=False)
    limit = machines.gpu.memory_bytes - held_besides(shape, machines, start, schedule)
    return best_layout_of(shape, machines, configuration, schedule, choices=CHOICES, limits=limit, seconds=seconds)


def in_words(counts: tuple[int, ...]) -> str:
    """A layout by its runs: ``5+4x14+1``."""
    runs = [(count, len(list(same))) for count, same in groupby(counts)]
    return "+".join(f"{count}x{times}" if times > 1 else str(count) for count, times in runs)


def degrees(configuration: Configuration) -> str:
    """Such as ``1f1b, 16x1 stages, m 128, t 8``."""
    experts = f", e {configuration.expert}" if configuration.expert > 1 else ""
    return (
        f"{configuration.schedule}, {configuration.pipeline}x{configuration.chunks} stages, "
        f"m {configuration.microbatches}, t {configuration.tensor}{experts}"
    )


def line(case: Case, found: BestLayout, took: float, *, by_stage: bool) -> str:
    """A row of a table."""
    name, shape, _, configuration = case
    proof = "proven" if found.proven else f"{found.gap:.1%}"
    even = "-" if found.even_layout is None else f"{found.even_makespan * 1e3:.1f}"
    cells = [name if name == shape.name else f"{shape.name} ({name})", degrees(configuration), even]
    cells += [
        f"{found.makespan * 1e3:.1f}",
        "no even split fits" if even == "-" else f"{found.gain:.2%}",
        proof,
        in_words(found.layout),
    ]
    if by_stage:
        options = [option.name for option in found.options]
        cells.append("; ".join(f"{len(list(same))} x {option or 'none'}" for option, same in groupby(options)))
        cells.append("-" if found.even_option is None else found.even_option.name or "none")
    return f"| {' | '.join([*cells, str(found.simulated), f'{took:.1f}'])} |"


def table(all_cases: list[Case], seconds: float, *, by_stage: bool) -> None:
    """Print one table."""
    heads = ["model", "degrees", "even (ms)", "best (ms)", "gain", "could be less by", "layers"]
    heads += ["recomputes", "even recomputes"] if by_stage else []
    heads += ["simulated", "seconds"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for case in all_cases:
        began = monotonic()
        try:
            found = laid(case, seconds, by_stage=by_stage)
        except PipeplanError as error:
            print(f"| {case[1].name} ({case[0]}) | {degrees(case[3])} | {error} |", flush=True)
            continue
        assert found.lower_bound * (1 - 1e-9) <= found.makespan <= found.even_makespan, case[0]
        print(line(case, found, monotonic() - began, by_stage=by_stage), flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="each search may take")
    parser.add_argument("--only", default="", help="part of the names to take")
    given = parser.parse_args()
    chosen = [case for case in cases() if given.only in case[0]]
    print("Times alone; everything recomputed as published:\n")
    table(chosen, given.seconds, by_stage=False)
    print("\nEach stage recomputes what it needs, under the GPU's memory:\n")
    table(chosen, given.seconds, by_stage=True)


if __name__ == "__main__":
    main()
