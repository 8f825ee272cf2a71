"""Layers, placement and order searched together, against a plan's layout followed by a search, at equal time.

``python -m benchmarks.joint`` prints a table in Markdown: a row a model whose stages cannot be even (a heavy head, layers of
multi-token prediction, dense layers before experts, an encoder in front), and one with even stages. The costs of layers are
those of the planner's estimate. The baseline takes the layout, the placement and the memory limit of ``pipeplan plan`` at
the same degrees, and searches the order for ``--seconds``. The joint search has the same seconds for everything: once on
placements that hold the model once, once on all that ``--placement auto`` allows.

It asserts that no schedule is better than the joint bound, and that a simulation of the answer gives its value.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import monotonic, process_time

from msgspec import UNSET

import pipeplan
from pipeplan.costs import Layer, Role
from pipeplan.extensions.planning import Configuration, default_limit, plan
from pipeplan.extensions.planning.choice.finalists import laid_layers
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.trainers import plan_trainers
from pipeplan.extensions.planning.workload import model
from pipeplan.extensions.search import Effort
from pipeplan.extensions.search.answers.layouts import layout_spaces
from pipeplan.extensions.search.answers.options import SearchOptions
from pipeplan.extensions.search.joint import joint_search
from pipeplan.extensions.search.layouts import LaidLayer, best_layout
from pipeplan.model import LayerKind, Placement
from pipeplan.strategies import strategy

ROLES: dict[LayerKind, Role] = {"embedding": "embedding", "mtp": "mtp", "head": "head"}
"""Roles of layers by their kinds; the others are blocks."""


@dataclass(frozen=True)
class Case:
    """A model, a cluster, its degrees, and an encoder of so many layers of another model in front of it."""

    name: str
    machines: str
    ranks: int
    batch: int
    sequence: int = 4096
    fix: tuple[tuple[str, object], ...] = ()
    encoder: tuple[str, int, int] | None = None
    uneven: bool = True

    @property
    def title(self) -> str:
        """Name of the row."""
        if self.encoder is None:
            return self.name
        return f"{self.encoder[1]} layers of {self.encoder[0]} before {self.name}"


AUTOMATIC = SearchOptions(layout="auto")

EXPERTS = (("tensor", 1), ("expert", 32))

CASES = (
    Case("llama3-8b", "h100-sxm:8x1", 8, 32, 8192, (("tensor", 1),)),
    Case("gemma3-27b", "h100-sxm:8x4", 8, 32, 8192, (("tensor", 4),)),
    Case("gemma2-9b", "h100-sxm:8x1", 4, 16, 8192, (("tensor", 2),)),
    Case("nemotron4-15b", "h100-sxm:8x4", 8, 32, 4096, (("tensor", 4),)),
    Case("deepseek-v3", "h100-sxm:8x32", 8, 1024, 4096, EXPERTS),
    Case("glm-4.5", "h100-sxm:8x32", 8, 1024, 4096, EXPERTS),
    Case("kimi-k2", "h100-sxm:8x64", 16, 1024, 4096, EXPERTS),
    Case("qwen3-30b-a3b", "h100-sxm:8x4", 4, 128, 4096, (("tensor", 1), ("expert", 8))),
    Case("llama3-8b", "h100-sxm:8x1", 8, 32, 8192, (("tensor", 1),), ("llama3.2-1b", 24, 16384)),
    Case("llama3-70b", "h100-sxm:8x8", 8, 32, 8192, (("tensor", 8),), uneven=False),
)


def costs_of(layers: Sequence[LaidLayer]) -> tuple[Layer, ...]:
    """Layers with costs in milliseconds; the loss belongs to the head."""
    made: list[Layer] = []
    for layer in layers:
        option = layer.options[0]
        own = Layer(
            forward=1e3 * option.forward,
            backward_input=1e3 * option.backward_input,
            backward_weight=1e3 * option.backward_weight,
            activation_bytes=option.activation_bytes,
            weight_activation_bytes=min(option.freed_by_weight, option.activation_bytes),
            static_bytes=layer.static_bytes,
            count=layer.count,
            role=ROLES.get(layer.kind, "block"),
        )
        if layer.kind != "loss":
            made.append(own)
            continue
        head = made.pop()
        made.append(
            replace(
                head,
                forward=head.forward + own.forward,
                backward_input=head.backward_input + own.backward_input,
                backward_weight=head.backward_weight + own.backward_weight,
                activation_bytes=head.activation_bytes + own.activation_bytes,
                weight_activation_bytes=head.freed_by_weight + own.freed_by_weight,
            )
        )
    return tuple(made)


@dataclass(frozen=True)
class Posed:
    """Settings of a case, and the layout, placement and schedule of the plan."""

    settings: pipeplan.Settings
    layout: tuple[int, ...]
    placement: Placement
    schedule: str


def posed(case: Case) -> Posed:
    """A case with its plan."""
    shape, machines = model(case.name), cluster(case.machines)
    fix = {"pipeline": case.ranks, "microbatch_size": 1, "recompute": "none", "offload": 0, **dict(case.fix)}
    found = plan(
        shape, machines, global_batch=case.batch, sequence=case.sequence, fix=fix, seconds=5, trainers=plan_trainers()
    )
    assert found.best is not None
    best = found.best.configuration
    laid = laid_layers(shape, machines, best, (best.recompute,))
    rule = strategy(best.schedule)
    schedule = rule(rule.shape(best.pipeline, best.microbatches, best.chunks, group_size=best.group_size))
    layout = best.layers
    if case.encoder is not None:
        laid = (laid[0], *_encoder(case, best), *laid[1:])
        layout = None
    if layout is None:
        layout = best_layout(laid, schedule, transfer=0.0, seconds=2).layout
    start = sum(layer.count for layer in laid if layer.kind == "embedding")
    ends = sum(layer.count for layer in laid if layer.kind in ("mtp", "head"))
    counts = (layout[0] + start, *layout[1:-1], layout[-1] + ends)
    settings = pipeplan.Settings(
        ranks=best.pipeline, microbatches=best.microbatches, layers=costs_of(laid), time_unit="ms", p2p_time=0.05
    )
    simulated = pipeplan.simulate(schedule, settings=settings.replace(layers_per_stage=counts))
    limit = max(default_limit(machines), simulated.peak * 1.0001)
    return Posed(settings.replace(memory_limit=limit), counts, schedule.placement, best.schedule)


def _encoder(case: Case, best: Configuration) -> Iterator[LaidLayer]:
    assert case.encoder is not None
    name, count, tokens = case.encoder
    layers = laid_layers(
        model(name), cluster(case.machines), replace(best, layers=None, sequence=tokens), (best.recompute,)
    )
    block = next(layer for layer in layers if layer.kind == "dense")
    yield replace(block, count=count)


@dataclass(frozen=True)
class Row:
    """Figures of a case: the plan's layout followed by a search, and the joint search with one copy of the model and any."""

    before: float
    single: float
    joint: float
    text: str

    @property
    def gains(self) -> tuple[float, float]:
        """Shares of the time that the joint search saves, with one copy of the model and with any."""
        return 1 - self.single / self.before, 1 - self.joint / self.before


