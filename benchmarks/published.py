"""Predicted against published steps: the runs of the zero-bubble paper, from the stage times profiled in them.

``python -m benchmarks.published`` prints a table in Markdown: a row a run, then the errors by schedule, and whether each
pair of schedules of one model and number of microbatches comes out in the order in which it was measured. ``--machine``,
``--op-gap``, ``--message-time`` and ``--step-time`` (milliseconds) change what is lost between ops, ``--communication``
what a transfer delays. ``--leave-one-out`` also fits the gap to each model alone (minutes). The runs are read from
``planning/published_runs.json`` in the folder ``shared`` beside the checkout.

Source: Qi, Wan, Huang, Lin: Zero Bubble Pipeline Parallelism, ICLR 2024. Table 9 has the stage times (the median over the
stages; the first and the last have a layer less and the embedding or the head, which are taken to make up for it), Tables 4,
7, 10 and 12 have the steps.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import pipeplan
from pipeplan.costs import MACHINES, Settings
from pipeplan.simulation import step_time

FOLDER = Path(__file__).parents[2] / "shared" / "planning"
"""Where the published runs lie."""

MACHINE = "megatron-a100"
"""What the runs were made on."""

TABLES = ("zb-4-", "zb-7-", "zb-10-", "zb-12-")
"""The tables of steps whose stage times are known, by how the names of their rows begin."""

MOST_OTHER_MICROBATCHES = 40
"""Stage times profiled with another number of microbatches stand in where it is no further off: for Table 12."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A published run.

    Attributes
    ----------
    name, model, schedule
        Its row, its model and its schedule, as published.
    ranks, chunks, microbatches
        The shape.
    forward, backward_input, backward_weight, transfer
        Milliseconds of all the chunks of a rank, and of a message.
    freed_by_weight
        The part of a microbatch's activations that only W frees.
    measured
        Milliseconds of a step.
    """

    name: str
    model: str
    schedule: str
    ranks: int
    chunks: int
    microbatches: int
    forward: float
    backward_input: float
    backward_weight: float
    transfer: float
    freed_by_weight: float
    measured: float

    @property
    def plan(self) -> tuple[str, float | None]:
        """The strategy that makes its order, and the memory limit that it is made for, in activations."""
        p = float(self.ranks)
        return {
            "1F1B": ("1f1b", None),
            "1F1B-I": ("interleaved-1f1b", None),
            "ZB-1p": ("zb-auto", p),
            "ZB-2p": ("zb-auto", 2 * p),
            "ZB-2p-synchronous": ("zb-auto", 2 * p),
            "ZB-V": ("zbv-heuristic", p),
        }[self.schedule]

    @property
    def barrier(self) -> bool:
        """Whether ranks wait for each other at the end of a step: the authors' own schedules validate it afterwards."""
        return not self.schedule.startswith("ZB-") or self.schedule.endswith("-synchronous")

    @property
    def group(self) -> tuple[str, int]:
        """What its rivals share with it: the model and the number of microbatches."""
        return self.model, self.microbatches


def published_runs(tables: Sequence[str] = TABLES) -> list[Run]:
    """The runs of these tables whose stage times were profiled.

    Raises
    ------
    FileNotFoundError
        Where they are not beside the checkout.
    """
    rows = json.loads((FOLDER / "published_runs.json").read_text())["rows"]
    profiles = [row for row in rows if row["id"].startswith("zb-9-")]
    found = [_run(row, _profile_of(row, profiles)) for row in rows if row["id"].startswith(tuple(tables))]
    return [run for run in found if run is not None]


def _profile_of(row: Any, profiles: list[Any]) -> Any:
    """The stage times of a run, or those of the nearest number of microbatches; None where there are none."""
    like = [each for each in profiles if _workload(each) == _workload(row)]
    count = row["batch"]["microbatches"]
    nearest = min(like, key=lambda each: abs(each["batch"]["microbatches"] - count), default=None)
    if nearest is None or abs(nearest["batch"]["microbatches"] - count) > MOST_OTHER_MICROBATCHES:
        return None
    return nearest["measured"]


def _workload(row: Any) -> tuple[str, int, int]:
    return row["model"]["name"], row["batch"]["micro"], row["parallel"]["pp"]


def _run(row: Any, profile: Any) -> Run | None:
    if profile is None:
        return None
    model = row["model"]
    # Bytes of a layer, Table 1 of the paper: W frees 32 sbh of the 34 sbh + 5 abs^2 that F holds.
    held = 34 + 5 * model["heads"] * model["seq"] / model["hidden"]
    return Run(
        name=row["id"],
        model=model["name"],
        schedule=row["schedule"],
        ranks=row["parallel"]["pp"],
        chunks=row["parallel"].get("vp", 1),
        microbatches=row["batch"]["microbatches"],
        forward=profile["stage_forward_ms"],
        backward_input=profile["stage_input_backward_ms"],
        backward_weight=profile["stage_weight_backward_ms"],
        transfer=profile["p2p_ms"],
        freed_by_weight=32 / held,
        measured=row["measured"]["step_time_s"] * 1e3,
    )


def predicted(run: Run, **lost: Any) -> float:
    """Milliseconds of a step, simulated; ``lost`` are settings of what is lost between ops."""
    name, limit = run.plan
    settings: dict[str, Any] = {"machine": MACHINE} | lost
    result = pipeplan.simulate(
        name,
        ranks=run.ranks,
        chunks=run.chunks,
        microbatches=run.microbatches,
        forward_times=run.forward,
        backward_input_times=run.backward_input,
        backward_weight_times=run.backward_weight,
        p2p_time=run.transfer,
        time_unit="ms",
        activation_bytes=1.0,
        weight_activation_bytes=run.freed_by_weight,
        memory_limit=None if limit is None else f"{limit:g}act",
        **settings,
    )
    return step_time(result.timeline, result.costs, barrier=run.barrier)


