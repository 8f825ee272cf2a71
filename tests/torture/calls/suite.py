"""The suite ``calls``."""

from __future__ import annotations

import random
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from pipeplan.errors import PipeplanError
from pipeplan.strict_json import json_text
from tests.torture.calls.functions import HONEST, functions, names_of, places_of
from tests.torture.calls.values import hostile
from tests.torture.commands.outputs import fault_of, seen
from tests.torture.honest_files import put
from tests.torture.suite import Found, Suite

_SELDOM = {"run": 0.01, "profile": 0.2, "plan": 0.4, "gpus": 0.1, "models": 0.1}
"""How often a function is called beside the others."""

_SHOWN = 120


def _attempt(seed: int, folder: Path) -> str:
    import pipeplan

    luck = random.Random(seed)
    put(folder)
    (folder / "folder").mkdir()
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "empty.json").touch()
    before = seen(folder)
    known = functions()
    name = luck.choices(known, [_SELDOM.get(each, 1.0) for each in known])[0]
    places, names = _arguments(name, luck)
    said = _said(name, places, names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            word = _judged(getattr(pipeplan, name)(*places, **names))
        except PipeplanError as error:
            word = "refused"
            _judge_message(error, said)
        except TypeError as error:
            if not re.match(
                r"\w+\(\) (got an unexpected keyword|missing|takes|got multiple)|\w+\.__init__\(\) ", str(error)
            ):
                raise Found(f"TypeError: {error}: {said}") from error
            word = "not a call"
        except Exception as error:
            raise Found(f"{type(error).__name__}: {error}: {said}") from error
    for path, told in seen(folder).items():
        if before.get(path) != told and not path.endswith(".store") and word == "refused":
            raise Found(f"{path} was written by what is refused: {said}")
        if before.get(path) != told and "store" not in names and (fault := fault_of(folder / path)) is not None:
            raise Found(f"{path} {fault}: {said}")
    return word


def _arguments(name: str, luck: random.Random) -> tuple[list[Any], dict[str, Any]]:
    places, names = (list(HONEST.get(name, ((), {}))[0]), dict(HONEST.get(name, ((), {}))[1]))
    by_name, by_place = names_of(name), places_of(name)
    for _ in range(luck.choice((1, 1, 1, 2, 3))):
        if by_place and luck.random() < 0.2:
            at = luck.randrange(len(by_place))
            places[at : at + 1] = [hostile(by_place[at], luck, _ours())]
        elif by_name and luck.random() < 0.97:
            chosen = luck.choice(by_name)
            names[chosen] = hostile(chosen, luck, _ours())
        else:
            names[luck.choice(("rank", "", "self", "ranks ", "forward-times", "\x1b"))] = 1
    return places, names


def _judged(answer: Any) -> str:
    """Look at an answer as its user would: its dictionary as JSON, its text."""
    if hasattr(answer, "to_dict"):
        json_text(answer.to_dict())
    repr(answer)
    return "answered"


def _judge_message(error: PipeplanError, said: str) -> None:
    text = str(error)
    if not text or len(text) > 4000 or "\n\n" in text:
        raise Found(f"a message that helps nobody, {text[:200]!r} ({len(text):,} signs): {said}")


def _said(name: str, places: list[Any], names: dict[str, Any]) -> str:
    words = [_short(each) for each in places] + [f"{key}={_short(value)}" for key, value in names.items()]
    return f"pipeplan {name}({', '.join(words)})"


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # more digits than Python writes
        text = f"an int of {value.bit_length():,} bits"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


@cache
def _ours() -> tuple[Any, ...]:
    """An object of each of pipeplan's own types."""
    import pipeplan

    result = pipeplan.simulate("zbv", ranks=2, microbatches=3)
    return (
        *(result, result.timeline, result.schedule, result.costs, result.schedule.placement, result.schedule[0][0]),
        *(
            pipeplan.Settings(ranks=2),
            pipeplan.compare("1f1b", ranks=2, microbatches=2),
            pipeplan.Kind.F,
            pipeplan.Training(),
        ),
    )


CALLS = Suite(
    "calls",
    "calls of the public functions with objects that nobody means; only our own errors come of it",
    _attempt,
    sample=6,
)
