"""The obvious slow simulator on communication streams, and an executor without times."""

from __future__ import annotations

from collections import deque

from pipeplan.costs import Costs
from pipeplan.model import Kind, Op, Schedule, Timeline
from tests.slow_collectives import WAITS, Events, partner, stream_name
from tests.slow_simulator import PARTNERS, Key, key, turns

COMES_FROM = {Kind.F: Kind.RECV_F, Kind.B: Kind.RECV_B, Kind.I: Kind.RECV_B}


def awaited_messages(turn: tuple[Op, ...], present: set[Key]) -> list[Key]:
    """The ends of messages that must be over before a turn of the same rank."""
    ends = []
    for op in turn:
        kind = COMES_FROM.get(op.kind) or WAITS.get(op.kind)
        if kind is not None and (kind, op.stage, op.microbatch, op.slice) in present:
            ends.append((kind, op.stage, op.microbatch, op.slice))
    return ends


class Executor:
    """Runs the rows without times: ranks and queues go on in turn, until nothing changes any more."""

    def __init__(self, schedule: Schedule, streams: str) -> None:
        self.rows = [list(turns(schedule[rank])) for rank in range(schedule.ranks)]
        home = {key(op): rank for rank, row in enumerate(schedule) for op in row}
        present, over = set(home), set[Key]()
        at = [0] * schedule.ranks
        queues: dict[tuple[object, ...], deque[Key]] = {}
        posted: dict[Key, tuple[object, ...]] = {}
        changed = True
        while changed:
            changed = False
            for rank, row in enumerate(self.rows):
                while at[rank] < len(row):
                    turn = row[at[rank]]
                    if turn[0].kind in PARTNERS:
                        name = stream_name(turn[0], rank, home[partner(turn[0])], streams)
                        queues.setdefault(name, deque()).append(key(turn[0]))
                        posted[key(turn[0])] = name
                    elif any(end not in over for end in awaited_messages(turn, present)):
                        break
                    at[rank] += 1
                    changed = True
            for queue in list(queues.values()):
                while queue:
                    here = queue[0]
                    there = partner(Op(*here))
                    if there not in posted or queues[posted[there]][0] != there:
                        break
                    queue.popleft()
                    queues[posted[there]].popleft()
                    over |= {here, there}
                    changed = True
        self.stuck = any(at[rank] < len(row) for rank, row in enumerate(self.rows)) or any(queues.values())
        """True where the rows never end, or a message never does."""


def slow_streams(schedule: Schedule, costs: Costs, streams: str) -> Timeline:
    """Every rank runs its row; messages wait in queues beside it, and begin where both ends are first.

    Raises
    ------
    DeadlockError
        Where something is left when nothing happens any more.
    """
    return Events(schedule, costs, "streams", streams=streams).timeline()
