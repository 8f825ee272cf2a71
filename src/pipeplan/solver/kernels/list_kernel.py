"""The hot loop of list scheduling: next always comes the op that is due first and leads to no dead end."""

from pipeplan.solver.kernels.arrays import Desk, Floats, Ints, Shop

NEVER = 1e300


def is_safe(shop: Shop, share: int, desk: Desk) -> bool:
    """Whether from here on microbatches can at least be finished one after the other, the oldest first.

    That is the banker's algorithm with a given order: each microbatch must find room for what it still lacks, and gives
    back what it holds. As long as it holds, the next op of the oldest microbatch can always run.
    """
    classes = len(shop.rank)
    oldest = share
    newest = 0
    for item in range(0, classes, 2):
        oldest = min(oldest, desk.done[item + 1])
        newest = max(newest, desk.done[item])
    for rank in range(len(desk.room)):
        desk.spare[rank] = desk.room[rank]
    for index in range(oldest, newest):
        for item in range(0, classes, 2):
            if desk.done[item] <= index:
                desk.spare[shop.rank[item]] -= shop.change[item]
        for rank in range(len(desk.room)):
            if desk.spare[rank] < 0:
                return False
        for item in range(0, classes, 2):
            if desk.done[item + 1] <= index:
                desk.spare[shop.rank[item]] += shop.change[item]
    return True


def run_list(
    shop: Shop,
    share: int,
    due: Floats,
    period: float,
    order: Ints,
    desk: Desk,
) -> bool:
    """Fill ``order`` op by op; false if it came to a dead end.

    The op of a class for microbatch k is due at ``due[class] + k * period``. Next comes always the op that is due first of
    those whose sources are placed, provided that it leaves a safe state.
    """
    classes = len(shop.rank)
    for item in range(classes):
        desk.done[item] = 0
        desk.refused[item] = -1
    for rank in range(len(desk.room)):
        desk.room[rank] = shop.cap[rank]
        desk.filled[rank] = shop.offsets[rank]
    backwards = 0
    placed = 0
    while placed < len(order):
        chosen = -1
        first = NEVER
        for item in range(classes):
            index = desk.done[item]
            time = due[item] + index * period
            if time < first and index < share and desk.refused[item] < backwards:
                source = shop.source[item]
                if source < 0 or desk.done[source] > index:
                    chosen = item
                    first = time
        if chosen < 0:
            return False
        rank = shop.rank[chosen]
        desk.done[chosen] += 1
        if chosen % 2 == 1:
            desk.room[rank] += shop.change[chosen - 1]
            backwards += 1
        else:
            desk.room[rank] -= shop.change[chosen]
            if not is_safe(shop, share, desk):
                desk.room[rank] += shop.change[chosen]
                desk.done[chosen] -= 1
                desk.refused[chosen] = backwards
                continue
        order[desk.filled[rank]] = chosen
        desk.filled[rank] += 1
        placed += 1
    return True
