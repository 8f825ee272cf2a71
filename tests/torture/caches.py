"""The suite ``caches``: compiled kernels on disk that are broken, of others, removed meanwhile, or cannot be kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from tests.torture.box import MARK
from tests.torture.machine.small_disk import small_disk, why_none
from tests.torture.suite import Found, Suite

_EXPECTED = [0, 3, 6, 9, 12, 15, 18, 21]
"""What the kernel fills in, told by hand."""

KERNEL = """
def thrice(number):
    return 3 * number


def fill(numbers):
    for index in range(len(numbers)):
        numbers[index] = thrice(index)
"""
"""A kernel and what it calls: two signatures on disk, a second to compile."""

_WORK = """
import json, sys
if len(sys.argv) > 1:
    from tests.torture.machine.namespaces import enter
    enter(int(sys.argv[1]))
import numpy as np
from small_kernel import fill
from pipeplan.kernels import Kernel
found = []
for kind in (np.int64, np.float64):
    numbers = np.zeros(8, kind)
    Kernel(fill, compile_after=0)((), (numbers,), work=1)
    found.append([int(number) for number in numbers])
print(json.dumps(found))
"""


def attempt(seed: int, folder: Path) -> str:
    """Some processes that need the same kernel, and a cache that something is wrong with: each gets the same figures."""
    rng = Random(seed)
    (folder / "small_kernel.py").write_text(KERNEL)
    (folder / "kernels").mkdir()
    name = rng.choice(tuple(_WAYS))
    word = _WAYS[name](rng, folder)
    if name != "full":
        _require_figures(_begin(folder, "kernels"), f"after {name}")
    return f"{name}{word}"


def _begin(folder: Path, kept: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    """A process that needs the kernel; it is found, or compiled, in a folder of the case's."""
    paths = os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])
    around = os.environ | {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(folder / kept), MARK: str(folder)} | environment
    return subprocess.Popen(
        [sys.executable, "-c", _WORK, *arguments],
        cwd=folder,
        env=around,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _require_figures(process: subprocess.Popen[bytes], when: str) -> bool:
    """Whether it was told that kernels cannot be kept; what it fills in is right whatever becomes of them."""
    out, err = process.communicate(timeout=200)
    said = err.decode(errors="replace").strip()
    if process.returncode or "Traceback" in said:
        raise Found(f"{when}: exit code {process.returncode}: {said[-300:]!r}")
    if json.loads(out) != [_EXPECTED, _EXPECTED]:
        raise Found(f"{when}: a kernel fills in {out.decode()[:200]}")
    return "cannot be kept" in said


def _files(kept: Path) -> list[Path]:
    return sorted(path for path in kept.rglob("*") if path.is_file())


def _warm(folder: Path) -> list[Path]:
    """The kernel's files, as a first process leaves them in this case's folder."""
    _require_figures(_begin(folder, "kernels"), "compiled for the first time")
    return _files(folder / "kernels")


def _at_once(rng: Random, folder: Path) -> str:
    """Nothing is kept, and up to eight processes want it at once."""
    processes = [_begin(folder, "kernels") for _ in range(rng.randrange(2, 9))]
    for process in processes:
        _require_figures(process, f"{len(processes)} at once")
    return f" {len(processes)}"


def _damaged(rng: Random, folder: Path) -> str:
    """Files cut off, of garbage, empty, or with a byte changed."""
    for path in _warm(folder):
        content = bytearray(path.read_bytes())
        way = rng.randrange(5)
        if way == 0:
            content = content[: rng.randrange(len(content))]
        elif way == 1:
            content = bytearray(rng.randbytes(rng.randrange(200)))
        elif way == 2:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        elif way == 3:
            content += rng.randbytes(9)
        path.write_bytes(content)
    return ""


def _exchanged(rng: Random, folder: Path) -> str:
    """Each file holds what belongs into another."""
    paths = _warm(folder)
    contents = [path.read_bytes() for path in paths]
    rng.shuffle(contents)
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return ""


def _replaced(rng: Random, folder: Path) -> str:
    """Files that are folders, links to nothing, or cannot be read."""
    for path in _warm(folder):
        way = rng.randrange(3)
        if way < 2:
            path.unlink()
        if way == 0:
            path.mkdir()
        elif way == 1:
            path.symlink_to(rng.choice(("nothing", path.name)))
        else:
            path.chmod(0)
    return ""


def _removed(rng: Random, folder: Path) -> str:
    """The files go while processes use and make them."""
    if rng.random() < 0.5:
        _warm(folder)
    processes = [_begin(folder, "kernels") for _ in range(3)]
    while any(process.poll() is None for process in processes):
        for path in _files(folder / "kernels"):
            path.unlink(missing_ok=True)
        time.sleep(rng.uniform(0, 0.05))
    for process in processes:
        _require_figures(process, "files removed meanwhile")
    return ""


def _killed(rng: Random, folder: Path) -> str:
    """Processes that compile are killed."""
    for _ in range(rng.randrange(1, 4)):
        process = _begin(folder, "kernels")
        time.sleep(rng.uniform(0.3, 3.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    return ""


def _of_others(rng: Random, folder: Path) -> str:
    """Compiled for another processor, whose kernels are other files."""
    told = rng.choice(({"NUMBA_CPU_NAME": "generic"}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}))
    _require_figures(_begin(folder, "kernels", **told), "for another processor")
    return ""


def _full(rng: Random, folder: Path) -> str:
    """No room is left where they would be kept."""
    (folder / "disk").mkdir()
    if why_none(Path(os.environ[MARK]) / "disk") is not None:
        return ", not here"
    with small_disk(folder / "disk", 1 << 20) as disk:
        disk.fill(rng.choice((0, 4096, 8192, 16384)))
        told = _require_figures(_begin(folder, "disk", str(disk.process)), "no room for kernels")
        disk.empty()
        _require_figures(_begin(folder, "disk", str(disk.process)), "with room again")
        if left := [path.name for path in _files(disk.here) if not path.name.endswith(".nbc")]:
            raise Found(f"{len(left)} temporary files left where there was no room for kernels")
    return ", told" if told else ""


_WAYS: Mapping[str, Callable[[Random, Path], str]] = {
    "at once": _at_once,
    "damaged": _damaged,
    "exchanged": _exchanged,
    "replaced": _replaced,
    "removed": _removed,
    "killed": _killed,
    "of others": _of_others,
    "full": _full,
}


CACHES = Suite(
    "caches",
    "Compiled kernels on disk that are cold for many processes, cut off, exchanged, removed meanwhile, of others or "
    "without room: each process computes what was told by hand.",
    attempt,
    limit=300,
    sample=0,  # a second of compiling for each process
    cores=2,
)
