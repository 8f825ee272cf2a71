"""What every answer of pipeplan can do: be saved, printed, shown in a notebook, and become a dictionary or a frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Unpack

from pipeplan.errors import MissingExtraError

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from pipeplan.api.pictures import Look
    from pipeplan.drawing import View
    from pipeplan.formats import Content, Format, TrainerSettings, Training


class Presentable(ABC):
    """An answer that a person or a program looks at.

    A class behind it says what it holds: its record, its rows and what there is to draw. Files and tables know the answers,
    not the answers them, so they are looked up by name when the first one is asked for.
    """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command, as plain lists, texts and numbers."""

    @abstractmethod
    def _rows(self) -> Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]:
        """The rows of its frame, or the columns."""

    @abstractmethod
    def views(self) -> Sequence[View]:
        """What a picture of it shows, from top to bottom; empty where there is nothing to draw."""

    def own_contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """What there is to write of it beside its record and what :meth:`views` shows."""
        return {}

    def own_file(self, name: str) -> TrainerSettings | None:
        """What a file of this name holds whose ending is none of a format; None where it is one."""
        return None

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        ending: str | None = None,
        training: Training | None = None,
        **look: Unpack[Look],
    ) -> tuple[Path, ...]:
        """Write a file; see :func:`pipeplan.save` for endings, a trainer's settings, the look of pictures, and errors."""
        written: tuple[Path, ...] = _module("outputs").save(self, path, ending=ending, training=training, **look)
        return written

    def print(self) -> None:
        """Print the table that the command prints."""
        _module("tables").show(self)

    def to_frame(self) -> Any:
        """A pandas ``DataFrame``; the class says what a row is.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", "pandas") from None
        return pandas.DataFrame(self._rows())

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture, or the table of an answer that has none."""
        views = self.views()
        if not views:
            page: str = _module("tables").html(self)
            return page
        from pipeplan.drawing.notebook import html_of

        return html_of(views)

    def _repr_png_(self) -> bytes | None:
        views = self.views()
        if not views:
            return None
        from pipeplan.drawing.notebook import png_of

        return png_of(views)


def _module(name: str) -> ModuleType:
    """A module of the api that knows every class of answer; tables bring rich, so it is loaded late."""
    return import_module(f"pipeplan.api.{name}")
