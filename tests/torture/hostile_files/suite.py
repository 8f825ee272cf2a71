"""The suite ``files``."""

from __future__ import annotations

import gzip
import os
import random
from functools import cache
from pathlib import Path

from tests.torture.commands.outputs import judge_outputs, seen
from tests.torture.forked import judged, ran
from tests.torture.honest_files import honest_files, put
from tests.torture.hostile_files.again import judge_reading
from tests.torture.hostile_files.breaking import broken
from tests.torture.hostile_files.readers import line_for
from tests.torture.suite import Found, Suite

_MEMORY = 4 << 30
_PACKED = (".json", ".csv", ".txt")


def _attempt(seed: int, folder: Path) -> str:
    luck = random.Random(seed)
    put(folder)
    name = luck.choice(sorted(honest_files()))
    content = honest_files()[name]
    if name.endswith(_PACKED) and luck.random() < 0.1:
        name += ".gz"
    if luck.random() < 0.03:
        name, content = "searches.store", _store()
    if luck.random() < 0.9:
        content = broken(content, name, luck)
    elif name.endswith(".gz"):
        content = gzip.compress(content)
    (folder / name).write_bytes(content)
    line = line_for(name, luck)
    before, temporary = seen(folder), set(os.listdir(os.environ["TMPDIR"]))
    end = ran(line, folder, memory=_MEMORY)
    word = judged(end)
    if name.endswith(".store"):  # it is brought up to date
        before[name] = seen(folder)[name]
    judge_outputs(end, folder, before)
    if left := set(os.listdir(os.environ["TMPDIR"])) - temporary:
        raise Found(f"{len(left)} temporary files stay, such as {min(left)}: {end.line}")
    if line[0] in ("check", "convert", "simulate"):
        judge_reading(folder / name, folder)
    return word


@cache
def _store() -> bytes:
    """What two searches keep."""
    import pipeplan

    path = Path("made.store")
    pipeplan.search(ranks=2, microbatches=2, evaluations=20, searches=2, workers=1, store=path)
    content = path.read_bytes()
    path.unlink()
    return content


FILES = Suite(
    "files", "files of every kind, broken in every way, given to every command that reads them", _attempt, sample=6
)
