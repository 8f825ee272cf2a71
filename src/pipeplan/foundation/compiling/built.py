"""What stands beside built libraries: what they were built from, or why there is none. A checkout builds its own anew."""

from __future__ import annotations

import re
from pathlib import Path

BUILT = "built.txt"
"""File with the digest that libraries of this version have, and in a checkout the state of their sources."""

NOT_BUILT = "not_built.txt"
"""File that says why there is no library for this machine."""


def note_built(text: str, folder: Path, states: list[str]) -> None:
    """Write beside libraries the digest of their C file, and the states of their sources."""
    write_at_once(folder / BUILT, "\n".join([re.findall(r'pipeplan_digest\[\] = "(\w+)"', text)[0], *states]))
    (folder / NOT_BUILT).unlink(missing_ok=True)


def build_here(source: Path, library: Path) -> None:
    """Compile the kernels of a checkout for this machine, and note the states of the files that they are made of.

    Raises CompilerError if that fails, and KernelError for a kernel that cannot be compiled.
    """
    from pipeplan.foundation.compiling.compiler import compile_library, find_compiler
    from pipeplan.foundation.compiling.writer import write

    # Before the files are read: one that is saved meanwhile counts as changed.
    states = [f"{path} {_state(source / path)}" for path in _sources(source)]
    text = write(source)
    compile_library(text, library, find_compiler())
    note_built(text, library.parent, states)


def is_stale(source: Path, library: Path) -> bool:
    """Return True in a checkout whose library is not there, or whose kernels were changed since it was built."""
    if not (source.name == "src" and (source.parent / "pyproject.toml").exists()):
        return False
    try:
        _, *states = (library.parent / BUILT).read_text(encoding="utf-8").splitlines()
        changed = [line for line in states if line != f"{(path := line.split()[0])} {_state(source / path)}"]
    except OSError:
        return True
    return bool(changed) or not library.exists()


def _sources(source: Path) -> list[str]:
    """Return the files that libraries are made of: kernels, the modules that they import, and what writes them as C."""
    files = {*source.rglob("*_kernel.py"), *(source / "pipeplan" / "foundation" / "compiling").glob("*.py")}
    for path in [*files]:
        for name in re.findall(r"^from ([\w.]+) import", path.read_text(encoding="utf-8"), re.MULTILINE):
            files.add(source.joinpath(*name.split(".")).with_suffix(".py"))
    return sorted(path.relative_to(source).as_posix() for path in files if path.is_file())


def _state(path: Path) -> str:
    """Return the size of a file and the time of its last change."""
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def write_at_once(path: Path, text: str) -> None:
    """Write a file that other processes may read at the same time."""
    from tempfile import NamedTemporaryFile

    path.parent.mkdir(exist_ok=True)
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        file.write(text + "\n")
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