def row(case: Case, seconds: float) -> Row:
    """A row of the table."""
    task = posed(case)
    fixed = task.settings.replace(layers_per_stage=task.layout)
    ranks = ",".join(map(str, task.placement.rank_of[0]))
    before = pipeplan.search(settings=fixed, placement=ranks, seconds=seconds)
    spaces = [space for space in layout_spaces(task.settings, AUTOMATIC) if space.placement.copies == 1]
    single = joint_search(spaces, Effort(seconds=seconds, evaluations=None, workers=2)).result
    began, cpu = monotonic(), process_time()
    joint = pipeplan.search(settings=task.settings, layout="auto", seconds=seconds)
    took, cpu = monotonic() - began, process_time() - cpu
    assert joint.search is not None
    layout = joint.search.layers_per_stage
    assert layout is not UNSET
    again = pipeplan.simulate(joint.schedule, settings=task.settings.replace(layers_per_stage=layout))
    assert abs(again.makespan / joint.makespan - 1) < 1e-12, case.name
    assert single.bound.value <= before.makespan * (1 + 1e-9), case.name
    assert joint.bound.value <= min(before.makespan, single.value) * (1 + 1e-9), case.name
    best, values = single.problem.placement, (before.makespan, single.value, joint.makespan)
    cells = [
        case.title,
        f"{task.schedule} ({task.placement.name} {task.placement.chunks})",
        f"{before.makespan:.1f}",
        f"{single.value:.1f} ({best.name} {best.chunks})",
        f"{1 - single.value / before.makespan:.2%}",
        f"{single.optimality_gap:.2%}",
        f"{joint.makespan:.1f} ({joint.search.placement} {joint.chunks})",
        f"{1 - joint.makespan / before.makespan:.2%}",
        f"{joint.gap or 0:.2%}",
        f"{took:.1f} ({cpu:.1f})",
    ]
    return Row(*values, f"| {' | '.join(cells)} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each search")
    parser.add_argument("--only", default="", help="part of the names to take")
    given = parser.parse_args()
    heads = ["layers", "plan", "plan, then search (ms)", "joint, one copy (ms)", "shorter by", "gap"]
    heads += ["joint (ms)", "shorter by", "gap", "seconds (CPU)"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    rows = []
    for case in CASES:
        if given.only in case.title:
            made = row(case, given.seconds)
            print(made.text, flush=True)
            rows += [made] if case.uneven else []
    for which, words in enumerate(("with one copy of the model", "with any placement")):
        gains = [made.gains[which] for made in rows]
        if gains:
            print(f"\nUneven stages, {words}: median {median(gains):.2%} shorter, least {min(gains):.2%}")


if __name__ == "__main__":
    main()
