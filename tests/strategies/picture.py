"""A timeline as the timing table that strategies have in their docstrings."""

from pipeplan.model import Timeline


def picture(timeline: Timeline) -> str:
    """A row a rank, a column a unit of time.

    An op stands where it starts and is followed by ``--`` as long as it lasts; ``.`` is idle. An overlapped pair stands as
    ``(0F2 7B1)`` in its first two columns.
    """
    schedule = timeline.schedule
    rows = [["."] * round(timeline.makespan) for _ in range(schedule.ranks)]
    for position, op in enumerate(schedule.columns):
        row, start, end = rows[schedule.rank[position]], round(timeline.start[position]), round(timeline.end[position])
        if schedule.joined[position]:
            row[start : start + 2] = ["(" + row[start], f"{op})"]
        else:
            row[start:end] = [str(op), *["--"] * (end - start - 1)]
    width = max(len(cell) for row in rows for cell in row)
    lines = (" ".join(cell.ljust(width) for cell in row).rstrip() for row in rows)
    return "\n".join(f"rank {rank} | {line}" for rank, line in enumerate(lines))
