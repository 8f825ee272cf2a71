"""Answers that begin with one sentence: their base, and how much of them is printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from pipeplan.answers.answers import AnswerRecord
from pipeplan.answers.parts import MOST_ROWS, Line, line, show
from pipeplan.costs import Options, option
from pipeplan.model import counted, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, kw_only=True)
class ShownOptions(Options):
    """How much of an answer is printed; JSON and files always have all of it."""

    all: bool = option(False, kind="flag", group="output", usual=False, help=f"List every row, not only {MOST_ROWS}.")
    verbose: bool = option(False, kind="flag", group="output", usual=False, help="Print the details, too.")


BRIEF = ShownOptions()
"""What is printed by default."""


class HeadlinedAnswer(AnswerRecord, frozen=True, kw_only=True):
    """Base of the answers that begin with a sentence: in the terminal, a notebook and ``repr``, and as first key in JSON.

    A class declares ``headline: str`` as its first field, and defines ``_below``.
    """

    @property
    def headline(self) -> str:
        """The answer in one sentence, as a person would say it."""
        raise NotImplementedError

    def _below(self, shown: ShownOptions = BRIEF) -> Iterable[RenderableType]:
        """Return the parts of ``print()`` below the headline: tables and sentences, from top to bottom."""
        raise NotImplementedError

    def _table(self, shown: ShownOptions = BRIEF) -> Iterable[RenderableType]:
        yield line(self.headline, "bold")
        yield from self._below(shown)

    def print(self, *, all: bool = False, verbose: bool = False) -> None:
        """Print what the command prints: with ``all``, every row of its tables; with ``verbose``, the details, too."""
        show(*self._table(ShownOptions(all=all, verbose=verbose)))

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the headline and the picture, or the table of an answer without one."""
        if not self._views():
            return self._tables_as_html()
        return f"<p><strong>{escape(one_line(self.headline))}</strong></p>{super()._repr_html_()}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}>"


def more_rows(count: int, noun: str) -> tuple[Line, ...]:
    """Return a line on the rows of a table that are not listed, and how to list them; none if all are listed."""
    return (line(f"{counted(count, noun)} not listed: --all (in Python: all=True)", "dim"),) if count else ()


def more_details(hidden: Sequence[str], shown: ShownOptions) -> tuple[Line, ...]:
    """Return the one line that names the ``hidden`` details and how to print them; none if they are printed or empty."""
    if shown.verbose or not hidden:
        return ()
    return (line(f"--verbose (in Python: verbose=True) adds {', '.join(hidden)}", "dim"),)
