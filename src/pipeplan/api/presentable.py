"""What every answer of pipeplan can do: be saved, printed, shown in a notebook, and become a dictionary or a frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pipeplan.errors import MissingExtraError

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from rich.console import RenderableType

    from pipeplan.api.pictures import Look
    from pipeplan.drawing import View
    from pipeplan.formats import Content, Format, TrainerSettings, Training


class Presentable(ABC):
    """An answer that a person or a program looks at.

    A class behind it says what it holds: its record, its rows, its table and what there is to draw. What writes and prints
    is loaded when it is first used.
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

    @abstractmethod
    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows: tables and sentences, from top to bottom."""

    def contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Return what can be written of it, each made when its format is known: its record, and what :meth:`views` shows."""
        contents: dict[Content, Callable[[Format], Any]] = {"record": lambda _: self.to_dict()}
        if views := self.views():
            contents["pictures"] = lambda _: views
        return contents

    def write_whole(self, path: Path) -> bool:
        """Write the only file that the answer can be, whatever its ending; False where the ending chooses the format."""
        return False

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
        from pipeplan.api.outputs import save

        return save(self, path, ending=ending, training=training, **look)

    def print(self) -> None:
        """Print the table that the command prints."""
        from pipeplan.api.tables.parts import show

        show(*self.table())

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
            return self._tables_as_html()
        from pipeplan.drawing.notebook import html_of

        return html_of(views)

    def _tables_as_html(self) -> str:
        from pipeplan.api.tables.parts import html

        return html(*self.table())

    def _repr_png_(self) -> bytes | None:
        views = self.views()
        if not views:
            return None
        from pipeplan.drawing.notebook import png_of

        return png_of(views)
