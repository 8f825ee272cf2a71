"""Small jobs that together run every kernel of the search, for ``pipeplan warm``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeplan.costs import Settings
from pipeplan.extensions.search.answers.replanning import Replanner
from pipeplan.extensions.search.answers.searches import search
from pipeplan.extensions.search.layouts import LaidLayer, LayerOption, best_layout
from pipeplan.strategies import Shape


def _searched(**options: Any) -> Callable[[], object]:
    shape: dict[str, Any] = {"ranks": 4, "microbatches": 8, "evaluations": 2000, "workers": 1}
    return lambda: search(**shape | options)


_LAYER = LaidLayer(
    options=(
        LayerOption(
            name="none",
            forward=1.0,
            backward_input=1.0,
            backward_weight=1.0,
            activation_bytes=1.0,
            weight_activation_bytes=1.0,
        ),
    ),
    count=4,
)

_FULL: dict[str, Any] = {
    "forward_times": 1,
    "backward_times": 1.8,
    "backward_input_times": 1,
    "backward_weight_times": 1,
}
"""Costs for which a full backward takes less time than its halves: the search decides on them."""

_SMALL = Settings(ranks=4, microbatches=8, p2p_time=0.1)

_FACTORS = [1, 2.3, 0.7, 3.1, 1.2, 2, 1, 0.4]

JOBS: tuple[tuple[str, Callable[[], object]], ...] = (
    ("search", _searched()),
    ("search under a memory limit", _searched(memory_limit="3act")),
    ("search of long schedules", _searched(memory_limit="3act", placement="v", microbatches=64)),
    ("search with overlap", _searched(placement="v", overlap_times=2.5)),
    ("search with full backwards", _searched(placement="v", **_FULL)),
    ("search with both", _searched(placement="v", overlap_times=2.5, **_FULL)),
    ("search with recomputation", _searched(placement="v", memory_limit="2act", decide="recompute")),
    ("search with offload", _searched(placement="v", memory_limit="2act", decide="offload", offload_times=0.5)),
    ("search with messages on streams", _searched(placement="v", p2p_time=0.1, communication="streams")),
    (
        "search with microbatches that differ",
        _searched(placement="linear", memory_limit="6act", microbatch_factors=_FACTORS),
    ),
    ("order of microbatches", lambda: Replanner("1f1b", settings=_SMALL)([900, 4000, 500, 2000, 100, 300, 700, 50])),
    ("layouts", lambda: best_layout([_LAYER], "1f1b", Shape(ranks=2, microbatches=4))),
)
"""Each with a description."""
