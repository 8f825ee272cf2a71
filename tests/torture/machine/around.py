"""The folder that a command works in: what stood in it before, and what may stand in it after."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.torture.machine.errands import Errand, Undisturbed, told
from tests.torture.suite import Found

KEPT_BY_TORCH = "torchinductor_"
"""How the temporary folder begins in which PyTorch keeps compiled code, which it means to find again."""

_OLD = b"what was here before\n"
_MODE = 0o640

_PLACES = ("none", "none", "file", "file", "link", "dangling link", "hard link")
"""What stands in an output's place before: most often nothing or a file."""


@dataclass(frozen=True)
class Around:
    """An errand's folder as it was before.

    Attributes
    ----------
    folder
        Where it works.
    errand
        What it does.
    places
        What stood in each output's place, in words.
    """

    folder: Path
    errand: Errand
    places: Mapping[str, str]

    @classmethod
    def laid_out(cls, rng: Random, errand: Errand, folder: Path) -> Around:
        """Make the folder, with what the errand reads and something in the places of its outputs."""
        folder.mkdir(parents=True)
        errand.lay_out(folder)
        places = {name: rng.choice(_PLACES) for name in errand.written}
        for name, place in places.items():
            _stand(folder / name, place)
        return cls(folder, errand, places)

    def judge(self, known: Undisturbed, *, ended_well: bool, early: bool = False) -> str:
        """Each output is whole or as it was; in a word, how many are there.

        Parameters
        ----------
        ended_well
            Whether the command said so: all of them must be whole then.
        early
            Whether it was ended before its time, so that an output may hold the best so far.
        """
        same = not (self.errand.measures or (early and self.errand.betters))
        whole = [name for name in self.errand.written if self._is_whole(name, known if same else None)]
        if ended_well and len(whole) < len(self.errand.written):
            missing = ", ".join(sorted(set(self.errand.written) - set(whole)))
            raise Found(f"{missing} is not written, and the command ended well: {self.errand.arguments[0]}")
        return "all" if len(whole) == len(self.errand.written) else "some" if whole else "none"

    def _is_whole(self, name: str, known: Undisturbed | None) -> bool:
        """Whether an output is there as it should be; False where it is as before. Raises Found for anything else."""
        path, place = self.folder / name, self.places[name]
        if place in {"link", "dangling link"} and not path.is_symlink():
            raise Found(f"{name} was a link, and is none any more: {self.errand.arguments[0]}")
        if place == "hard link" and path.with_name(f"{name}.target").read_bytes() != _OLD:
            raise Found(f"the other name of {name} was written over: {self.errand.arguments[0]}")
        if not path.exists():
            if place in {"none", "dangling link"}:
                return False
            raise Found(f"{name} was a {place}, and is gone: {self.errand.arguments[0]}")
        content = path.read_bytes()
        if content == _OLD and place not in {"none", "dangling link"}:
            return False
        mode = stat.S_IMODE(path.stat().st_mode)
        if place not in {"none", "dangling link"} and mode != _MODE:
            raise Found(f"{name} had the mode {_MODE:o}, and has {mode:o}: {self.errand.arguments[0]}")
        if not is_whole(name, content, known):
            raise Found(f"{name} is neither whole nor as before, {len(content)} bytes: {self.errand.arguments[0]}")
        return True

    def left_over(self, *, store: bool) -> list[str]:
        """What stands in the folder that neither stood there nor was asked for.

        Parameters
        ----------
        store
            Whether the errand's store may have files beside it: SQLite's own, which it takes up again.
        """
        asked = {*self.errand.inputs, *self.errand.written, self.errand.store}
        asked |= {f"{name}.target" for name, place in self.places.items() if place != "none"}
        if store and self.errand.store:
            asked |= {f"{self.errand.store}{ending}" for ending in ("-journal", "-wal", "-shm")}
        return sorted(set(os.listdir(self.folder)) - asked)


def _stand(path: Path, place: str) -> None:
    """Put something in an output's place."""
    target = path.with_name(f"{path.name}.target")
    if place == "file":
        path.write_bytes(_OLD)
        path.chmod(_MODE)
    elif place in {"link", "hard link"}:
        target.write_bytes(_OLD)
        target.chmod(_MODE)
        path.symlink_to(target.name) if place == "link" else path.hardlink_to(target)
    elif place == "dangling link":
        path.symlink_to(target.name)


def is_whole(name: str, content: bytes, known: Undisturbed | None) -> bool:
    """Whether a file is what an undisturbed command writes; of a measurement, whether it has its end."""
    if known is not None:
        try:
            return told(name, content) == known.contents[name]
        except ValueError:
            return False
    if name.endswith(".json"):
        try:
            told(name, content)
        except ValueError:
            return False
        return True
    endings = {".svg": b"</svg>\n", ".html": b"</html>\n"}
    return content.endswith(endings.get(Path(name).suffix, b"\n"))


def masked(names: Iterable[str]) -> str:
    """Names of files that are left, told so that the same finding reads the same."""
    ours = r"^\.pipeplan-\S*|^tmp\w{8}|^pipeplan-\S*"
    return ", ".join(sorted({re.sub(ours, "a temporary file", name) for name in names}))


def require_whole_store(path: Path, spare: Path) -> None:
    """A store is one whole database, or none yet; it is looked at in a copy, in the folder ``spare``, which is made."""
    if not path.exists():
        return
    spare.mkdir()
    for each in path.parent.glob(f"{path.name}*"):
        shutil.copy(each, spare)
    with closing(sqlite3.connect(spare / path.name)) as file:
        try:
            (said,) = file.execute("PRAGMA integrity_check").fetchone()
        except sqlite3.DatabaseError as error:
            raise Found(f"the store {path.name} is damaged: {error}") from None
    if said != "ok":
        raise Found(f"the store {path.name} is damaged: {said}")
