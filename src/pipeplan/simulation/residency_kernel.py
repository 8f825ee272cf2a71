"""Which stages of each rank are gathered when: paging with prefetch, row by row.

A rank is a memory that holds a few of its stages. Before each op it

1. frees stages that are not used any more, and, if memory is short, waits for reductions that it has posted, and frees the
   stage whose next use is furthest away;
2. gathers the op's own stage, if that is missing;
3. gathers missing stages in the order of their next uses, as far ahead as allowed. If memory is short for one, the stage
   whose next use is furthest away makes room, provided that its next use is later, and that the missing one is near.

An example with room for two stages, which looks two stages ahead; it may evict for the next stage (eager 2)::

    row       0F0  0F1  2F0  2F1  4F0  4F1  0F2
    resident  0 2  0 2  2 4  2 4  4 0  4 0  0         before 2F0, stage 4 takes the place of stage 0

Freeing the stage with the furthest next use is Belady's rule. To gather as early as that allows, and to evict for it, are
the "conservative" and the "aggressive" rule of Cao, Felten, Karlin and Li ("A Study of Integrated Prefetching and Caching
Strategies", SIGMETRICS 1995).
"""

from collections.abc import MutableSequence, Sequence

UNSHARDS, RESHARDS, REDUCES, AWAITS = range(4)
"""Kinds of the collectives that are placed."""


def place_collectives(
    offsets: Sequence[int],
    stage_of: Sequence[int],
    joined: Sequence[bool],
    following: Sequence[int],
    reduced: Sequence[int],
    size: Sequence[float],
    gradient: Sequence[float],
    room: Sequence[float],
    ahead: Sequence[int],
    eager: Sequence[int],
    hold: Sequence[int],
    counts: MutableSequence[int],
    collectives: MutableSequence[int],
    queue: MutableSequence[int],
    next_use: MutableSequence[int],
    resident: MutableSequence[bool],
    pending: MutableSequence[int],
    posted: MutableSequence[int],
) -> int:
    """Place the collectives of every rank. Return how many there are, or -1 if the outputs are too short for them.

    =========== ==================================================================================================
    offsets     first op of each rank's row, then the number of ops
    stage_of    stage of each op that computes, -1 for all other ops
    joined      whether each op overlaps with the one before it
    following   next op on the rank that computes the same stage; the end of the row if there is none
    reduced     stage whose gradients are complete with this op, -1 for none
    size        memory of each stage's parameters
    gradient    memory of each stage's gradients, which its reduction frees
    room        memory for parameters while each op runs, if no gradients are freed
    ahead       number of next different stages that each rank may hold before their use; its own op's count
    eager       number of these, from the first on, for which it evicts a stage with a later next use
    hold        number of next ops whose gathers precede a reduction: 0 posts it at once
    counts      output: number of collectives of each rank
    collectives output: position before which it is placed, kind, and stage of each collective, in threes
    queue       stages of the rank in the order of their next uses
    next_use    next op of each stage; the end of the row if there is none
    resident    whether each stage is gathered
    pending     stages whose reductions wait, in pairs with the number of ops that they still wait for
    posted      stages whose reductions are posted, and whose gradients are not freed
    =========== ==================================================================================================
    """
    count = 0
    for rank in range(len(offsets) - 1):
        first, stop = offsets[rank], offsets[rank + 1]
        stages = queue_first_uses(first, stop, stage_of, queue, next_use, resident)
        # ``held`` is the memory of the gathered stages, without gradients that were freed.
        held, waiting, unawaited = 0.0, 0, 0
        for op in range(first, stop):
            if stage_of[op] < 0 or joined[op]:
                continue
            # A step gathers a stage once, so it frees at most twice as many; each stage is reduced and awaited once.
            if 3 * (count + 5 * stages + 2) > len(collectives):
                return -1
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            # The stages of this op, one or two, are the first in the queue.
            own = 2 if after - op == 2 and stage_of[op + 1] != stage_of[op] else 1
            count, held, unawaited = make_room(
                op,
                stop,
                own,
                stages,
                room[op],
                size,
                gradient,
                held,
                unawaited,
                count,
                collectives,
                queue,
                next_use,
                resident,
                posted,
            )
            count, held = gather(
                op,
                stop,
                own,
                stages,
                room,
                ahead[rank],
                eager[rank],
                size,
                held,
                count,
                collectives,
                queue,
                next_use,
                resident,
            )
            if waiting > 0:
                count, waiting, unawaited = post_waiting(op, waiting, unawaited, count, collectives, pending, posted)
            for member in range(op, after):
                move_back(stage_of[member], following[member], stages, queue, next_use)
                if reduced[member] < 0:
                    continue
                if hold[rank] == 0:
                    count = place(after, REDUCES, reduced[member], count, collectives)
                    posted[unawaited] = reduced[member]
                    unawaited += 1
                else:
                    pending[2 * waiting] = reduced[member]
                    pending[2 * waiting + 1] = hold[rank]
                    waiting += 1
        if 3 * (count + 2 * stages) > len(collectives):
            return -1
        for entry in range(waiting):
            count = place(stop, REDUCES, pending[2 * entry], count, collectives)
        for turn in range(stages):
            if resident[queue[turn]]:
                count = place(stop, RESHARDS, queue[turn], count, collectives)
        counts[rank] = count
    for rank in range(len(counts) - 1, 0, -1):
        counts[rank] -= counts[rank - 1]
    return count


