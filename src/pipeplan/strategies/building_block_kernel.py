"""Kernel that runs a repeated building block on a V placement, one unit of time after the other."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pipeplan.model import Ints


class RepeatedBlock(NamedTuple):
    """A building block to repeat. Legend, for p ranks, s = 0 to 3::

    offset[4r + s]    time of op s of microbatch 0 on rank r; that of microbatch j is interval * j later
    source[4r + s]    4 * rank + op number that the op waits for, of the same microbatch; -1: nothing
    waiting[4r + s]   the inverse of source: the op that waits for this one; -1: none
    capacity          maximum number of chunk activations on a rank
    turn              op number that ends the warm-up of a rank
    """

    offset: Annotated[Ints, "4 * ranks"]
    source: Annotated[Ints, "4 * ranks"]
    waiting: Annotated[Ints, "4 * ranks"]
    interval: Annotated[int, "> 0"]
    capacity: int
    turn: Annotated[int, "2 or 3"]
    microbatches: int


class BlockRows(NamedTuple):
    """Rows that repeating a block writes, all 0 at first, and its scratch. Legend, for m microbatches::

    order[6mr + i]    out: op number of the i-th op of rank r
    length[r]         ops in the row of rank r
    done[4r + s]      microbatches whose op s is done
    taken[r]          op number that rank r runs in this unit, or -1
    awake             two lists of ranks to look at, for this unit and for the next
    woken[r]          last unit for which rank r was put on a list
    """

    order: Annotated[Ints, "6 * microbatches * ranks"]
    length: Annotated[Ints, "ranks"]
    done: Annotated[Ints, "4 * ranks"]
    taken: Annotated[Ints, "ranks"]
    awake: Annotated[Ints, "2 * ranks"]
    woken: Annotated[Ints, "ranks"]


def run_block(block: RepeatedBlock, rows: BlockRows) -> None:
    """Write the ops of each rank into ``rows.order``, in order, as op numbers.

    Op numbers follow a microbatch through the V: 0 and 1 are the forwards of chunks 0 and 1, 2 and 3 the input
    backwards of chunks 1 and 0, and 4 is a weight backward. One unit of time, with what each awake rank can choose from::

        rank 0   0F2 is due next, but memory is full -> it frees room with 0W0
        rank 1   1I0 is due next and its source is done -> 1I0; rank 0, which waits for it, is awake in the next unit
        rank 2   nothing can run -> it sleeps until rank 1 or 3 runs the op that it waits for

    A sleeping rank is not looked at again before that, so the time is linear in the ops, however long ranks wait.
    """
    offset, source, waiting = block.offset, block.source, block.waiting
    interval, capacity, microbatches = block.interval, block.capacity, block.microbatches
    order, length, done, taken, awake, woken = rows.order, rows.length, rows.done, rows.taken, rows.awake, rows.woken
    ranks = len(length)
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
            # head: the op that is due first. forward, backward: the first of each that can run now.
            head, forward, backward = -1, -1, -1
            head_due, forward_due, backward_due = 0, 0, 0
            head_ready = False
            for number in range(4):
                count = done[base + number]
                if count == microbatches:
                    continue
                due = offset[base + number] + interval * count
                needed = source[base + number]
                ready = needed < 0 or done[needed] > count
                if head < 0 or due < head_due:
                    head, head_due, head_ready = number, due, ready
                if ready and number < 2 and (forward < 0 or due < forward_due):
                    forward, forward_due = number, due
                if ready and number >= 2 and (backward < 0 or due < backward_due):
                    backward, backward_due = number, due
            # Rules 1 to 3 of the module controllable_memory.
            chosen = -1
            warming_up = done[base + block.turn] == 0
            if head_ready:
                chosen = head
            elif warming_up and forward >= 0:
                # Reserve room for the forwards of the other chunk that are due before this one.
                other = base + 1 - forward
                ahead = forward_due - offset[other] - interval * done[other]
                kept = min(max((ahead + interval - 1) // interval, 0), microbatches - done[other])
                if forwards + kept < capacity:
                    chosen = forward
            if chosen < 0 and (warming_up or forwards == 2 * microbatches):
                chosen = backward
            # Rule 4: the oldest W, if nothing else can run or a forward finds the memory full.
            full = forwards - weights == capacity
            if inputs > weights and (chosen < 0 or (chosen < 2 and full)):
                chosen = 4
            taken[rank] = chosen
        # Only now record what ran, so that other ranks see it from the next unit of time on.
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
