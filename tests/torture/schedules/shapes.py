"""Random schedules that are right: published ones with passes over them, and ones that no strategy makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import Placement, Schedule, from_ops
from pipeplan.model.op import NO_GROUP, Kind, Op
from pipeplan.passes import insert_communication, insert_offload, insert_recompute, merge_backward, split_backward
from pipeplan.strategies import STRATEGIES
from tests.slow_simulator import Key, key, needs
from tests.torture.schedules.oracle import COMPUTE, COPIES, runs

CELLS = 20
"""Stages times microbatches times slices, at most."""

Rows = list[list[Op]]


def random_schedule(
    random: Random, *, messages: bool | None = None, stage_wide: bool | None = None, pairs: bool = False
) -> Schedule:
    """A right schedule; with or without messages and ops of whole stages, or either by chance; ``pairs``: with some."""
    with_messages = random.random() < 0.4 if messages is None else messages
    whole = random.random() < 0.15 if stage_wide is None else stage_wide
    names = OVERLAPPED if pairs else sorted(STRATEGIES)
    published = random.random() < 0.4
    schedule = _published(random, with_messages, names) if published else Grown(random, with_messages).schedule
    if pairs and not schedule.joined.any():
        return random_schedule(random, messages=messages, stage_wide=stage_wide, pairs=True)
    return _with_stage_wide(random, schedule) if whole else schedule


def rows_of(schedule: Schedule) -> Rows:
    """Each rank's ops."""
    return [list(row) for row in schedule]


def random_placement(random: Random) -> Placement:
    """Named ones of every kind and ones without a name, of one copy or more."""
    kind = random.choice(
        ("linear", "linear", "loop", "v", "wave", "bidirectional", "bidirectional-v", "custom", "dealt")
    )
    ranks = random.choice((1, 2, 2, 3, 3, 4))
    if kind.startswith("bidirectional"):
        return Placement.called(kind, random.choice((2, 2, 4)), 1)
    if kind not in {"custom", "dealt"}:
        return Placement.called(kind, ranks, random.choice((2, 2, 3)) if kind in {"loop", "wave"} else 2)
    stages = random.randint(ranks, 2 * ranks + 1)
    copies = random.choice((1, 1, 2, 3)) if kind == "dealt" else 1
    return Placement.of(*(_dealt(random, ranks, stages) for _ in range(copies)))


def _dealt(random: Random, ranks: int, stages: int) -> tuple[int, ...]:
    """Every rank at least one stage, in any order."""
    dealt = [*range(ranks), *(random.randrange(ranks) for _ in range(stages - ranks))]
    random.shuffle(dealt)
    return tuple(dealt)


OVERLAPPED = ("1f1b-overlap", "dualpipe", "dualpipev", "interleaved-1f1b-overlap")
"""Published schedules with pairs."""


def _published(random: Random, messages: bool, strategies: Sequence[str]) -> Schedule:
    while True:
        strategy = STRATEGIES[random.choice(strategies)]
        ranks = random.choice((1, 2, 2, 3, 4))
        chunks = None if strategy.fixed_chunks else random.choice((1, 2, 3))
        try:
            shape = strategy.shape(
                ranks,
                random.choice((ranks, 2 * ranks, random.randint(1, 8))),
                chunks,
                slices=random.choice((1, 2, 3)) if strategy.slices > 1 else None,
                variant=random.choice((None, *strategy.variants)),
            )
            schedule = strategy(shape)
        except PipeplanError:
            continue
        if schedule.keys <= 2 * CELLS:
            return _passed(random, schedule, messages)


def _passed(random: Random, schedule: Schedule, messages: bool) -> Schedule:
    """After passes that fit it."""
    chosen = random.choice((None, None, split_backward, merge_backward, insert_recompute, insert_offload))
    if chosen == insert_offload:
        schedule = insert_offload(schedule, offload_behind=random.choice((0, 1, 2)), reload_ahead=random.choice((0, 1)))
    elif chosen == insert_recompute:
        some = [stage for stage in range(schedule.stages) if random.random() < 0.6]
        schedule = insert_recompute(schedule, some) if some else schedule
    elif chosen is not None:
        schedule = chosen(schedule)
    return insert_communication(schedule, receives=random.choice(("early", "late"))) if messages else schedule