def place(position: int, kind: int, stage: int, count: int, collectives: MutableSequence[int]) -> int:
    """Place the next collective before a position. Return the number of collectives."""
    collectives[3 * count] = position
    collectives[3 * count + 1] = kind
    collectives[3 * count + 2] = stage
    return count + 1


def queue_first_uses(
    first: int,
    stop: int,
    stage_of: Sequence[int],
    queue: MutableSequence[int],
    next_use: MutableSequence[int],
    resident: MutableSequence[bool],
) -> int:
    """Fill the queue of a rank with the first uses in its row. Return its number of stages, none of which is gathered."""
    stages = 0
    for op in range(first, stop):
        if stage_of[op] >= 0:
            next_use[stage_of[op]] = -1
    for op in range(first, stop):
        stage = stage_of[op]
        if stage >= 0 and next_use[stage] < 0:
            next_use[stage] = op
            resident[stage] = False
            queue[stages] = stage
            stages += 1
    return stages


def make_room(
    op: int,
    stop: int,
    own: int,
    stages: int,
    room: float,
    size: Sequence[float],
    gradient: Sequence[float],
    held: float,
    unawaited: int,
    count: int,
    collectives: MutableSequence[int],
    queue: MutableSequence[int],
    next_use: Sequence[int],
    resident: MutableSequence[bool],
    posted: MutableSequence[int],
) -> tuple[int, float, int]:
    """Free memory before an op, step 1: unused stages, then gradients, then the stages with the furthest next uses.

    The op's stages are the first ``own`` of the queue. Return the number of collectives, the memory that is held, and the
    number of posted reductions that the rank has not waited for.
    """
    needs = held
    for turn in range(own):
        if not resident[queue[turn]]:
            needs += size[queue[turn]]
    # Stages that are not used any more are the last in the queue.
    turn = stages - 1
    while turn >= own and next_use[queue[turn]] == stop:
        stage = queue[turn]
        if resident[stage]:
            resident[stage] = False
            held -= size[stage]
            needs -= size[stage]
            count = place(op, RESHARDS, stage, count, collectives)
        turn -= 1
    if needs <= room:
        return count, held, unawaited
    freed = 0
    while freed < unawaited and needs > room:
        stage = posted[freed]
        if gradient[stage] > 0.0:
            held -= gradient[stage]
            needs -= gradient[stage]
            count = place(op, AWAITS, stage, count, collectives)
        freed += 1
    for entry in range(freed, unawaited):
        posted[entry - freed] = posted[entry]
    turn = stages - 1
    while turn >= own and needs > room:
        stage = queue[turn]
        if resident[stage]:
            resident[stage] = False
            held -= size[stage]
            needs -= size[stage]
            count = place(op, RESHARDS, stage, count, collectives)
        turn -= 1
    return count, held, unawaited - freed


def gather(
    op: int,
    stop: int,
    own: int,
    stages: int,
    room: Sequence[float],
    ahead: int,
    eager: int,
    size: Sequence[float],
    held: float,
    count: int,
    collectives: MutableSequence[int],
    queue: Sequence[int],
    next_use: Sequence[int],
    resident: MutableSequence[bool],
) -> tuple[int, float]:
    """Gather the stages of an op, and those that come next, steps 2 and 3.

    Return the number of collectives, and the memory that is held.
    """
    for turn in range(stages):
        stage = queue[turn]
        if turn >= own and (turn >= ahead or next_use[stage] == stop):
            break
        if resident[stage]:
            continue
        if turn >= own:
            # From now to its use, the least room counts.
            least = room[op]
            for later in range(op, next_use[stage]):
                if room[later] < least:
                    least = room[later]
            missing = held + size[stage] - least
            evictable = 0.0
            if turn < eager:
                for other in range(turn + 1, stages):
                    if resident[queue[other]]:
                        evictable += size[queue[other]]
            if missing > evictable:
                break
            other = stages - 1
            while other > turn and missing > 0.0:
                victim = queue[other]
                if resident[victim]:
                    resident[victim] = False
                    held -= size[victim]
                    missing -= size[victim]
                    count = place(op, RESHARDS, victim, count, collectives)
                other -= 1
        resident[stage] = True
        held += size[stage]
        count = place(op, UNSHARDS, stage, count, collectives)
    return count, held


def post_waiting(
    op: int,
    waiting: int,
    unawaited: int,
    count: int,
    collectives: MutableSequence[int],
    pending: MutableSequence[int],
    posted: MutableSequence[int],
) -> tuple[int, int, int]:
    """Post the reductions that have let enough gathers pass.

    Return the number of collectives, of reductions that still wait, and of posted ones.
    """
    kept = 0
    for entry in range(waiting):
        stage, left = pending[2 * entry], pending[2 * entry + 1] - 1
        if left == 0:
            count = place(op, REDUCES, stage, count, collectives)
            posted[unawaited] = stage
            unawaited += 1
        else:
            pending[2 * kept] = stage
            pending[2 * kept + 1] = left
            kept += 1
    return count, kept, unawaited


def move_back(stage: int, next_use: int, stages: int, queue: MutableSequence[int], uses: MutableSequence[int]) -> None:
    """Move a stage that an op has used to the place of its next use in the queue, in which ``uses`` are the next ones.

    ::

        row       0F0  0F1  2F0  4F0  0F2           queue before 0F1: 0 2 4, before 2F0: 2 4 0
    """
    uses[stage] = next_use
    turn = 0
    while queue[turn] != stage:
        turn += 1
    while turn + 1 < stages and uses[queue[turn + 1]] < next_use:
        queue[turn] = queue[turn + 1]
        turn += 1
    queue[turn] = stage
