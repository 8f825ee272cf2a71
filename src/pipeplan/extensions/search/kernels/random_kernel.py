"""Random numbers of the kernels: the generator of Park and Miller (1988), whose products fit into 64 bits.

Its numbers are the same compiled or not. Array: ``random`` has the state alone, from 1 to ``MODULUS - 1``. A step::

    random   [1]  becomes  [48271]          draw below 10: 1
"""

from pipeplan.model import Ints

# The Mersenne prime 2**31 - 1, and the multiplier that Park, Miller and Stockmeyer recommend (1993).
MODULUS = 2147483647
MULTIPLIER = 48271


def draw(random: Ints, below: int) -> int:
    """Return the next random number from 0 to ``below - 1``."""
    state: int = random[0] * MULTIPLIER % MODULUS
    random[0] = state
    return state % below


def draw_extent(random: Ints, most: int) -> int:
    """Return a random number from 1 to ``most``, small ones more often: half of the time 1."""
    if most <= 1 or draw(random, 2) == 0:
        return 1
    return 1 + draw(random, 1 + draw(random, most))


def draw_weighted(random: Ints, weights: Ints) -> int:
    """Return the index of one of the weights, which are integers, drawn in proportion to them."""
    total = 0
    for which in range(len(weights)):
        total += weights[which]
    # The weights lie side by side from 0 to the total: the one in which the number falls is drawn.
    drawn = draw(random, total)
    which = 0
    while drawn >= weights[which]:
        drawn -= weights[which]
        which += 1
    return which
