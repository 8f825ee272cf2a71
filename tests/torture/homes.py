"""The suite ``homes``: no home, no temporary folder, folders that are closed or gone, strange settings."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tests.torture.forked import Ran, fresh, judged, ran
from tests.torture.machine.around import Around, masked
from tests.torture.machine.conditions import Conditions
from tests.torture.machine.errands import Errand, answer_of, chosen, kept, quick, undisturbed
from tests.torture.suite import Found, Suite

_ANEW = 0.25
"""Of the cases: a new interpreter, as libraries read most of this while they load."""

_USUAL = Conditions()

_BROKEN = (b"font.size: enormous\n", b"\xff\xfe\n", b"::::\n", b"backend: none\n")
"""What stands in Matplotlib's settings."""


@dataclass(frozen=True)
class _Torment:
    """What a command finds around it, how it is run, and whether it may refuse."""

    environment: Mapping[str, str | None] = field(default_factory=dict)
    conditions: Conditions = _USUAL
    may_refuse: bool = False


def attempt(seed: int, folder: Path) -> str:
    """One command in a strange place: the answer is as ever, and the modes of files are as they should be."""
    rng = Random(seed)
    errand = chosen(rng, (quick, 0.9), (kept, 0.1))
    known = undisturbed(errand)
    around = Around.laid_out(rng, errand, folder / "work")
    (folder / "temporary").mkdir()
    name = rng.choice(tuple(_WAYS))
    torment = _WAYS[name](rng, folder)
    ended = _ran(rng, torment, errand, folder)
    word = judged(ended)
    allowed = {errand.code, 2} if torment.may_refuse else {errand.code}
    if ended.code not in allowed:
        raise Found(f"{name}: it ends with {ended.code} ({ended.stderr.strip()!r}): {ended.line}")
    done = ended.code == errand.code
    same = name != "settings" or "--json" in errand.arguments  # a table is as wide as its terminal
    if done and same and answer_of(errand, ended.out) != known.answer:
        raise Found(f"{name}: it says something else: {ended.line}")
    _open(folder)
    around.judge(known, ended_well=done, early=not done)
    _require_modes(around, torment)
    if left := around.left_over(store=False) + os.listdir(folder / "temporary"):
        raise Found(f"{name}: {masked(left)} left: {ended.line}")
    return name if done else f"{name}, {word}"


def _ran(rng: Random, torment: _Torment, errand: Errand, folder: Path) -> Ran:
    environment = {"TMPDIR": str(folder / "temporary"), **torment.environment}
    if torment.conditions == _USUAL and rng.random() < _ANEW:
        return fresh(errand.arguments, folder / "work", seconds=120, environment=environment)
    conditions = replace(torment.conditions, work=torment.conditions.work or str(folder / "work"))
    return ran(errand.arguments, folder, seconds=120, environment=environment, prepare=conditions.asked())


def _open(folder: Path) -> None:
    """What was closed is opened, to be looked at."""
    for name in ("work", "temporary", "closed"):
        if (folder / name).is_dir():
            (folder / name).chmod(0o755)


def _require_modes(around: Around, torment: _Torment) -> None:
    """A new file has the mode that the mask leaves it."""
    mask = torment.conditions.umask
    for name in around.errand.written:
        path = around.folder / name
        if mask is None or around.places[name] != "none" or not path.exists():
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode != 0o666 & ~mask:
            raise Found(f"{name} has the mode {mode:o} under the mask {mask:o}: {around.errand.arguments[0]}")


def _home(rng: Random, folder: Path) -> _Torment:
    """A home that is not there, is a file, is closed, or is no path; settings and caches are looked for in it alone.

    Where none is named, the system knows one, which is not ours to write in: caches and settings have places then.
    """
    place = rng.choice(
        (
            None,
            "",
            str(folder / "missing" / "home"),
            str(folder / "file"),
            str(folder / "closed"),
            "relative",
            "/dev/null/x",
        )
    )
    (folder / "file").write_text("no folder\n")
    (folder / "closed").mkdir(mode=0)
    names = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "MPLCONFIGDIR", "NUMBA_CACHE_DIR")
    return _Torment({"HOME": place} | ({} if place is None else dict.fromkeys(names)), may_refuse=False)


