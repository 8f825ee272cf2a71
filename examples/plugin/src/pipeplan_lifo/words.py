"""A schedule as words: a line for each rank, ops separated by blanks."""

from pipeplan.formats import Format
from pipeplan.model import format_schedule, parse_schedule

WORDS = Format(
    name="words",
    title="Words",
    help="The text notation, ops separated by blanks.",
    ending=".words",
    media="text/plain; charset=utf-8",
    write_schedule=lambda schedule: format_schedule(schedule) + "\n",
    read=lambda text, name, keep_duplicates: parse_schedule(text).renamed(name),
)
