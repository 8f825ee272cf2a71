"""A search for the layers of each stage: from options and settings to the layouts of every placement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pipeplan.answers.published import allowed_needs
from pipeplan.costs import SETTINGS, Layout, Settings, each_layer
from pipeplan.extensions.search import Problem
from pipeplan.extensions.search.answers.options import AUTO, SearchOptions
from pipeplan.extensions.search.answers.problems import (
    DEFAULT_CHUNKS,
    FIXED_CHUNKS,
    placement_named,
    problem_of,
    settings_of_placement,
)
from pipeplan.foundation.errors import CostError, InfeasibleError, InputError, PipeplanError, ShapeError

if TYPE_CHECKING:
    from pipeplan.extensions.search.joint import LayoutSpace

MOST_CHUNKS = 4
"""Largest number of chunks that a search for a layout tries by itself; ``chunks`` sets another."""


def searches_layouts(options: SearchOptions, settings: Settings) -> bool:
    """Return whether a search decides the layers of each stage, by ``layout`` or by ``layers_per_stage``.

    Raises InputError for options and settings that fix what it decides, or that it cannot use.
    """
    automatic = settings.layers_per_stage == AUTO
    if options.layout is None and not automatic:
        return False
    field = "layout" if options.layout is not None else "layers_per_stage"
    if settings.layers is None:
        raise InputError(f"{field.replace('_', ' ')} auto needs the costs of each layer: set layers", field=field)
    if not automatic and settings.layers_per_stage is not None:
        raise InputError(
            "layers_per_stage fixes what layout auto should find: drop one of them", field="layers_per_stage"
        )
    if options.start not in ((), []):
        raise InputError(
            f"a start has its own layers of each stage, which {field.replace('_', ' ')} auto should find: drop start, or "
            "set layers_per_stage",
            field="start",
        )
    for name in ("overlap_times", "segments"):
        if getattr(settings, name) is not None:
            raise InputError(
                f"{name} are those of a stage, and a search for the layout changes the stages: drop {name}, and give each "
                "layer its segments",
                field=name,
            )
    for name, setting in SETTINGS.items():
        if setting.kind == "per_stage" and isinstance(getattr(settings, name), tuple):
            raise InputError(
                f"{name} has a value for each stage, and a search for the layout changes the stages: set one number, or "
                "costs of layers",
                field=name,
            )
    return True


def layout_spaces(settings: Settings, options: SearchOptions) -> list[LayoutSpace]:
    """Return the layouts of every placement that is searched, with several numbers of chunks where it can have them.

    Raises the error of the placement that comes the nearest where none can be searched.
    """
    from pipeplan.extensions.search.joint import LayoutSpace  # it takes time to import

    free = replace(settings, layers_per_stage=None, memory_limit=None)
    assert settings.layers is not None
    layers = tuple(each_layer(settings.layers))
    spaces: list[LayoutSpace] = []
    refused: list[PipeplanError] = []
    for name, there in _placements(free, options):
        try:
            placement = placement_named(name, there)
            space = LayoutSpace(layers, partial(_problem, there, options, name), placement, settings.limits(placement))
            _ = space.example  # its costs may be refused
        except (CostError, InputError, ShapeError, InfeasibleError) as error:
            refused.append(error)
            continue
        if space.placement.copies > 1 and options.placement == AUTO and "copies" not in allowed_needs(options.allow):
            continue
        if all(space.placement.rank_of != other.placement.rank_of for other in spaces):
            spaces.append(space)
    if not spaces:
        raise refused[0] if refused else ShapeError("no placement has this number of stages", field="stages")
    return spaces


def _problem(settings: Settings, options: SearchOptions, placement: str, layout: Layout) -> Problem:
    return problem_of(replace(settings, layers_per_stage=layout), options, placement=placement)


def _placements(settings: Settings, options: SearchOptions) -> Iterator[tuple[str, Settings]]:
    """Yield the name of each placement, with the settings of each number of chunks."""
    if "," in options.placement:
        yield options.placement, settings
        return
    for name in DEFAULT_CHUNKS if options.placement == AUTO else (options.placement,):
        several = name in DEFAULT_CHUNKS and name not in FIXED_CHUNKS and settings.chunks is None
        if options.placement != AUTO and not several:
            yield name, settings
            continue
        numbers: Sequence[int | None] = [None]
        if several and settings.stages is None:
            least = DEFAULT_CHUNKS[name]
            numbers = range(least, MOST_CHUNKS + 1, 2 if name == "wave" else 1)
        for chunks in numbers:
            there = settings_of_placement(name, settings if chunks is None else replace(settings, chunks=chunks))
            if there is not None:
                yield name, there