def _temporary(rng: Random, folder: Path) -> _Torment:
    """No folder for temporary files, or one that is missing, closed or a file: Python looks for another."""
    (folder / "closed").mkdir(mode=0o500)
    place = rng.choice(
        (None, "", str(folder / "missing"), str(folder / "closed"), str(folder / "work" / "in.json"), ".")
    )
    inside = Conditions(powerless=True) if rng.random() < 0.5 else _USUAL
    return _Torment({"TMPDIR": place or str(folder / "temporary")}, inside)


def _settings(rng: Random, folder: Path) -> _Torment:
    """Settings of libraries and terminals that make no sense."""
    (folder / "closed").mkdir()
    (folder / "closed" / "matplotlibrc").write_bytes(rng.choice(_BROKEN))
    return _Torment(
        {
            name: rng.choice(values)
            for name, values in {
                "MPLCONFIGDIR": (str(folder / "closed"), str(folder / "missing"), ""),
                "MATPLOTLIBRC": (str(folder / "closed"), None),
                "MPLBACKEND": ("nonsense", "TkAgg", "", None),
                "LANG": ("nonexistent", "C", "tr_TR.UTF-8", "", None),
                "LC_ALL": ("nonexistent", "POSIX", None),
                "TERM": ("", "dumb", "nonsense", "xterm\x1b[31m", None),
                "TZ": ("Nowhere/Nothing", ":", "UTC+99", None),
                "COLUMNS": ("0", "1", "-5", "abc", "1000000000", "", None),
                "LINES": ("0", "abc", None),
                "NO_COLOR": ("1", None),
                "FORCE_COLOR": ("", None),
                "PYTHONWARNINGS": ("default", None),
            }.items()
        }
    )


def _interpreter(rng: Random, folder: Path) -> _Torment:
    """What Python itself can be told."""
    values = {
        "PYTHONOPTIMIZE": ("1", "2", None),
        "PYTHONUTF8": ("0", None),
        "LC_ALL": ("C", "C.UTF-8"),
        "PYTHONUNBUFFERED": ("1", None),
        "PYTHONHASHSEED": ("random", "1"),
        "PYTHONSAFEPATH": ("1", None),
        "PYTHONNOUSERSITE": ("1", None),
        "PYTHONDONTWRITEBYTECODE": ("1",),
        "PYTHONCOERCECLOCALE": ("0", None),
    }
    return _Torment({name: rng.choice(each) for name, each in values.items()})


def _mask(rng: Random, folder: Path) -> _Torment:
    """Masks for new files, down to one that leaves no right at all."""
    return _Torment(conditions=Conditions(umask=rng.choice((0, 0o002, 0o027, 0o077, 0o777))), may_refuse=True)


def _closed(rng: Random, folder: Path) -> _Torment:
    """A working folder that may not be written, or not be listed."""
    (folder / "work").chmod(rng.choice((0o555, 0o111, 0o311, 0o000)))
    return _Torment(conditions=Conditions(powerless=True), may_refuse=True)


def _gone(rng: Random, folder: Path) -> _Torment:
    """A working folder that has been removed."""
    return _Torment(conditions=Conditions(gone=str(folder / "gone")), may_refuse=True)


_WAYS: Mapping[str, Callable[[Random, Path], _Torment]] = {
    "home": _home,
    "temporary": _temporary,
    "settings": _settings,
    "interpreter": _interpreter,
    "mask": _mask,
    "closed": _closed,
    "gone": _gone,
}


HOMES = Suite(
    "homes",
    "Commands without a home or temporary folder, in closed or removed folders, with broken settings, locales and masks: "
    "the same answer as ever, files of the right mode; an undisturbed run judges.",
    attempt,
    limit=300,
    sample=1,
)
