"""The loop that runs a forward and a backward together, on a lane for computation and one for communication."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pipeplan.model import Floats, Ints

BACKWARD, WEIGHT, FORWARD = range(3)
"""Turns of a step on the compute lane: a piece of the backward, its weights, a piece of the forward."""


class OpChains(NamedTuple):
    """Ops in the order of their pieces: computation, communication, computation, ..., computation.

    ========= ===================================================================================================
    first     first step of each chain
    length    number of its steps
    compute   time of each step's computation, which waits for the step's communication
    weight    time of the computation behind it that the next step does not wait for
    message   time of each step's communication, which waits for the computation before it; 0 in a first step
    ========= ===================================================================================================
    """

    first: Annotated[Ints, "chains"]
    length: Annotated[Ints, "chains"]
    compute: Annotated[Floats, "steps"]
    weight: Annotated[Floats, "steps"]
    message: Annotated[Floats, "steps"]


class Pairs(NamedTuple):
    """Chains that run together: the forward's and the backward's. A chain without steps leaves the other one alone."""

    forward: Annotated[Ints, "pairs"]
    backward: Annotated[Ints, "pairs"]


class PairResults(NamedTuple):
    """Results of each pair.

    ========== ==================================================================================================
    time       time from the start of the pair to its end
    exposed    time in which only the communication lane works
    hidden     time in which both lanes work
    begin, end times of the pieces of the last pair: of three computations per step (the backward's, its weights, the
               forward's), then of two communications per step (the backward's, the forward's)
    ========== ==================================================================================================
    """

    time: Annotated[Floats, "pairs"]
    exposed: Annotated[Floats, "pairs"]
    hidden: Annotated[Floats, "pairs"]
    begin: Annotated[Floats, "turns"]
    end: Annotated[Floats, "turns"]


def run_pairs(chains: OpChains, pairs: Pairs, slowdown: float, results: PairResults) -> None:
    """Run every pair, and write its times.

    Each lane works in one order, step by step, and waits where the next piece is not ready::

        compute   b0 w0 f0   b1 w1 f1   b2 w2 f2        b backward, w its weights, f forward
        messages             b1    f1   b2    f2        b1 waits for b0 of the compute lane, whose b1 waits for it

    While a message is under way, computation proceeds at 1 / slowdown of its speed.
    """
    for pair in range(len(pairs.forward)):
        run_pair(chains, pairs.forward[pair], pairs.backward[pair], pair, slowdown, results)


def run_pair(chains: OpChains, forward: int, backward: int, pair: int, slowdown: float, results: PairResults) -> None:
    """Run one pair.

    A lane has ended the pieces before its place, so the places say what each op waits for: of step i, the backward has
    computed from place 3 i + 1 on and the forward from 3 i + 3; messages have come from places 2 i + 1 and 2 i + 2 on.
    """
    of_forward, of_backward = chains.first[forward], chains.first[backward]
    forwards, backwards = chains.length[forward], chains.length[backward]
    steps = max(forwards, backwards)
    # Places on the lanes, and what is left of the pieces there; -1: none runs.
    computes, messages = 0, 2
    computing, sending = -1.0, -1.0
    now, exposed, hidden = 0.0, 0.0, 0.0
    while True:
        while computes < 3 * steps and computing < 0.0:
            step, turn = computes // 3, computes % 3
            if step >= (forwards if turn == FORWARD else backwards):
                computes += 1
            elif step < (messages // 2 if turn == FORWARD else (messages + 1) // 2):
                at = step + (of_forward if turn == FORWARD else of_backward)
                computing = chains.weight[at] if turn == WEIGHT else chains.compute[at]
                results.begin[computes] = now
            else:
                break
        while messages < 2 * steps and sending < 0.0:
            step, is_forward = messages // 2, messages % 2 == 1
            if step >= (forwards if is_forward else backwards):
                messages += 1
            elif step <= (computes // 3 if is_forward else (computes + 2) // 3):
                sending = chains.message[step + (of_forward if is_forward else of_backward)]
                results.begin[3 * steps + messages] = now
            else:
                break
        if computing < 0.0 and sending < 0.0:
            break
        # Up to the next end of a piece.
        slow = slowdown if sending > 0.0 else 1.0
        span = computing * slow
        if computing < 0.0 or (sending >= 0.0 and sending < span):
            span = sending
        now += span
        if computing < 0.0:
            exposed += span
        elif sending >= 0.0:
            hidden += span
        if computing >= 0.0 and computing * slow <= span:
            results.end[computes] = now
            computes += 1
            computing = -1.0
        elif computing >= 0.0:
            computing -= span / slow
        if sending >= 0.0 and sending <= span:
            results.end[3 * steps + messages] = now
            messages += 1
            sending = -1.0
        elif sending >= 0.0:
            sending -= span
    results.time[pair] = now
    results.exposed[pair] = exposed
    results.hidden[pair] = hidden
