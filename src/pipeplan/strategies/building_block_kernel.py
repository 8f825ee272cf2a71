"""The loop that runs a repeated building block on a V, one unit of time after the other."""

from collections.abc import MutableSequence, Sequence


def run_block(
    offset: Sequence[int],
    source: Sequence[int],
    waiting: Sequence[int],
    interval: int,
    capacity: int,
    turn: int,
    microbatches: int,
    ranks: int,
    done: MutableSequence[int],
    taken: MutableSequence[int],
    length: MutableSequence[int],
    order: MutableSequence[int],
    awake: MutableSequence[int],
    woken: MutableSequence[int],
) -> None:
    """Write into ``order`` what each rank does in turn, as numbers of sorts; a rank has ``6 * microbatches`` places.

    Sorts are numbered as a microbatch passes through them: 0 and 1 are the forwards of chunk 0 and 1, 2 and 3 the input
    backwards of chunk 1 and 0, and 4 is a weight backward. The block has sort ``s`` of microbatch ``j`` on rank ``r`` due
    at ``offset[4r + s] + interval * j``; the op waits for the same microbatch's op numbered ``source[4r + s]`` (-1: for
    nothing), and ``waiting[4r + s]`` is the one that waits for it. The warm-up of a rank ends with its first op of sort
    ``turn``. ``done`` (4 a rank) and ``length`` (one a rank) count from 0; ``taken``, ``woken`` (one a rank) and ``awake``
    (two a rank) are scratch.

    A rank that can do nothing is not asked again before an op that it waits for has run: so all of it takes as long as there
    are ops, however long the ranks wait.
    """
    row = 6 * microbatches
    awaken = ranks
    first = 0
    unit = 0
    for rank in range(ranks):
        awake[rank] = rank
        woken[rank] = 0
    while awaken > 0:
        unit += 1
        for place in range(first, first + awaken):
            rank = awake[place]
            base = 4 * rank
            forwards = done[base] + done[base + 1]
            inputs = done[base + 2] + done[base + 3]
            weights = length[rank] - forwards - inputs
            # Of all four sorts, the op that is due first; of those that can run, the first forward and the first backward.
            head, forward, backward = -1, -1, -1
            head_due, forward_due, backward_due = 0, 0, 0
            head_ready = False
            for sort in range(4):
                count = done[base + sort]
                if count == microbatches:
                    continue
                due = offset[base + sort] + interval * count
                needed = source[base + sort]
                ready = needed < 0 or done[needed] > count
                if head < 0 or due < head_due:
                    head, head_due, head_ready = sort, due, ready
                if ready and sort < 2 and (forward < 0 or due < forward_due):
                    forward, forward_due = sort, due
                if ready and sort >= 2 and (backward < 0 or due < backward_due):
                    backward, backward_due = sort, due
            chosen = -1
            warming_up = done[base + turn] == 0
            if head_ready:
                chosen = head
            elif warming_up and forward >= 0:
                # Forwards of the other chunk that are due before this one keep their room.
                other = base + 1 - forward
                ahead = forward_due - offset[other] - interval * done[other]
                kept = min(max((ahead + interval - 1) // interval, 0), microbatches - done[other])
                if forwards + kept < capacity:
                    chosen = forward
            if chosen < 0 and (warming_up or forwards == 2 * microbatches):
                chosen = backward
            full = forwards - weights == capacity
            if inputs > weights and (chosen < 0 or (chosen < 2 and full)):
                chosen = 4
            taken[rank] = chosen
        # What a rank does now, the others see from the next unit of time on.
        begin = ranks - first
        stop = begin
        for place in range(first, first + awaken):
            rank = awake[place]
            chosen = taken[rank]
            if chosen < 0:
                continue
            order[row * rank + length[rank]] = chosen
            length[rank] += 1
            if woken[rank] != unit:
                woken[rank] = unit
                awake[stop] = rank
                stop += 1
            if chosen < 4:
                done[4 * rank + chosen] += 1
                other = waiting[4 * rank + chosen] // 4
                if other >= 0 and woken[other] != unit:
                    woken[other] = unit
                    awake[stop] = other
                    stop += 1
        first = begin
        awaken = stop - begin
