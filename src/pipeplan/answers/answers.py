"""Base of all answers: saving, printing, notebook views, dictionaries and data frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, Unpack, overload

from pipeplan.costs import Costs
from pipeplan.formats import TimelineContent, Training
from pipeplan.foundation.errors import InputError, MissingExtraError, UnknownNameError
from pipeplan.foundation.files import Written, path_of
from pipeplan.foundation.records import Record
from pipeplan.model import Schedule, Timeline, require_text, shortened

if TYPE_CHECKING:
    import pandas
    from rich.console import RenderableType

    from pipeplan.drawing import Look, View
    from pipeplan.formats import Content, Format, TrainerSettings

Item = TypeVar("Item")

FilePath = str | os.PathLike[str]


class AnswerRecord(Record, frozen=True, kw_only=True):
    """Base of the objects that the public API returns::

        class Verdict(AnswerRecord, frozen=True, kw_only=True, eq=False):
            valid: bool
            schedule = Evidence[Schedule]()

    The fields of the record are its JSON. A class defines its table, its views and the rows of its frame. What writes and
    prints is loaded when it is first used.
    """

    def _table(self) -> Iterable[RenderableType]:
        """Return the parts of ``print()``: tables and sentences, from top to bottom."""
        raise NotImplementedError

    def _views(self) -> Sequence[View]:
        """Return the views of a picture, from top to bottom; empty if there is nothing to draw."""
        return ()

    def _rows(self) -> Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]:
        """Return the rows of its frame, or the columns."""
        raise NotImplementedError

    def _contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Return its writable contents, each made on demand for a format: its record, and the pictures of :meth:`_views`."""
        contents: dict[Content, Callable[[Format], Any]] = {"record": lambda _: self.to_dict()}
        if views := self._views():
            contents["pictures"] = lambda _: views
        return contents

    def _summary_fields(self) -> str:
        """Return the paths of the parts of its JSON that are in its summary, with spaces between them."""
        return " ".join(self.__struct_encode_fields__)

    def _write_whole(self, path: Path) -> bool:
        """Write the answer if it has only one file format; return False if the suffix selects the format."""
        return False

    def _trained(self, training: Training) -> Training:
        """Return settings of a trainer with what the answer adds to them."""
        return training

    def _own_file(self, name: str) -> TrainerSettings | None:
        """Return the content of a file whose suffix is specific to this answer; None for the suffix of a format."""
        return None

    def save(
        self,
        path: FilePath,
        *,
        ending: str | None = None,
        training: Training | None = None,
        **look: Unpack[Look],
    ) -> Written:
        """Write a file; see ``save`` for suffixes, a trainer's settings, the look of pictures, and errors."""
        return save(self, path, ending=ending, training=training, **look)

    def summary(self) -> dict[str, Any]:
        """Return the parts of its JSON that answer the question, in about 4,000 bytes; ``not_shown`` names the rest."""
        from pipeplan.answers.summaries import summary_of

        return summary_of(self.to_dict(), self._summary_fields())

    def print(self) -> None:
        """Print the table that the command prints."""
        from pipeplan.answers.parts import show

        show(*self._table())

    def to_frame(self) -> pandas.DataFrame:
        """Return a data frame, whose rows depend on the class."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise MissingExtraError("pandas", "pandas") from None
        return DataFrame(self._rows())

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the picture, or the table of an answer that has none."""
        views = self._views()
        if not views:
            return self._tables_as_html()
        from pipeplan.drawing.static import html_of

        return html_of(views)

    def _tables_as_html(self) -> str:
        from pipeplan.answers.parts import html

        return html(*self._table())

    def _repr_png_(self) -> bytes | None:
        views = self._views()
        if not views:
            return None
        from pipeplan.drawing.static import png_of

        return png_of(views)


