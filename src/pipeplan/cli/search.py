"""``pipeplan search``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, TypedDict

from cyclopts import Group, Parameter

from pipeplan.api import as_keywords, file_of, holds_schedule, require_outputs
from pipeplan.api.searching.problems import AUTO
from pipeplan.api.searching.searches import pareto
from pipeplan.api.searching.searches import search as search_schedule
from pipeplan.api.searching.steady_states import steady_state
from pipeplan.cli.answers import print_json, tell, written
from pipeplan.cli.names import ScheduleName
from pipeplan.cli.options import Debug, Json, OutputOptions, SettingOptions, parameter_of
from pipeplan.cli.request import Request, request
from pipeplan.cli.search_progress import ProgressLine, keep_best
from pipeplan.costs import SEARCH_SETTINGS
from pipeplan.errors import InputError
from pipeplan.solver import Objective

SEARCH = Group("Search", sort_key=0)

_SETTINGS = SettingOptions()
_OUTPUT = OutputOptions()


def _option(text: str, *names: str) -> Parameter:
    return Parameter(name=names, help=text, group=SEARCH, show_default=False)


class Common(TypedDict):
    """The keywords that ``search`` and ``pareto`` share."""

    placement: str
    objective: Objective
    seconds: float | None
    evaluations: int | None
    seed: int
    workers: int | None
    dask: str | None
    store: Path | None
    full_backward: bool
    decide: tuple[str, ...]
    leave: tuple[str, ...]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Search:
    """What is searched for, and how long."""

    placement: Annotated[
        str,
        _option(
            "auto: every placement that can win; or linear, loop, v, wave, bidirectional, bidirectional-v, or the rank of "
            "each stage: 0,1,1,0 (default: auto; with --steady-state: linear).",
            "--placement",
        ),
    ] = AUTO
    objective: Annotated[
        Objective,
        _option(
            "What should be small: the makespan, or the longest rank's own span, with ops that start as soon as they can.",
            "--objective",
        ),
    ] = "makespan"
    seconds: Annotated[float | None, parameter_of(SEARCH_SETTINGS["seconds"], SEARCH)] = None
    evaluations: Annotated[int | None, parameter_of(SEARCH_SETTINGS["evaluations"], SEARCH)] = None
    seed: Annotated[int, parameter_of(SEARCH_SETTINGS["seed"], SEARCH)] = 0
    start: Annotated[
        tuple[ScheduleName, ...], _option("Schedule to go on from, by name or file; repeatable.", "--start")
    ] = ()
    workers: Annotated[int | None, parameter_of(SEARCH_SETTINGS["workers"], SEARCH)] = None
    searches: Annotated[int | None, parameter_of(SEARCH_SETTINGS["searches"], SEARCH)] = None
    rounds: Annotated[int, parameter_of(SEARCH_SETTINGS["rounds"], SEARCH)] = 1
    dask: Annotated[str | None, _option("Address of a Dask scheduler, whose workers search.", "--dask")] = None
    store: Annotated[
        Path | None,
        _option(
            "File that keeps each search, or point of a front, as it ends; the same goes on from there.",
            "--store",
        ),
    ] = None
    full_backward: Annotated[bool, _option("Alias of --leave split.", "--full-backward")] = False
    decide: Annotated[
        tuple[str, ...],
        _option("What else to decide: recompute, offload; repeatable, or with commas.", "--decide"),
    ] = ()
    leave: Annotated[
        tuple[str, ...],
        _option("What not to decide: split, overlap, weight-order; repeatable, or with commas.", "--leave"),
    ] = ()
    jitter: Annotated[float | None, parameter_of(SEARCH_SETTINGS["jitter"], SEARCH)] = None
    slow_rank: Annotated[float | None, parameter_of(SEARCH_SETTINGS["slow_rank"], SEARCH)] = None

    pareto: Annotated[
        bool, _option("The whole trade-off: the best under each of several memory limits.", "--pareto")
    ] = False
    points: Annotated[int, parameter_of(SEARCH_SETTINGS["points"], SEARCH)] = 8
    steady_state: Annotated[
        bool,
        _option(
            "What each further microbatch costs: the shortest period of a schedule that repeats.", "--steady-state"
        ),
    ] = False

    def common(self) -> Common:
        """The options that a search and a front share, as keywords."""
        return {
            "placement": self.placement,
            "objective": self.objective,
            "seconds": self.seconds,
            "evaluations": self.evaluations,
            "seed": self.seed,
            "workers": self.workers,
            "dask": self.dask,
            "store": self.store,
            "full_backward": self.full_backward,
            "decide": self.decide,
            "leave": self.leave,
        }


_SEARCH = Search()


def search(
    *,
    search: Search = _SEARCH,
    settings: SettingOptions = _SETTINGS,
    output: OutputOptions = _OUTPUT,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """A better schedule for these costs, under a memory limit, and how far from optimal it can be.

    Starts from every published schedule that fits and anneals the order of its ops. Ctrl-C ends the search with the best so
    far, which `--output` keeps on disk all the while.
    """
    starts = [path for path in map(file_of, search.start) if path is not None]
    asked = request((), settings, output, reads=starts, writes=[] if search.store is None else [search.store])
    if search.steady_state:
        return _steady_state(search, asked, json=json)
    if search.pareto:
        return _front(search, asked, json=json)
    with _progress(asked, [path for path in asked.outputs if holds_schedule(path)], quiet=json) as progress:
        result = search_schedule(
            start=search.start,
            searches=search.searches,
            rounds=search.rounds,
            jitter=search.jitter,
            slow_rank=search.slow_rank,
            progress=progress,
            **search.common(),
            **as_keywords(asked.settings),
        )
    with written(dict.fromkeys(asked.outputs, partial(result.save, **asked.look))):
        if json:
            print_json(result.to_dict())
            for warning in result.warnings:
                tell(f"warning: {warning}")
        else:
            result.print()
    return 0


def _front(search: Search, asked: Request, *, json: bool) -> int:
    """The trade-off between memory and time."""
    several = search.searches is not None or search.rounds != 1
    if search.jitter is not None or search.slow_rank is not None or several:
        raise InputError(
            "--pareto takes neither --jitter nor --slow-rank nor --searches nor --rounds: it searches once a limit, and "
            "what varies is no part of it"
        )
    require_outputs(asked.outputs, ("record", "front picture"), what="a front")
    with _progress(asked, [], quiet=json) as line:
        front = pareto(
            points=search.points,
            start=search.start,
            progress=lambda _, progress: line(progress),
            **search.common(),
            **as_keywords(asked.settings),
        )
    with written(dict.fromkeys(asked.outputs, partial(front.save, **asked.look))):
        if json:
            print_json(front.to_dict())
        else:
            front.print()
    return 0


def _steady_state(search: Search, asked: Request, *, json: bool) -> int:
    """What each further microbatch costs."""
    plain = Search(
        placement=search.placement,
        seconds=search.seconds,
        seed=search.seed,
        workers=search.workers,
        full_backward=search.full_backward,
        leave=search.leave,
        steady_state=True,
    )
    if search != plain:
        raise InputError(
            "--steady-state takes --placement, --seconds, --seed, --workers and --leave beside shape and costs: "
            "leave out the other options of a search",
            field="steady_state",
        )
    require_outputs(asked.outputs, ("record",), what="a steady state")
    found = steady_state(
        placement="linear" if search.placement == AUTO else search.placement,
        seconds=10.0 if search.seconds is None else search.seconds,
        seed=search.seed,
        workers=1 if search.workers is None else search.workers,
        full_backward=search.full_backward,
        leave=search.leave,
        **as_keywords(asked.settings),
    )
    with written(dict.fromkeys(asked.outputs, partial(found.save, **asked.look))):
        if json:
            print_json(found.to_dict())
        else:
            found.print()
    return 0


@contextmanager
def _progress(asked: Request, files: list[Path], *, quiet: bool) -> Iterator[ProgressLine]:
    line = ProgressLine(keep_best(files), unit=asked.settings.time_unit, quiet=quiet)
    try:
        yield line
    finally:
        line.close()
