"""A placement of collectives as a list of episodes, in which single ones can be moved.

An episode is the time for which a stage is gathered on a rank: it is gathered before some op, used for the first and for the
last time, and then freed at once. Reductions, and waits for them, are before some op, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter, itemgetter

import numpy as np

from pipeplan.model import (
    COMPUTE_KINDS,
    NO_MICROBATCH,
    STAGE_WIDE_KINDS,
    Ints,
    Kind,
    Schedule,
    Timeline,
    among,
    ops,
)
from pipeplan.passes import insert_collectives, last_weight_gradients, without_collectives

FURTHEST = 0.5
"""Parameter of the geometric distribution of steps: a move is this likely to go one step only."""

DELAYING = 0.7
"""Share of moves that concern a collective which an op waits for, or the last one of all."""


PAIRS = 0.3
"""Share of moves that are followed by another one before the result is judged."""


@dataclass(slots=True)
class Episode:
    """A stage that is gathered on a rank: position before which, positions of its first and of its last use.

    Of the collectives before one position, that with the smallest ``turn`` is posted first.
    """

    rank: int
    stage: int
    before: int
    turn: float
    first: int
    last: int


@dataclass(slots=True)
class Reduction:
    """A reduction: position before which it is posted, its last weight gradient, and where the rank waits for it, or -1."""

    rank: int
    stage: int
    before: int
    turn: float
    last: int
    awaited: int


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The places of all collectives in the rows of a schedule without them."""

    plain: Schedule
    episodes: tuple[Episode, ...]
    reductions: tuple[Reduction, ...]

    @classmethod
    def of(cls, schedule: Schedule) -> Placed:
        """Return the places of a schedule's collectives."""
        plain = without_collectives(schedule)
        kinds, stages = schedule.columns.kind.tolist(), schedule.columns.stage.tolist()
        last = {}
        for op in last_weight_gradients(plain).tolist():
            last[int(plain.rank[op]), int(plain.columns.stage[op])] = op
        episodes: list[Episode] = []
        reductions: dict[tuple[int, int], Reduction] = {}
        place = 0
        for rank, (start, stop) in enumerate(pairwise(schedule.offsets.tolist())):
            gathered: dict[int, Episode] = {}
            for op in range(start, stop):
                kind, stage = kinds[op], stages[op]
                if kind not in STAGE_WIDE_KINDS:
                    if kind in COMPUTE_KINDS:
                        episode = gathered[stage]
                        episode.last = place
                        if episode.first < 0:
                            episode.first = place
                    place += 1
                elif kind == Kind.UNSHARD:
                    gathered[stage] = Episode(rank, stage, place, op, -1, -1)
                    episodes.append(gathered[stage])
                elif kind == Kind.REDUCE_GRAD:
                    reductions[rank, stage] = Reduction(rank, stage, place, op, last[rank, stage], -1)
                elif kind == Kind.WAIT_REDUCE_GRAD:
                    reductions[rank, stage].awaited = place
        return cls(plain, tuple(episode for episode in episodes if episode.first >= 0), tuple(reductions.values()))

    @property
    def schedule(self) -> Schedule:
        """The schedule with its collectives."""
        entries = [(each.rank, each.before, each.turn, each.stage, Kind.UNSHARD) for each in self.episodes]
        entries += [(each.rank, self._behind(each.last), -1.0, each.stage, Kind.RESHARD) for each in self.episodes]
        for each in self.reductions:
            entries.append((each.rank, each.before, each.turn, each.stage, Kind.REDUCE_GRAD))
            if each.awaited >= 0:
                entries.append((each.rank, each.awaited, np.inf, each.stage, Kind.WAIT_REDUCE_GRAD))
        entries.sort(key=itemgetter(2))
        rank, before, _, stage, kind = (np.array(column) for column in zip(*entries, strict=True))
        return insert_collectives(self.plain, rank, before, ops(kind, stage, NO_MICROBATCH))

    def _behind(self, op: int) -> int:
        """Return the position behind an op, or behind the pair that it begins."""
        return op + 1 + int(self.plain.begins_pair[op])

    def _outside_pair(self, position: int) -> int:
        """Return a position that is not between the two ops of a pair."""
        joined = self.plain.joined
        return position - int(position < len(joined) and bool(joined[position]))

    def delaying(self, timeline: Timeline) -> tuple[list[int], list[int]]:
        """Return the episodes whose first use begins when they are gathered, and the reductions that end last on a rank."""
        schedule = timeline.schedule
        gathers, reduces = schedule.where(Kind.UNSHARD), schedule.where(Kind.REDUCE_GRAD)
        starts = timeline.start[self._compute(schedule)]
        ends: dict[tuple[int, int, int], float] = {}
        count: dict[tuple[int, int], int] = {}
        for op in gathers.tolist():
            key = int(schedule.rank[op]), int(schedule.columns.stage[op])
            turn = count[key] = count.get(key, -1) + 1
            ends[*key, turn] = float(timeline.end[op])
        waited: list[int] = []
        turns: dict[tuple[int, int], int] = {}
        for number in sorted(range(len(self.episodes)), key=lambda number: self.episodes[number].first):
            episode = self.episodes[number]
            key = episode.rank, episode.stage
            turn = turns[key] = turns.get(key, -1) + 1
            end = ends.get((*key, turn), -1.0)
            if end > 0 and starts[episode.first] <= end:
                waited.append(number)
        last = {
            (int(schedule.rank[op]), int(schedule.columns.stage[op])): float(timeline.end[op])
            for op in reduces.tolist()
        }
        late = [
            number
            for number, each in enumerate(self.reductions)
            if last[each.rank, each.stage] >= timeline.last_end[each.rank]
        ]
        return waited, late

    def _compute(self, schedule: Schedule) -> Ints:
        """Return the positions in a schedule with collectives of the ops without them."""
        return np.flatnonzero(~among(schedule.columns.kind, STAGE_WIDE_KINDS))

    def moved(self, random: np.random.Generator, delaying: tuple[list[int], list[int]]) -> Placed | None:
        """Return a random neighbour; None if the move that was drawn leads nowhere."""
        neighbour = self._moved(random, delaying)
        # Which stage makes room for which takes two moves.
        if neighbour is not None and random.random() < PAIRS:
            neighbour = neighbour._moved(random, ([], []))
        return neighbour

    def _moved(self, random: np.random.Generator, delaying: tuple[list[int], list[int]]) -> Placed | None:
        waited, late = delaying
        draw = random.random()
        if draw < 0.45 and self.episodes:
            return self._gathered_elsewhere(random, self._chosen(random, waited, len(self.episodes)))
        if draw < 0.6:
            return self._reduced_elsewhere(random, self._chosen(random, late, len(self.reductions)))
        if draw < 0.7:
            return self._kept(self._chosen(random, waited, len(self.episodes)))
        if draw < 0.85:
            return self._freed_between(random, int(random.integers(len(self.episodes))))
        return self._freed_instead(random, self._chosen(random, waited, len(self.episodes)))

    @staticmethod
    def _chosen(random: np.random.Generator, preferred: list[int], count: int) -> int:
        if preferred and random.random() < DELAYING:
            return preferred[int(random.integers(len(preferred)))]
        return int(random.integers(count))

    def _gathered_elsewhere(self, random: np.random.Generator, number: int) -> Placed | None:
        """Return the placement with an episode that begins earlier or later, before or behind others at its new place."""
        episode = self.episodes[number]
        earlier = self._before(episode)
        earliest = int(self.plain.offsets[episode.rank]) if earlier is None else self._behind(earlier.last)
        step = self._step(random)
        before = self._outside_pair(min(max(episode.before + step, earliest), episode.first))
        moved = replace(episode, before=before, turn=random.random() * len(self.plain))
        return replace(self, episodes=(*self.episodes[:number], moved, *self.episodes[number + 1 :]))

    def _reduced_elsewhere(self, random: np.random.Generator, number: int) -> Placed | None:
        """Return the placement with a reduction that is posted earlier or later."""
        reduction = self.reductions[number]
        stop = int(self.plain.offsets[reduction.rank + 1]) if reduction.awaited < 0 else reduction.awaited
        before = min(max(reduction.before + self._step(random), self._behind(reduction.last)), stop)
        before = max(self._outside_pair(before), self._behind(reduction.last))
        moved = replace(reduction, before=before, turn=random.random() * len(self.plain))
        return replace(self, reductions=(*self.reductions[:number], moved, *self.reductions[number + 1 :]))

    def _before(self, episode: Episode) -> Episode | None:
        """Return the episode before this one of its stage and rank, or None."""
        earlier = [
            other
            for other in self.episodes
            if (other.rank, other.stage) == (episode.rank, episode.stage) and other.last < episode.first
        ]
        return max(earlier, key=attrgetter("last"), default=None)

    def _kept(self, number: int) -> Placed | None:
        """Return the placement in which an episode goes on from the one before of its stage."""
        episode = self.episodes[number]
        before = self._before(episode)
        if before is None:
            return None
        rest = (replace(other, last=episode.last) if other is before else other for other in self.episodes)
        return replace(self, episodes=tuple(other for other in rest if other is not episode))

    def _freed_instead(self, random: np.random.Generator, number: int) -> Placed | None:
        """Return the placement in which a stage stays gathered, and another one is freed meanwhile."""
        episode = self.episodes[number]
        before, kept = self._before(episode), self._kept(number)
        if before is None or kept is None:
            return None
        others = [
            other
            for other, each in enumerate(kept.episodes)
            if each.rank == episode.rank
            and each.stage != episode.stage
            and each.first < episode.first
            and each.last > before.last
        ]
        return kept._freed_between(random, others[int(random.integers(len(others)))]) if others else None

    def _freed_between(self, random: np.random.Generator, number: int) -> Placed | None:
        """Return the placement in which a stage is freed between two of its uses, and gathered again."""
        episode = self.episodes[number]
        inside = np.arange(episode.first, episode.last + 1)
        columns = self.plain.columns[episode.first : episode.last + 1]
        uses = inside[(columns.stage == episode.stage) & among(columns.kind, COMPUTE_KINDS)]
        gaps = np.flatnonzero(np.diff(uses) > 1)
        if not gaps.size:
            return None
        gap = int(gaps[int(random.integers(len(gaps)))])
        until, again = int(uses[gap]), int(uses[gap + 1])
        if self._behind(until) > self._outside_pair(again):
            return None
        before = max(self._outside_pair(int(random.integers(self._behind(until), again + 1))), self._behind(until))
        turn = random.random() * len(self.plain)
        parts = replace(episode, last=until), replace(episode, before=before, turn=turn, first=again)
        return replace(self, episodes=(*self.episodes[:number], *parts, *self.episodes[number + 1 :]))

    @staticmethod
    def _step(random: np.random.Generator) -> int:
        length = int(random.geometric(FURTHEST)) - 1
        return length if random.integers(2) else -length
