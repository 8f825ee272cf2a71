"""JSON of a result that a search found: the figures of the result, then those of its search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import asdict

from pipeplan.answers.simulating.result import Result, ResultRecord
from pipeplan.extensions.search.answers.search_record import SearchRecord
from pipeplan.foundation.records import optional_fields

if TYPE_CHECKING:
    SearchedResult = ResultRecord
else:
    SearchedResult = msgspec.defstruct(
        "Result",  # its name in schemas
        optional_fields(SearchRecord),
        bases=(ResultRecord,),
        namespace={"__doc__": Result.__doc__, "__qualname__": "SearchedResult"},
        frozen=True,
        kw_only=True,
    )


def searched_figures(result: Result) -> dict[str, Any]:
    """Return the fields of :class:`SearchedResult` for a result that a search found."""
    assert result.search is not None
    return asdict(result) | asdict(result.search)
