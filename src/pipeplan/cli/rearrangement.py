"""The options that change a schedule's order before it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

_GROUP = Group("Order of ops", sort_key=0)


def _flag(name: str, text: str) -> Parameter:
    return Parameter(name=name, help=text, group=_GROUP, show_default=False)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RearrangementOptions:
    """Which passes; the names are those of :class:`~pipeplan.passes.rearrangement.Rearrangement`."""

    split_backward: Annotated[
        bool, _flag("--split-backward", "Split every full backward into one for the inputs and one for the weights.")
    ] = False
    retime: Annotated[bool, _flag("--retime", "Move weight gradients into idle steps before them.")] = False
    merge_backward: Annotated[
        bool, _flag("--merge-backward", "Merge the two halves of a backward where they stand side by side.")
    ] = False
