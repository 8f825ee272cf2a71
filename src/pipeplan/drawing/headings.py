"""What stands above a picture: the schedule's name, what was computed, on which shape and costs."""

from __future__ import annotations

from collections.abc import Sequence

from pipeplan.drawing.view import View
from pipeplan.errors import InputError
from pipeplan.readable import Times, percent

SEPARATOR = " \N{MIDDLE DOT} "


def times_of(views: Sequence[View]) -> Times:
    """How the times of some views are written.

    Raises
    ------
    InputError
        For views whose times are in different units.
    """
    units = sorted({view.unit for view in views if view.source != "order"} - {""})
    if len(units) > 1:
        raise InputError(f"times in {' and '.join(units)} cannot share an axis")
    return Times.of([view.makespan for view in views], units[0] if units else "")


def figures_of(view: View, times: Times) -> str:
    """Makespan and idle time; empty for an order, which has no times."""
    if view.source == "order":
        return ""
    return f"makespan {times.text(view.makespan)}, idle {percent(view.idle_over_total)}"


def about(view: View) -> str:
    """Shape, costs, and whether times were simulated or measured."""
    return SEPARATOR.join(part for part in (view.shape, view.costs, _source(view)) if part)


def about_all(views: Sequence[View]) -> str:
    """What :func:`about` says of every view; empty where it says nothing of all of them."""
    said = [about(view).split(SEPARATOR) for view in views]
    shapes = [parts[0].split(", ") for parts in said]
    shape = [word for word in shapes[0] if all(word in others for others in shapes)]
    rest = [part for part in said[0][1:] if all(part in others for others in said)]
    return SEPARATOR.join(part for part in (", ".join(shape), *rest) if part)


def _source(view: View) -> str:
    return "order of ops, without times" if view.source == "order" else view.source