@dataclass(frozen=True, slots=True)
class Prediction:
    """A run and its predicted step, in milliseconds."""

    run: Run
    step: float

    @property
    def error(self) -> float:
        """``predicted / measured - 1``."""
        return self.step / self.run.measured - 1


def predictions(runs: Sequence[Run], **lost: Any) -> list[Prediction]:
    """Each run's prediction; see :func:`predicted`."""
    return [Prediction(run, predicted(run, **lost)) for run in runs]


def mean_error(found: Sequence[Prediction]) -> float:
    """The mean of the errors' absolute values."""
    return float(np.mean([abs(each.error) for each in found]))


def pairs(found: Sequence[Prediction]) -> list[tuple[Prediction, Prediction]]:
    """Every two runs of one model and number of microbatches, the one that was measured shorter first; ties are left out."""
    rivals = (two for two in combinations(found, 2) if two[0].run.group == two[1].run.group)
    ordered = (sorted(two, key=lambda each: each.run.measured) for two in rivals)
    return [(short, long) for short, long in ordered if short.run.measured < long.run.measured]


def fitted_gap(runs: Sequence[Run], **lost: Any) -> float:
    """The op gap of least squared error on these runs, to a hundredth of a millisecond."""
    gaps = np.arange(0.0, 2.0, 0.01)
    coarse = gaps[::10]
    best = _best_gap(runs, coarse, lost)
    return _best_gap(runs, gaps[np.abs(gaps - best) < 0.1], lost)


def _best_gap(runs: Sequence[Run], gaps: Any, lost: dict[str, Any]) -> float:
    def squares(gap: float) -> float:
        return sum(each.error**2 for each in predictions(runs, **(lost | {"op_gap": gap})))

    return min(map(float, gaps), key=squares)


def report(found: Sequence[Prediction], ideal: Sequence[Prediction]) -> Iterator[str]:
    """The table in lines, ``ideal`` being what is predicted when nothing is lost."""
    yield "| run | measured, ms | nothing lost | error | predicted | error |"
    yield "|---|---:|---:|---:|---:|---:|"
    for each, without in zip(found, ideal, strict=True):
        yield (
            f"| {each.run.name} | {each.run.measured:.1f} | {without.step:.1f} | {without.error:+.1%} | {each.step:.1f} | "
            f"{each.error:+.1%} |"
        )
    yield ""
    yield "| table, schedule | runs | nothing lost: mean, of absolute values | predicted: mean, of absolute values |"
    yield "|---|---:|---:|---:|"
    for title, places in _kinds(found):
        there, here = ([some[place] for place in places] for some in (ideal, found))
        yield f"| {title} | {len(places)} | {_means(there)} | {_means(here)} |"
    yield ""
    ordered = pairs([each for each in found if each.run.name.startswith("zb-4-")])
    wrong = [(short, long) for short, long in ordered if short.step >= long.step]
    yield f"{len(ordered) - len(wrong)} of {len(ordered)} pairs of Table 4 in the measured order"
    for short, long in wrong:
        apart = long.run.measured / short.run.measured - 1
        longer = short.step / long.step - 1
        yield f"- {short.run.name} was {apart:.1%} shorter than {long.run.name}; predicted {longer:.1%} longer"


def _means(found: Sequence[Prediction]) -> str:
    return f"{np.mean([each.error for each in found]):+.1%}, {mean_error(found):.1%}"


def _kinds(found: Sequence[Prediction]) -> Iterator[tuple[str, list[int]]]:
    """The tables, and the schedules of each, with the positions of their runs."""
    for table in TABLES:
        title = f"Table {table.removeprefix('zb-').removesuffix('-')}"
        inside = [place for place, each in enumerate(found) if each.run.name.startswith(table)]
        if not inside:
            continue
        yield f"{title}, all", inside
        for name in dict.fromkeys(found[place].run.schedule for place in inside):
            yield f"{title}, {name}", [place for place in inside if found[place].run.schedule == name]


def leave_one_out(runs: Sequence[Run]) -> Iterator[str]:
    """The op gap fitted to each model, and its error on the others, in lines."""
    models = list(dict.fromkeys(run.model for run in runs))
    for model in models:
        mine, others = ([run for run in runs if (run.model == model) is inside] for inside in (True, False))
        gap = fitted_gap(mine)
        here, there = (mean_error(predictions(some, op_gap=gap)) for some in (mine, others))
        yield f"fitted to {model}: op_gap {gap:.2f} ms, {here:.1%} off there, {there:.1%} on the other runs"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--machine", choices=tuple(MACHINES), default=MACHINE)
    for name in ("--op-gap", "--message-time", "--step-time"):
        parser.add_argument(name, type=float)
    parser.add_argument("--communication", choices=("edge", "contended", "blocking"), default=Settings().communication)
    parser.add_argument("--leave-one-out", action="store_true", help="also fit the op gap to each model alone")
    lost = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    fit = lost.pop("leave_one_out")
    if not FOLDER.exists():
        print(f"the published runs are not beside this checkout: {FOLDER} is missing", file=sys.stderr)
        return 1
    runs = published_runs()
    ideal = predictions(runs, machine="none", communication=lost["communication"])
    print("\n".join(report(predictions(runs, **lost), ideal)))
    if fit:
        print("", *leave_one_out([run for run in runs if run.name.startswith("zb-4-")]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
