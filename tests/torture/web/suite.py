"""The suite ``web``: the app under attack, and an honest client right after each attack."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from tests.torture.box import MARK
from tests.torture.suite import Found, Suite


def needs() -> str | None:
    """Why the app cannot be attacked here."""
    if sys.platform != "linux":
        return "the figures of processes are read from /proc"
    return None if find_spec("fastapi") and find_spec("uvicorn") else "the web app needs the extra 'web'"


@cache
def target_of(pid: int) -> object:
    """The server of this process, started for its first case; who ends the box ends it."""
    from tests.torture.web.attacks import Target
    from tests.torture.web.served import Served

    return Target(Served(Path(mkdtemp(prefix="served-", dir=os.environ[MARK])), dict(os.environ)))


def attempt(seed: int, folder: Path) -> str:
    """Attack in one way, then ask honestly."""
    from tests.torture.web.attacks import ATTACKS, Target
    from tests.torture.web.honest import require_right

    target = target_of(os.getpid())
    assert isinstance(target, Target)
    rng, silent = Random(seed), len(target.served.said())
    attack = rng.choices(list(ATTACKS), list(ATTACKS.values()))[0]
    try:
        word = attack(target, rng)
        require_right(target.port, seed)
    except Found as found:
        raise Found(f"{attack.__name__}: {found}") from None
    except TimeoutError:
        raise Found(f"{attack.__name__}: no answer in time") from None
    if not target.served.runs():
        target_of.cache_clear()
        raise Found(f"{attack.__name__}: the server has ended")
    if said := target.served.said()[silent:]:
        raise Found(f"{attack.__name__}: the server says {said.strip().splitlines()[-1]!r}")
    return word


WEB = Suite(
    "web",
    "the web app over sockets: wrong questions, clients, workers; an honest client right after is answered as Python does",
    attempt,
    limit=150.0,
    sample=3,
    needs=needs,
)