class Listing(AnswerRecord, Generic[Item], frozen=True, kw_only=True, eq=False):
    """Base of the answers that are lists: iteration gives the items, and a frame has a row for each.

    ``listing["zbv"]`` and ``listing[0]`` are one item, ``listing[:3]`` several. The first field holds the records of the
    items; a class whose first field is another defines ``_rows``, and one with a better summary than the names defines
    ``__repr__``.
    """

    _listed: ClassVar[str]
    """Name of the attribute that holds the items."""

    noun: ClassVar[str] = "name"
    """Noun of an item in messages."""

    name_attribute: ClassVar[str] = "name"
    """Attribute of an item that holds its name; empty if items have no names."""

    def __iter__(self) -> Iterator[Item]:
        return iter(getattr(self, self._listed))

    def __len__(self) -> int:
        return len(getattr(self, self._listed))

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, str) or not self.name_attribute:
            return any(item == other for other in self)
        own_name = self._own_name(item)
        return any(self._name_of(other) == own_name for other in self)

    @overload
    def __getitem__(self, key: str | int) -> Item: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, key: str | int | slice) -> Item | tuple[Item, ...]:
        """Return an item by its name or an alias, or by its place: 0 is the first one; several by a slice.

        Raises
        ------
        IndexError
            For a place that is not here.
        UnknownNameError
            For a name that is not here; the message suggests the nearest one.
        InputError
            For anything else, and for a name if the items have none.
        """
        if isinstance(key, str) and self.name_attribute:
            return self._named(key)
        if isinstance(key, bool) or not (isinstance(key, slice) or hasattr(key, "__index__")):
            keys = "name or its place" if self.name_attribute else "place"
            raise InputError(f"invalid key {shortened(repr(key), 60)}: an item is found by its {keys}")
        items: tuple[Item, ...] = getattr(self, self._listed)
        return items[key]

    def _own_name(self, name: str) -> str:
        """Return the name of the item that has this name or alias; the same text if no alias is known."""
        return name

    def _name_of(self, item: Item) -> str:
        return str(getattr(item, self.name_attribute))

    def _named(self, name: str) -> Item:
        own_name = self._own_name(name)
        for item in self:
            if self._name_of(item) == own_name:
                return item
        raise UnknownNameError(self.noun, name, map(self._name_of, self))

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [record.to_dict() for record in getattr(self, self.__struct_fields__[0])]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(map(self._name_of, self))}>"


Writable = AnswerRecord | Schedule | Timeline | Costs
"""Types that :func:`save` accepts."""


def save(
    answer: Writable,
    path: FilePath,
    *,
    ending: str | None = None,
    training: Training | None = None,
    **look: Unpack[Look],
) -> Written:
    """Write an answer to a file, atomically; the suffix of the file selects the format.

    Returns the files that were written: this one, and those that it names. ``warnings`` report changes of a schedule.

    Parameters
    ----------
    answer
        Answer of any function of the public API, or a schedule, a timeline or costs.
    path
        The file; ``docs/reference/formats.md`` lists the suffixes.
    ending
        Overrides the file's own.
    training
        Further settings of a trainer. Files that they name, such as a CSV, are written too.
    **look
        Options of pictures: ``theme``, ``size`` and ``plain``; see :mod:`pipeplan.drawing`.

    Raises
    ------
    UnknownNameError
        For an unknown suffix.
    InputError
        If the file cannot be written, or the answer has nothing that its format can hold.
    """
    from pipeplan.answers.outputs import write, write_settings  # brings the table of all formats

    path = path_of(path, "the output")
    if ending is not None:
        require_text(ending, "the ending", field="ending")
    if not isinstance(training, Training | None):
        raise InputError(f"training must be a pipeplan.Training, not {shortened(repr(training), 60)}", field="training")
    if isinstance(answer, AnswerRecord):
        if answer._write_whole(path):
            return Written.of(path)
        if (own := answer._own_file(str(path if ending is None else ending))) is not None:
            files = {str(path.parent / name): text for name, text in own.files.items()}
            return write_settings(replace(own, files=files), path)

    of_trainer = partial(training_of, answer, training or Training())
    return write(contents_of(answer), path, ending=ending, what=word_for(answer), training=of_trainer, **look)


def training_of(answer: Writable, training: Training) -> Training:
    """Return settings of a trainer with what an answer adds to them."""
    return answer._trained(training) if isinstance(answer, AnswerRecord) else training


def contents_of(answer: Writable) -> Mapping[Content, Callable[[Format], Any]]:
    """Return the writable contents of an answer, each made on demand for a format."""
    if isinstance(answer, AnswerRecord):
        return answer._contents()
    if isinstance(answer, Costs):
        return {"costs": lambda _: answer}
    from pipeplan.drawing import order_of, view_of

    if isinstance(answer, Schedule):
        return {
            "schedule": lambda _: answer,
            "settings": lambda _: answer,
            "pictures": lambda _: [order_of(answer)],
        }
    if not isinstance(answer, Timeline):
        raise InputError(
            f"cannot write {shortened(repr(answer), 60)}: expected an answer, a schedule, a timeline or costs"
        )
    return {
        "timeline": lambda _: TimelineContent(timeline=answer),
        "schedule": lambda _: answer.schedule,
        "settings": lambda _: answer.schedule,
        "pictures": lambda _: [view_of(answer)],
    }


def word_for(answer: Writable) -> str:
    """Return the noun of an answer for messages: ``a result``, ``an explanation``, ``costs``."""
    if isinstance(answer, Costs):
        return "costs"
    name = type(answer).__name__.lower()
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
