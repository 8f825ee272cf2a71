"""The suite ``disks``: disks that are full, or fail, cost an answer but nothing that was there before."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from tests.torture.box import MARK
from tests.torture.forked import Ran, judged, ran
from tests.torture.machine.around import KEPT_BY_TORCH, Around, masked, require_whole_store
from tests.torture.machine.conditions import Conditions, Fault
from tests.torture.machine.errands import Errand, Undisturbed, answer_of, chosen, kept, quick, trained, undisturbed
from tests.torture.machine.small_disk import SmallDisk, small_disk, why_none
from tests.torture.suite import Found, Suite

_SIZE = 8 << 20
"""Of a disk: room for all that an errand writes, several times."""

_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ENFILE)
"""What an operation on a file can fail with."""


def attempt(seed: int, folder: Path) -> str:
    """A disk that is full, files that may not grow, or an operation that fails; then all is well, and again."""
    rng = Random(seed)
    errand = chosen(rng, (quick, 0.9), (kept, 0.095), (trained, 0.005))
    known = undisturbed(errand)
    way = rng.choice(("full", "full", "small files", "failing"))
    if way == "failing":
        return _on_failing_disk(rng, errand, known, folder)
    if way == "small files" or _no_disk():
        return _with_small_files(rng, errand, known, folder)
    return _on_full_disk(rng, errand, known, folder)


@cache
def _no_disk() -> bool:
    return why_none(Path(os.environ[MARK]) / "disk") is not None


def _on_full_disk(rng: Random, errand: Errand, known: Undisturbed, folder: Path) -> str:
    (folder / "disk").mkdir()
    with small_disk(folder / "disk", _SIZE) as disk:
        place = _Place.on(disk, rng, errand, folder)
        needed = sum(len(content) for content in known.contents.values()) + len(known.ended.out)
        disk.fill(rng.choice((0, 4096, 8192, rng.randrange(2 * needed + 1), rng.randrange(2 * needed + 65536))))
        word = place.disturbed(errand, known, stdout=rng.random() < 0.3)
        disk.empty()
        place.undisturbed_again(errand, known)
    return f"full: {word}"


def _with_small_files(rng: Random, errand: Errand, known: Undisturbed, folder: Path) -> str:
    """Files may have so many bytes: the system says so in place of a disk. What is told on stderr finds room."""
    largest = max((len(content) for content in (*known.contents.values(), known.ended.out)), default=0)
    place = _Place.here(rng, errand, folder)
    word = place.disturbed(errand, known, limits={"RLIMIT_FSIZE": 4096 + rng.randrange(largest + 4096)})
    place.undisturbed_again(errand, known)
    return f"small files: {word}"


def _on_failing_disk(rng: Random, errand: Errand, known: Undisturbed, folder: Path) -> str:
    place = _Place.here(rng, errand, folder)
    fault = Fault(at=rng.randrange(max(known.moments, 1)), error=rng.choice(_ERRORS), again=rng.random() < 0.5)
    word = place.disturbed(errand, known, fault=fault)
    place.undisturbed_again(errand, known)
    return f"failing: {word}"


@dataclass(frozen=True)
class _Place:
    """Where an errand is done: ``work`` and ``temporary`` as it sees them, ``around`` and ``listed`` as we do."""

    work: Path
    temporary: Path
    around: Around
    listed: Path
    folder: Path
    mounts: int = 0

    @classmethod
    def here(cls, rng: Random, errand: Errand, folder: Path) -> _Place:
        around = Around.laid_out(rng, errand, folder / "work")
        (folder / "temporary").mkdir()
        return cls(around.folder, folder / "temporary", around, folder / "temporary", folder)

    @classmethod
    def on(cls, disk: SmallDisk, rng: Random, errand: Errand, folder: Path) -> _Place:
        around = Around.laid_out(rng, errand, disk.here / "work")
        (disk.here / "temporary").mkdir()
        return cls(
            disk.path / "work", disk.path / "temporary", around, disk.here / "temporary", folder, mounts=disk.process
        )

    def disturbed(
        self,
        errand: Errand,
        known: Undisturbed,
        *,
        stdout: bool = False,
        fault: Fault | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> str:
        """What comes of it now: an answer with all that was asked for, or a refusal that leaves what was there."""
        watched = None if fault is None else str(self.work)
        conditions = Conditions(mounts=self.mounts, work=str(self.work), watched=watched, fault=fault)
        with self._stdout(stdout) as number:
            ended = self._ran(errand, conditions, number, limits or {})
        word = judged(ended)
        if ended.code not in {errand.code, 2} and not (errand.measures and ended.code == 1):
            raise Found(f"it ends with {ended.code} ({ended.stderr.strip()!r}): {errand.arguments[0]}")
        self.around.judge(known, ended_well=ended.code == errand.code, early=ended.code != errand.code)
        if ended.code == errand.code and not errand.measures:
            said = (self.around.folder / "said.txt").read_bytes() if stdout else ended.out
            if answer_of(errand, said) != known.answer:
                raise Found(f"it says something else, or not all, and ended well: {errand.arguments[0]}")
        if errand.store:
            require_whole_store(self.around.folder / errand.store, self.folder / "spare")
        self._require_nothing_left("after it has failed", store=True)
        return word

    def undisturbed_again(self, errand: Errand, known: Undisturbed) -> None:
        """Once the disk is as it should be, so is the answer."""
        ended = self._ran(errand, Conditions(mounts=self.mounts, work=str(self.work)), None, {})
        judged(ended)
        if ended.code != errand.code:
            raise Found(f"with room again, it ends with {ended.code} ({ended.stderr.strip()!r}): {errand.arguments[0]}")
        if not errand.measures and answer_of(errand, ended.out) != known.answer:
            raise Found(f"with room again, it says something else: {errand.arguments[0]}")
        self.around.judge(known, ended_well=True)
        self._require_nothing_left("with room again", store=False)

    def _ran(self, errand: Errand, conditions: Conditions, stdout: int | None, limits: Mapping[str, int]) -> Ran:
        return ran(
            errand.arguments,
            self.folder,
            seconds=120,
            environment={"TMPDIR": str(self.temporary)},
            stdout=stdout,
            limits=limits,
            prepare=conditions.asked(),
        )

    @contextmanager
    def _stdout(self, on_disk: bool) -> Iterator[int | None]:
        """Where the answer goes: to a file beside the outputs, or to one of the harness."""
        if not on_disk:
            yield None
            return
        with (self.around.folder / "said.txt").open("wb") as file:
            yield file.fileno()

    def _require_nothing_left(self, when: str, *, store: bool) -> None:
        left: Sequence[str] = [*self.around.left_over(store=store), *os.listdir(self.listed)]
        left = [name for name in left if name != "said.txt" and not name.startswith(KEPT_BY_TORCH)]
        if left:
            raise Found(f"{masked(left)} left {when}: {self.around.errand.arguments[0]}")


DISKS = Suite(
    "disks",
    "Small disks that are full, files that may not grow and operations that fail, for every format and store: a sentence, "
    "nothing half-written, what was there unharmed, and all as ever once there is room; an undisturbed run judges.",
    attempt,
    limit=300,
    sample=2,
)
