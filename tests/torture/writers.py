"""The suite ``writers``: several processes and one file."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Thread

from tests.torture.forked import Ran, Running, judged, started
from tests.torture.machine.around import is_whole, masked
from tests.torture.machine.errands import SHAPE, Errand, answer_of, quick, told, undisturbed
from tests.torture.suite import Found, Suite

_LINK_MODE = 0o604


def attempt(seed: int, folder: Path) -> str:
    """One of several ways to get into each other's way."""
    rng = Random(seed)
    ways = (_one_output, _one_output, _reader, _replaced, _pipe, _pipe, _one_store)
    return rng.choices(ways, (3, 3, 3, 3, 2, 2, 1))[0](rng, folder)


def _of_one_ending(rng: Random) -> list[Errand]:
    """Errands that write one and the same file, and different things into it."""
    rivals: dict[str, list[Errand]] = {}
    for errand in quick():
        if len(errand.outputs) == 1 and not (errand.inputs or errand.named or errand.betters):
            rivals.setdefault(errand.outputs[0], []).append(errand)
    return rng.choice([each for each in rivals.values() if len(each) > 1])


def _begin(errands: Sequence[Errand], folder: Path) -> list[Running]:
    for errand in errands:
        undisturbed(errand)
    for errand in errands:
        errand.lay_out(folder)
    return [started(errand.arguments, folder) for errand in errands]


def _require_answers(errands: Sequence[Errand], ends: Sequence[Ran]) -> None:
    """Who else writes is no reason to fail, nor to say something else."""
    for errand, ended in zip(errands, ends, strict=True):
        judged(ended)
        if ended.code != errand.code:
            raise Found(f"with others it ends with {ended.code} ({ended.stderr.strip()!r}): {errand.arguments[0]}")
        if answer_of(errand, ended.out) != undisturbed(errand).answer:
            raise Found(f"with others it says something else: {errand.arguments[0]}")


def _require_one_of(errands: Sequence[Errand], path: Path) -> None:
    content = told(path.name, path.read_bytes())
    if all(content != undisturbed(errand).contents[path.name] for errand in errands):
        raise Found(f"{path.name} is the answer of none of those that wrote it, {path.stat().st_size} bytes")


def _require_only(folder: Path, names: set[str]) -> None:
    if left := set(os.listdir(folder)) - names:
        raise Found(f"{masked(left)} left by those that wrote at once")


def _one_output(rng: Random, folder: Path) -> str:
    """Two to eight processes write one file; it may be a link."""
    errands = rng.choices(_of_one_ending(rng), k=rng.randrange(2, 9))
    name = errands[0].outputs[0]
    linked = rng.random() < 0.4
    if linked:
        (folder / "target").write_text("old\n")
        (folder / "target").chmod(_LINK_MODE)
        (folder / name).symlink_to("target")
    ends = [command.wait(120) for command in _begin(errands, folder)]
    _require_answers(errands, ends)
    _require_one_of(errands, folder / name)
    if linked and not (folder / name).is_symlink():
        raise Found(f"{name} was a link, and is none any more")
    if linked and (folder / "target").stat().st_mode & 0o777 != _LINK_MODE:
        raise Found(f"what {name} leads to has another mode")
    _require_only(folder, {name, "target"})
    return f"{len(errands)} writers"


def _reader(rng: Random, folder: Path) -> str:
    """One reads all the time while others write: it always sees one whole answer."""
    errands = rng.choices(_of_one_ending(rng), k=rng.randrange(2, 5))
    path = folder / errands[0].outputs[0]
    whole = {undisturbed(errand).contents[path.name] for errand in errands}
    commands = _begin(errands, folder)
    looks = 0
    while not all(command.has_ended() for command in commands):
        try:
            content = told(path.name, path.read_bytes())
        except FileNotFoundError:
            continue
        except ValueError:
            raise Found(f"{path.name} was seen half written") from None
        if content not in whole:
            raise Found(f"{path.name} was seen half written, {len(content)} bytes")
        looks += 1
        time.sleep(0.001)
    _require_answers(errands, [command.wait(120) for command in commands])
    _require_only(folder, {path.name})
    return "read meanwhile"


