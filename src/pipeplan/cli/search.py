"""``pipeplan search``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from pipeplan.api.fronts import FRONT_ENDINGS, front_record, pareto_with, save_front_file
from pipeplan.api.outputs import holds_plan, save
from pipeplan.api.searches import SearchOptions, search_with
from pipeplan.api.sources import file_of
from pipeplan.cli.answers import print_json, tell, written
from pipeplan.cli.options import Debug, Json, OutputOptions, SettingOptions
from pipeplan.cli.request import Request, request
from pipeplan.cli.search_progress import ProgressLine, keep_best
from pipeplan.errors import UnknownNameError
from pipeplan.solver.problem import Objective

SEARCH = Group("Search", sort_key=0)

_SETTINGS = SettingOptions()
_OUTPUT = OutputOptions()


def _option(text: str, *names: str) -> Parameter:
    return Parameter(name=names, help=text, group=SEARCH, show_default=False)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Search:
    """What is searched for, and how long."""

    placement: Annotated[
        str, _option("linear, loop, v, wave, or the rank of each stage: 0,1,1,0 (linear).", "--placement")
    ] = "linear"
    objective: Annotated[
        Objective, _option("What should be small: the makespan, or the longest rank's own span.", "--objective")
    ] = "makespan"
    seconds: Annotated[float | None, _option("Budget in seconds (10).", "--seconds")] = None
    evaluations: Annotated[
        int | None, _option("Budget in schedules tried: the same seed then gives the same answer.", "--evaluations")
    ] = None
    seed: Annotated[int, _option("Seed of the random numbers (0).", "--seed")] = 0
    start: Annotated[tuple[str, ...], _option("Schedule to go on from, by name or file; repeatable.", "--start")] = ()
    workers: Annotated[int | None, _option("Threads (as many as there are cores).", "--workers")] = None
    full_backward: Annotated[
        bool, _option("Never split backward into its input and weight halves.", "--full-backward")
    ] = False
    jitter: Annotated[
        float | None,
        _option("Choose for the least p95 when op times vary by this standard deviation, as 0.05.", "--jitter"),
    ] = None

    pareto: Annotated[bool, _option("The whole trade-off: the best under each of several memory caps.", "--pareto")] = (
        False
    )
    points: Annotated[int, _option("How many caps of the trade-off (8).", "--points")] = 8

    def options(self) -> SearchOptions:
        """The same for the workbench."""
        return SearchOptions(
            placement=self.placement,
            objective=self.objective,
            seconds=self.seconds,
            evaluations=self.evaluations,
            seed=self.seed,
            start=self.start,
            workers=self.workers,
            split_backward=not self.full_backward,
            jitter=self.jitter,
        )


_SEARCH = Search()


def search(
    *,
    search: Search = _SEARCH,
    settings: SettingOptions = _SETTINGS,
    output: OutputOptions = _OUTPUT,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """A better schedule for these costs, under a memory cap, and how far from optimal it can be.

    Starts from every published schedule that fits and anneals the order of its ops. Ctrl-C ends the search with the best so
    far; with `--output`, the best so far is on disk all the while.
    """
    starts = [path for path in map(file_of, search.start) if path is not None]
    asked = request((), settings, output, reads=starts)
    if search.pareto:
        return _front(search, asked, json=json)
    with _progress([path for path in asked.outputs if holds_plan(path)], quiet=json) as progress:
        result = search_with(asked.settings, search.options(), progress=progress)
    with written(dict.fromkeys(asked.outputs, partial(save, result))):
        if json:
            print_json(result.to_dict())
        else:
            from pipeplan.api.tables.parts import show
            from pipeplan.api.tables.searches import search_parts

            show(*search_parts(result))
        for warning in result.warnings:
            tell(f"warning: {warning}")
    return 0


def _front(search: Search, asked: Request, *, json: bool) -> int:
    """The trade-off between memory and time."""
    for path in asked.outputs:
        if path.suffix.lower() not in FRONT_ENDINGS:
            raise UnknownNameError("ending of a front's output", path.suffix or path.name, FRONT_ENDINGS)
    with _progress([], quiet=json) as line:
        front = pareto_with(
            asked.settings, search.options(), points=search.points, progress=lambda _, progress: line(progress)
        )
    with written(dict.fromkeys(asked.outputs, partial(save_front_file, front))):
        if json:
            print_json(front_record(front))
        else:
            from pipeplan.api.tables.parts import show
            from pipeplan.api.tables.searches import front_parts

            show(*front_parts(front))
    return 0


@contextmanager
def _progress(files: list[Path], *, quiet: bool) -> Iterator[ProgressLine]:
    line = ProgressLine(keep_best(files), quiet=quiet)
    try:
        yield line
    finally:
        line.close()