class Grown:
    """A schedule that no strategy makes: at every moment, any op that can run is next on its rank.

    Written down as it runs, it needs no proof that it can run. Messages are received in the order in which they were sent;
    ``meets``: at once, so that it also runs where both ends block.
    """

    def __init__(self, random: Random, messages: bool) -> None:
        self.random, self.messages = random, messages
        self.placement = random_placement(random)
        self.slices = random.choice((1, 1, 1, 2, 3))
        copies = self.placement.copies
        most = max(CELLS // (self.placement.stages * self.slices * copies), 1)
        self.microbatches = copies * random.randint(1, min(most, 5))
        self.meets = random.random() < 0.5
        self.pairs = random.choice((0.0, 0.0, 0.3, 0.8))
        self.rows: Rows = [[] for _ in range(self.placement.ranks)]
        self.groups = 0
        self._grow()

    @property
    def schedule(self) -> Schedule:
        columns = [from_ops(row) for row in self.rows]
        return Schedule.from_rows(self.placement, self.microbatches, columns, slices=self.slices, name="grown")

    def _holder(self, stage: int, microbatch: int) -> int:
        return self.placement.rank_of[microbatch * self.placement.copies // self.microbatches][stage]

    def _ops(self) -> Iterator[Op]:
        """Everything that is to be done, with backwards full or split, and what they need kept, made again or moved."""
        full, again, moved = (self.random.choice((0.0, 0.0, 0.5, 1.0)) for _ in range(3))
        stages = self.placement.stages
        for stage in range(stages):
            for microbatch in range(self.microbatches):
                across = stage + 1 < stages and self._holder(stage, microbatch) != self._holder(stage + 1, microbatch)
                back = stage > 0 and self._holder(stage, microbatch) != self._holder(stage - 1, microbatch)
                for part in range(self.slices):
                    kinds = [Kind.F, *((Kind.B,) if self.random.random() < full else (Kind.I, Kind.W))]
                    if self.random.random() < again:
                        kinds.append(Kind.R)
                    elif self.random.random() < moved:
                        kinds += (Kind.OFFLOAD, Kind.RELOAD)
                    kinds += (Kind.SEND_F, Kind.RECV_B) if across and self.messages else ()
                    kinds += (Kind.RECV_F, Kind.SEND_B) if back and self.messages else ()
                    yield from (Op(kind, stage, microbatch, part) for kind in kinds)

    def _grow(self) -> None:
        ops = {key(op): op for op in self._ops()}
        weight = {kind: self.random.choice((0.2, 1.0, 1.0, 5.0)) for kind in Kind}
        waits = {one: set(needs(op, ops, self.placement.stages, self.slices)) for one, op in ops.items()}
        wanted: dict[Key, list[Key]] = defaultdict(list)
        for one, its in waits.items():
            for need in its:
                wanted[need].append(one)
        ready = [one for one, its in waits.items() if not its]
        channels: dict[tuple[int, int], list[Key]] = defaultdict(list)
        while ready:
            one = self.random.choices(ready, [weight[candidate[0]] for candidate in ready])[0]
            for done in self._take(one, ready, ops):
                ready.remove(done)
                self._run(done, wanted, waits, ready, channels)

    def _take(self, one: Key, ready: list[Key], ops: dict[Key, Op]) -> list[Key]:
        """Put an op into its row, with another that can run beside it now and then."""
        op, rank = ops[one], self._holder(one[1], one[2])
        if op.kind == Kind.F and self.random.random() < self.pairs:
            beside = [
                candidate
                for candidate in ready
                if candidate[0] in {Kind.B, Kind.I} and self._holder(candidate[1], candidate[2]) == rank
            ]
            if beside:
                other = self.random.choice(beside)
                self.rows[rank] += [replace(candidate, group=self.groups) for candidate in (op, ops[other])]
                self.groups += 1
                return [one, other]
        self.rows[rank].append(op)
        return [one]

    def _run(
        self,
        done: Key,
        wanted: dict[Key, list[Key]],
        waits: dict[Key, set[Key]],
        ready: list[Key],
        channels: dict[tuple[int, int], list[Key]],
    ) -> None:
        """What an op that is done makes possible: receives one after the other on each channel."""
        for follower in wanted[done]:
            waits[follower].discard(done)
            if waits[follower]:
                continue
            if follower[0] not in {Kind.RECV_F, Kind.RECV_B}:
                ready.append(follower)
                continue
            if self.meets:
                self.rows[self._holder(*follower[1:3])].append(Op(*follower))
                self._run(follower, wanted, waits, ready, channels)
                continue
            line = channels[self._holder(*done[1:3]), self._holder(*follower[1:3])]
            line.append(follower)
            if len(line) == 1:
                ready.append(follower)
        if done[0] in {Kind.RECV_F, Kind.RECV_B} and not self.meets:
            step = -1 if done[0] == Kind.RECV_F else 1
            line = channels[self._holder(done[1] + step, done[2]), self._holder(*done[1:3])]
            line.pop(0)
            ready += line[:1]


def _with_stage_wide(random: Random, schedule: Schedule) -> Schedule:
    """Every stage gathered before it computes, given back behind it, and its gradients reduced at the end."""
    rows = rows_of(schedule)
    gathers, reduces = random.choice(((True, True), (True, True), (False, True)))
    for row in rows:
        stages = {op.stage for op in row if op.kind in COMPUTE}
        for stage in sorted(stages):
            if gathers:
                first = next(number for number, op in enumerate(row) if op.stage == stage and op.kind in COMPUTE)
                row.insert(_outside(row, random.randint(0, first)), Op(Kind.UNSHARD, stage))
            for kind in [Kind.RESHARD] * gathers + [Kind.REDUCE_GRAD] * reduces:
                last = max(number for number, op in enumerate(row) if op.stage == stage and op.kind in COMPUTE)
                row.insert(_outside(row, random.randint(last + 1, len(row)), ahead=True), Op(kind, stage))
    columns = [from_ops(row) for row in rows]
    return Schedule.from_rows(
        schedule.placement, schedule.microbatches, columns, slices=schedule.slices, name=schedule.name
    )


def _outside(row: list[Op], number: int, *, ahead: bool = False) -> int:
    """A place in a row that is not between the two of a pair: this one, or one to the side."""
    inside = 0 < number < len(row) and row[number].group != NO_GROUP and row[number].group == row[number - 1].group
    return number + (1 if ahead else -1) * inside


def timed_rows(rows: Rows) -> Rows:
    """The rows without messages and ops of whole stages."""
    return [[op for op in row if op.kind in COMPUTE | COPIES] for row in rows]


def shown(rows: Iterable[Sequence[Op]]) -> str:
    """Rows of any ops for a person: those of one group in brackets."""
    return "\n".join(
        " ".join("+".join(map(str, run)).join("()" if run[0].group != NO_GROUP else ("", "")) for run in runs(row))
        for row in rows
    )
