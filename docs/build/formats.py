"""The page of the documentation that lists the file formats, made from their table."""

from __future__ import annotations

from pipeplan.answers.outputs import all_formats, export_formats
from pipeplan.formats import Content, Format

_HEAD = """# Formats

The ending of a file chooses its format: of `-o FILE` (in Python `result.save(FILE)`), of `pipeplan export IN -o OUT`, and of
every file that is read. `pipeplan export NAME --to FORMAT` takes the name. The web app's menu *Download* has all that can be
written. Of several endings that a file has, such as `.json` and `.trace.json`, the longest counts.

What Megatron-LM runs, needs and forbids: [megatron.md](../how-to/megatron.md);
torchtitan: [torchtitan.md](../how-to/torchtitan.md).
"""

_WORDS: dict[Content, str] = {
    "schedule": "a schedule",
    "settings": "a schedule",
    "timeline": "a timeline",
    "costs": "costs",
    "record": "the record of any answer",
    "report": "pages with a table",
    "pictures": "pictures",
    "front picture": "a picture of a front",
    "plan picture": "a picture of a plan",
}


def formats_page() -> str:
    """Return the page in Markdown."""
    rows = [_row(entry) for entry in all_formats().values()]
    # Without blanks between cells: they would count as words.
    head = "|format|ending|written of|read|export|for|\n|---|---|---|---|---|---|"
    return "\n".join([_HEAD, head, *rows, ""])


def _row(entry: Format) -> str:
    written = ", ".join(_WORDS[content] for content in entry.writers) or "-"
    read, exported = ("yes" if holds else "-" for holds in (entry.read is not None, entry.name in export_formats()))
    return f"|{'|'.join((f'`{entry.name}`', f'`{entry.ending}`', written, read, exported, entry.help))}|"