def _replaced(rng: Random, folder: Path) -> str:
    """The output's place becomes a folder, read-only or nothing, or its folder goes, while the command works."""
    errand = rng.choice([each for each in quick() if len(each.outputs) == 1 and not each.named])
    known = undisturbed(errand)
    work = folder / "work"
    work.mkdir()
    command = _begin([errand], work)[0]
    name = errand.outputs[0]
    time.sleep(rng.uniform(0, known.ended.seconds))
    change = rng.choice(("folder", "read-only", "moved", "link"))
    try:
        if change == "folder":
            (work / name).mkdir()
        elif change == "read-only":
            (work / name).write_text("old\n")
            (work / name).chmod(0o400)
        elif change == "moved":
            work.rename(folder / "elsewhere")
        else:
            (work / name).symlink_to("target")
    except FileExistsError:
        change = "late"
    ended = command.wait(120)
    judged(ended)
    if ended.code not in {errand.code, 2}:
        raise Found(f"its place became {change}, and it ends with {ended.code} ({ended.stderr.strip()!r})")
    here = folder / ("elsewhere" if change == "moved" else "work")
    if change in {"read-only", "late", "link"} and ended.code == errand.code:
        content = (here / name).read_bytes() if (here / name).exists() else b""
        if content != b"old\n" and not is_whole(name, content, known):
            raise Found(f"its place became {change}, and {name} is not whole")
    if change != "moved":  # what it works on goes with the folder, out of its reach
        _require_only(here, {name, "target", *errand.inputs})
    return f"{change}, {ended.code}"


def _pipe(rng: Random, folder: Path) -> str:
    """The output is a pipe, whose reader is slow, dies early or comes late."""
    errand = rng.choice([each for each in quick() if len(each.outputs) == 1 and not each.named])
    known = undisturbed(errand)
    name = errand.outputs[0]
    os.mkfifo(folder / name)
    dies = rng.random() < 0.4
    most = rng.randrange(len(known.contents[name]) + 1) if dies else 1 << 30
    read: list[bytes] = []
    late, pause = rng.uniform(0, 0.3), rng.choice((0.0, 0.001))
    reader = Thread(target=_read, args=(folder / name, most, late, pause, read), daemon=True)
    reader.start()
    command = _begin([errand], folder)[0]
    ended = command.wait(120)
    _release(folder / name, reader)
    judged(ended)
    if dies:
        if ended.code not in {errand.code, 2}:
            raise Found(f"its reader died, and it ends with {ended.code} ({ended.stderr.strip()!r})")
    else:
        _require_answers([errand], [ended])
        if told(name, b"".join(read)) != known.contents[name]:
            raise Found(f"the reader of {name} got something else")
    _require_only(folder, {name, *errand.inputs})
    return "pipe cut" if dies else "pipe"


def _read(path: Path, most: int, late: float, pause: float, into: list[bytes]) -> None:
    time.sleep(late)
    with path.open("rb", buffering=0) as pipe:
        while most > 0 and (piece := pipe.read(min(most, 4096))):
            into.append(piece)
            most -= len(piece)
            time.sleep(pause)


def _release(path: Path, reader: Thread) -> None:
    """A reader that still waits for somebody to write is let go."""
    while reader.is_alive():
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        reader.join(0.05)


def _one_store(rng: Random, folder: Path) -> str:
    """Two to four processes with one store: one has it, the others say so, and what is kept is whole."""
    search = (
        "search",
        *SHAPE,
        "--evaluations",
        "150",
        "--json",
        "--searches",
        "2",
        "--workers",
        "1",
        "--store",
        "kept.db",
    )
    errand = Errand(search, store="kept.db")
    known = undisturbed(errand)
    ends = [command.wait(120) for command in _begin([errand] * rng.randrange(2, 5), folder)]
    for ended in ends:
        judged(ended)
        if ended.code == 2 and "in use" not in ended.stderr:
            raise Found(f"another has the store, and it says {ended.stderr.strip()!r}")
        if ended.code == 0 and answer_of(errand, ended.out) != known.answer:
            raise Found("with others at its store it says something else")
    if all(ended.code for ended in ends):
        raise Found("each says that another has the store")
    last = _begin([errand], folder)[0].wait(120)
    _require_answers([errand], [last])
    _require_only(folder, {"kept.db"})
    return f"store, {sum(ended.code == 0 for ended in ends)} of {len(ends)}"


WRITERS = Suite(
    "writers",
    "Up to eight processes write one file or want one store, one reads while another writes, places change meanwhile, and "
    "pipes are slow or cut: always one whole answer, links kept; undisturbed runs judge.",
    attempt,
    limit=300,
    sample=2,
)
