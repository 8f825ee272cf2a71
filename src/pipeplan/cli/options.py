"""The options that commands share, with the names of the contract and of the first simulator."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter, Token

from pipeplan.costs.settings import Communication, TimesPer
from pipeplan.errors import CostError, InputError

SHAPE = Group("Shape", sort_key=1)
COSTS = Group("Costs", sort_key=2)
MEMORY = Group("Memory", sort_key=3)
OUTPUT = Group("Input and output", sort_key=4)


def _words(tokens: Sequence[Token]) -> list[str]:
    """The words of an option: apart by blanks or commas; ``-f=1`` is ``-f 1``."""
    return [word for token in tokens for word in token.value.removeprefix("=").split(",") if word]


def _number(token: Token, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise CostError(f"{token.keyword}: '{word}' is no number") from None


def _to_numbers(_: Any, tokens: Sequence[Token]) -> tuple[float, ...]:
    numbers = tuple(_number(tokens[0], word) for word in _words(tokens))
    if not numbers:
        raise CostError(f"{tokens[0].keyword} needs a number, or one per stage")
    return numbers


def _to_number(_: Any, tokens: Sequence[Token]) -> float:
    return _number(tokens[0], tokens[0].value.removeprefix("="))


def _to_count(_: Any, tokens: Sequence[Token]) -> int:
    word = tokens[0].value.removeprefix("=")
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", word):
        raise InputError(f"{tokens[0].keyword}: '{word}' is no whole number")
    return int(word)


def _to_limits(_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    limits = tuple(_words(tokens))
    if not limits:
        raise CostError(f"{tokens[0].keyword} needs a size, such as 12GiB or 8act")
    return limits


def _option(group: Group, text: str, *names: str, convert: Callable[..., Any] | None = None, many: bool = False) -> Any:
    return Parameter(name=names, help=text, group=group, converter=convert, consume_multiple=many, show_default=False)


def _count(text: str, *names: str) -> Any:
    return _option(SHAPE, text, *names, convert=_to_count)


def _times(text: str, *names: str) -> Any:
    return _option(COSTS, text, *names, convert=_to_numbers, many=True)


def _bytes(text: str, *names: str) -> Any:
    return _option(MEMORY, text, *names, convert=_to_numbers, many=True)


def _cost(text: str, *names: str) -> Any:
    return _option(COSTS, text, *names, convert=_to_number)


_Count = int | None
_Times = tuple[float, ...] | None
_Number = float | None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SettingOptions:
    """Shape and costs: a field for each setting, None where the command line does not say."""

    ranks: Annotated[_Count, _count("Pipeline ranks, p (4).", "--ranks", "-p", "--num-devices")] = None
    microbatches: Annotated[
        _Count, _count("Microbatches of a step, m (8).", "--microbatches", "-m", "--num-batches", "-b")
    ] = None
    chunks: Annotated[_Count, _count("Chunks a rank, v (the schedule's own).", "--chunks", "-v")] = None
    stages: Annotated[
        _Count, _count("Stages: ranks x chunks; alone it sets the ranks.", "--stages", "--num-stages", "-s")
    ] = None
    group_size: Annotated[
        _Count, _count("Microbatches in a group of an interleaved schedule.", "--group-size", "-g")
    ] = None
    slices: Annotated[_Count, _count("Slices of a microbatch's sequence (seq1f1b: 2).", "--slices")] = None
    variant: Annotated[str | None, _option(SHAPE, "Which of several rules published under one name.", "--variant")] = (
        None
    )
    forward_times: Annotated[
        _Times, _times("Time of a forward: one number, or one per stage (1).", "--forward-times", "-f")
    ] = None
    backward_times: Annotated[_Times, _times("Time of a full backward (2).", "--backward-times", "-bw")] = None
    backward_input_times: Annotated[
        _Times, _times("Its part for the inputs (1, or half of the full one).", "--backward-input-times")
    ] = None
    backward_weight_times: Annotated[
        _Times, _times("Its part for the weights (1, or half of the full one).", "--backward-weight-times")
    ] = None
    overlap_times: Annotated[
        _Times, _times("Time of a forward overlapped with a backward (their sum).", "--overlap-times")
    ] = None
    times_per: Annotated[
        TimesPer | None,
        _option(COSTS, "One number is for all the chunks of a rank together (rank), or for each stage.", "--times-per"),
    ] = None
    pad_times: Annotated[
        bool | None,
        _option(COSTS, "Repeat the last value of a list that is too short, cut one that is too long.", "--pad-times"),
    ] = None
    time_unit: Annotated[str | None, _option(COSTS, "Of the times: ns, us, ms, s. For labels.", "--time-unit")] = None
    p2p_time: Annotated[_Number, _cost("Latency of a transfer between ranks (0).", "--p2p-time")] = None
    p2p_bytes: Annotated[_Number, _cost("Bytes of a transfer (0).", "--p2p-bytes")] = None
    p2p_bandwidth: Annotated[_Number, _cost("Bytes in a unit of time (no limit).", "--p2p-bandwidth")] = None
    communication: Annotated[
        Communication | None,
        _option(
            COSTS, "What a transfer delays: what waits for it; both ranks; the link too (edge).", "--communication"
        ),
    ] = None
    activation_bytes: Annotated[
        _Times,
        _bytes("What one microbatch holds: by all the chunks of a rank, or one per stage.", "--activation-bytes"),
    ] = None
    weight_activation_bytes: Annotated[
        _Times, _bytes("The part of it that only the weight backward frees (all).", "--weight-activation-bytes")
    ] = None
    static_bytes: Annotated[_Times, _bytes("Parameters, gradients and optimizer state (0).", "--static-bytes")] = None
    memory_limit: Annotated[
        tuple[str, ...] | None,
        _option(
            MEMORY, "The cap of a rank: 12GiB, or 8act; one, or one per rank.", "--memory-limit",
            convert=_to_limits, many=True,
        ),
    ] = None  # fmt: skip
    config: Annotated[
        Path | None,
        _option(OUTPUT, "YAML, TOML or JSON with any of these; options override it.", "--config", "-c"),
    ] = None

    def given(self) -> dict[str, Any]:
        """The settings that the command line gives; a list of one is a number for all."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "config"}
        return {
            name: value[0] if isinstance(value, tuple) and len(value) == 1 else value
            for name, value in values.items()
            if value is not None
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Where the answer goes."""

    output: Annotated[
        tuple[Path, ...],
        _option(
            OUTPUT, "The ending chooses: .png .svg .pdf .html .json .csv .trace.json; repeatable.", "--output", "-o"
        ),
    ] = ()
    no_visualization: Annotated[bool, _option(OUTPUT, "No picture.", "--no-visualization")] = False


Json = Annotated[bool, _option(OUTPUT, "One JSON object on stdout, and nothing else there.", "--json")]
Debug = Annotated[bool, _option(OUTPUT, "Show the traceback of an error.", "--debug")]
