"""What is built from ``web_ui/``: scripts and style sheets.

``timeline`` defines ``pipeplan.mountTimeline(element, data, options)``; ``report``, which uses it, fills the page of a
comparison, or of a run beside its plan.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

AssetName = Literal["timeline.js", "timeline.css", "report.js", "report.css"]


@cache
def asset(name: AssetName) -> str:
    """Return the text of a built file."""
    return (files(__name__) / name).read_text("utf-8")
