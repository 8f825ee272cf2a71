"""The built timeline: a script that defines ``pipeplan.mountTimeline(element, data, options)``, and its style sheet."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

AssetName = Literal["timeline.js", "timeline.css"]


@cache
def asset(name: AssetName) -> str:
    """The text of a built file."""
    return (files(__name__) / name).read_text("utf-8")
