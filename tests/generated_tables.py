"""Tables that stand between comments in a page of the documentation and are made by the code."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

Tables = Mapping[str, Callable[[], str]]
"""The text of each table by its name in the comments, such as ``<!-- models: ... -->`` and ``<!-- models end -->``."""


def with_tables(page: str, tables: Tables) -> str:
    """Return the text of a page with its tables made anew."""
    for name, made in tables.items():
        between = re.compile(rf"(<!-- {name}: .* -->\n).*?(<!-- {name} end -->)", re.DOTALL)
        assert between.search(page), f"the page has no table {name}"
        page = between.sub(lambda match, made=made: match[1] + made() + match[2], page)  # type: ignore[misc]
    return page


def write_tables(page: Path, tables: Tables) -> None:
    """Write the tables of a page anew."""
    page.write_text(with_tables(page.read_text(), tables))
