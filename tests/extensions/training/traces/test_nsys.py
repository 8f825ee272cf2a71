"""Nsight Systems' export: NVTX ranges mark the ops of every process, and kernels are theirs by their launches.

The tables are made here by NVIDIA's schema; no export of a GPU's run is at hand.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeplan.costs import Settings
from pipeplan.extensions.training.traces import read_run
from pipeplan.foundation.errors import FormatError
from pipeplan.model import COMPUTE_KINDS, Timeline, among, format_cells, parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.simulation import simulate

TABLES = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,
    textId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, shortName INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT, name TEXT NOT NULL, nameEnum INTEGER, value TEXT);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1790857026000000000, '', '');
INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (NULL, NULL, 'Hostname', 0, 'one');
"""

GEMM, SEND_RECV = 1, 2


def run_of(plan: str) -> Timeline:
    schedule = insert_communication(parse_schedule(plan))
    costs = Settings(time_unit="ms", p2p_time=0.5, forward_times=1.0).costs(schedule.placement)
    return simulate(schedule, costs, communication="blocking").timeline


RUN = run_of("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")


def export(path: Path, run: Timeline, *, name: str = "PP:{}", by_text_id: bool = False) -> None:
    """A report of both ranks of a run, each in a process; the host runs ahead of the GPU."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(TABLES)
        database.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", [(GEMM, "gemm"), (SEND_RECV, "ncclDevKernel_SendRecv")]
        )
        for rank in range(run.schedule.ranks):
            # Processes are numbered against the ranks.
            process = (0x1000000 * (9 - rank)) & ~0xFFFFFF
            for number, row in enumerate(rows_of(run, rank)):
                cell, kernel, start, end = row
                at, correlation = 20_000 * number, number + 1
                text, key = name.format(cell), 100 + 50 * rank + number
                if by_text_id:
                    database.execute("INSERT INTO StringIds VALUES (?, ?)", (key, text))
                marked = (at, at + 15_000, None if by_text_id else text, process + 1, key if by_text_id else None)
                database.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, ?)", marked)
                # Autograd launches from a thread of its own.
                launch = (at + 5000, at + 6000, process + 2, correlation, 3)
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", launch)
                stream = 7 if kernel == GEMM else 20
                done = (start, end, 0, stream, correlation, process, kernel)
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?)", done)
                copied = (end, end + 9000, 0, 30, correlation, process)
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, ?, ?, ?)", copied)
        database.commit()


def rows_of(run: Timeline, rank: int) -> list[tuple[str, int, int, int]]:
    """Cell, kernel, start and end in nanoseconds of a rank's ops."""
    first, stop = run.schedule.offsets[rank], run.schedule.offsets[rank + 1]
    computes = among(run.schedule.columns.kind, COMPUTE_KINDS)
    return [
        (cell, GEMM if computes[at] else SEND_RECV, round(run.start[at] * 1e6), round(run.end[at] * 1e6))
        for cell, at in zip(format_cells(run.schedule[rank]), range(first, stop), strict=True)
    ]


@pytest.mark.parametrize(
    ("options", "folder"), [({}, False), ({"by_text_id": True}, True), ({"name": "PP:{}, op_id = 7"}, False)]
)
def test_ranges_and_the_kernels_that_they_launched(tmp_path, options: dict[str, Any], folder):
    path = tmp_path / "report 1?.sqlite"
    export(path, RUN, **options)
    run = read_run(tmp_path if folder else path)
    (timeline,) = run.timelines
    assert timeline.schedule == RUN.schedule
    compute = among(RUN.schedule.columns.kind, COMPUTE_KINDS)
    np.testing.assert_allclose(timeline.start[compute], RUN.start[compute], atol=1e-6)
    np.testing.assert_allclose(timeline.end[compute], RUN.end[compute], atol=1e-6)


def test_bad_exports(tmp_path):
    path = tmp_path / "a.sqlite"
    path.write_text("no database, but text")
    with pytest.raises(
        FormatError, match=r"a\.sqlite is not an SQLite export of Nsight Systems: .*; create one with: nsys export"
    ):
        read_run(path)
    path.unlink()
    with pytest.raises(FormatError, match="is not an SQLite export of Nsight Systems: unable to open"):
        read_run(path)
    export(path, RUN, name="{}")
    with pytest.raises(FormatError, match=r"no annotated pipeline ops \(such as 'PP:2F0'\)"):
        read_run(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE NVTX_EVENTS")
    with pytest.raises(FormatError, match="no annotated pipeline ops"):
        read_run(path)
