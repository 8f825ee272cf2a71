"""How a notebook shows a schedule or a timeline: drawn by the render package, which is found by name when it is needed.

The model must not import what draws it. A picture is a courtesy of the front end, so the name is looked up late, and the
import contract stays one way.
"""

from __future__ import annotations

from importlib import import_module

RENDERER = "pipeplan.drawing.notebook"
"""A module with ``html_of(shown) -> str`` and ``png_of(shown) -> bytes``."""


class Displayed:
    """Something that notebooks show as a picture."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        html: str = import_module(RENDERER).html_of(self)
        return html

    def _repr_png_(self) -> bytes:
        png: bytes = import_module(RENDERER).png_of(self)
        return png
