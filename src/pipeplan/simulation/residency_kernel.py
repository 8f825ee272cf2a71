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
    before: MutableSequence[int],
    kind: MutableSequence[int],
    placed: MutableSequence[int],
    queue: MutableSequence[int],
    next_use: MutableSequence[int],
    resident: MutableSequence[bool],
    pending: MutableSequence[int],
    posted: MutableSequence[int],
) -> int:
    """Place the collectives of every rank. Return how many there are, or -1 if the outputs are too short for them.

    ========= ==================================================================================================
    offsets   first op of each rank's row, then the number of ops
    stage_of  stage of each op that computes, -1 for all other ops
    joined    whether each op overlaps with the one before it
    following next op on the rank that computes the same stage; the end of the row if there is none
    reduced   stage whose gradients are complete with this op, -1 for none
    size      memory of each stage's parameters
    gradient  memory of each stage's gradients, which its reduction frees
    room      memory for parameters while each op runs, if no gradients are freed
    ahead     number of next different stages that each rank may hold before their use; its own op's count
    eager     number of these, from the first on, for which it evicts a stage with a later next use
    hold      number of next ops whose gathers precede a reduction: 0 posts it at once
    counts    output: number of collectives of each rank
    before    output, for each collective: position before which it is placed
    kind      output: what it is
    placed    output: its stage
    queue     stages of the rank in the order of their next uses
    next_use  next op of each stage
    resident  whether each stage is gathered
    pending   stages whose reductions wait, in pairs with the number of ops that they still wait for
    posted    stages whose reductions are posted
    ========= ==================================================================================================
    """
    count = 0
    for rank in range(len(offsets) - 1):
        first, stop = offsets[rank], offsets[rank + 1]
        # The queue begins with the first uses.
        stages = 0
        for op in range(first, stop):
            stage = stage_of[op]
            if stage >= 0:
                next_use[stage] = -1
        for op in range(first, stop):
            stage = stage_of[op]
            if stage >= 0 and next_use[stage] < 0:
                next_use[stage] = op
                resident[stage] = False
                queue[stages] = stage
                stages += 1
        # ``held`` is the memory of the gathered stages, without gradients that were freed.
        held = 0.0
        waiting = 0
        unawaited = 0
        for op in range(first, stop):
            if stage_of[op] < 0 or joined[op]:
                continue
            if count + 4 * stages > len(before):
                return -1
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            # The stages of this op, one or two, are the first in the queue.
            own = 1
            if after - op == 2 and stage_of[op + 1] != stage_of[op]:
                own = 2
            needs = held
            for place in range(own):
                if not resident[queue[place]]:
                    needs += size[queue[place]]
            # 1. What is not needed any more goes, then gradients, and the furthest stages until the rest fits.
            for place in range(stages - 1, own - 1, -1):
                stage = queue[place]
                if next_use[stage] < stop:
                    break
                if resident[stage]:
                    resident[stage] = False
                    held -= size[stage]
                    needs -= size[stage]
                    before[count] = op
                    kind[count] = RESHARDS
                    placed[count] = stage
                    count += 1
            freed = 0
            while freed < unawaited and needs > room[op]:
                if gradient[posted[freed]] > 0.0:
                    held -= gradient[posted[freed]]
                    needs -= gradient[posted[freed]]
                    before[count] = op
                    kind[count] = AWAITS
                    placed[count] = posted[freed]
                    count += 1
                freed += 1
            for entry in range(freed, unawaited):
                posted[entry - freed] = posted[entry]
            unawaited -= freed
            for place in range(stages - 1, own - 1, -1):
                stage = queue[place]
                if resident[stage] and needs > room[op]:
                    resident[stage] = False
                    held -= size[stage]
                    needs -= size[stage]
                    before[count] = op
                    kind[count] = RESHARDS
                    placed[count] = stage
                    count += 1
            # 2. and 3. Gather this op's stages, then those that come next.
            for place in range(stages):
                stage = queue[place]
                if place >= own and (place >= ahead[rank] or next_use[stage] == stop):
                    break
                if resident[stage]:
                    continue
                if place >= own:
                    least = room[op]
                    for later in range(op, next_use[stage]):
                        if room[later] < least:
                            least = room[later]
                    missing = held + size[stage] - least
                    evictable = 0.0
                    if place < eager[rank]:
                        for other in range(place + 1, stages):
                            if resident[queue[other]]:
                                evictable += size[queue[other]]
                    if missing > evictable:
                        break
                    for other in range(stages - 1, place, -1):
                        if missing <= 0.0:
                            break
                        victim = queue[other]
                        if resident[victim]:
                            resident[victim] = False
                            held -= size[victim]
                            missing -= size[victim]
                            before[count] = op
                            kind[count] = RESHARDS
                            placed[count] = victim
                            count += 1
                resident[stage] = True
                held += size[stage]
                before[count] = op
                kind[count] = UNSHARDS
                placed[count] = stage
                count += 1
            # Reductions that have let enough gathers pass.
            kept = 0
            for entry in range(waiting):
                stage, left = pending[2 * entry], pending[2 * entry + 1] - 1
                if left == 0:
                    before[count] = op
                    kind[count] = REDUCES
                    placed[count] = stage
                    count += 1
                    posted[unawaited] = stage
                    unawaited += 1
                else:
                    pending[2 * kept] = stage
                    pending[2 * kept + 1] = left
                    kept += 1
            waiting = kept
            # The op runs, and its stages move back in the queue.
            for member in range(op, after):
                stage = stage_of[member]
                next_use[stage] = following[member]
                place = 0
                while queue[place] != stage:
                    place += 1
                while place + 1 < stages and next_use[queue[place + 1]] < next_use[stage]:
                    queue[place] = queue[place + 1]
                    place += 1
                queue[place] = stage
                if reduced[member] >= 0:
                    if hold[rank] == 0:
                        before[count] = after
                        kind[count] = REDUCES
                        placed[count] = reduced[member]
                        count += 1
                        posted[unawaited] = reduced[member]
                        unawaited += 1
                    else:
                        pending[2 * waiting] = reduced[member]
                        pending[2 * waiting + 1] = hold[rank]
                        waiting += 1
        if count + 2 * stages > len(before):
            return -1
        for entry in range(waiting):
            before[count] = stop
            kind[count] = REDUCES
            placed[count] = pending[2 * entry]
            count += 1
        for place in range(stages):
            if resident[queue[place]]:
                before[count] = stop
                kind[count] = RESHARDS
                placed[count] = queue[place]
                count += 1
        counts[rank] = count
    for rank in range(len(counts) - 1, 0, -1):
        counts[rank] -= counts[rank - 1]
    return count
