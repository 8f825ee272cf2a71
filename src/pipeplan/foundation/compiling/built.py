"""Records beside built libraries: their checksums, or why the build failed. A checkout rebuilds stale libraries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pipeplan.foundation.compiling.compiler import checksum

BUILT = "built.txt"
"""File with the name and checksum of each library and, in a checkout, of each source file."""

NOT_BUILT = "not_built.txt"
"""File with the reason why there is no library for this machine."""


def note_built(folder: Path, sources: Sequence[str] = ()) -> None:
    """Write the checksums of libraries beside them, and those of sources, as lines with a path and a checksum."""
    libraries = [f"{path.name} {checksum(path)}" for path in sorted(folder.glob("kernels-*"))]
    write_at_once(folder / BUILT, "\n".join([*libraries, *sources]))
    (folder / NOT_BUILT).unlink(missing_ok=True)


def build_here(source: Path, library: Path) -> None:
    """Compile the kernels of a checkout for this machine, and record the checksums of their source files.

    Raises CompilerError if the compiler fails, KernelError for a kernel that cannot be written as C, and OSError if the
    record cannot be written.
    """
    from pipeplan.foundation.compiling.compiler import compile_library, find_compiler
    from pipeplan.foundation.compiling.writer import write

    # Read before the files are, so that a file saved during the build counts as changed.
    sources = [f"{path} {checksum(source / path)}" for path in _sources(source)]
    compile_library(write(source), library, find_compiler())
    note_built(library.parent, sources)


def is_stale(source: Path, library: Path) -> bool:
    """Return True for a checkout whose library is missing or whose sources have changed; False for an installation."""
    # What a build could not make is not tried again at every start.
    if not (source.parent / "hatch_build.py").exists() or (library.parent / NOT_BUILT).exists():
        return False
    try:
        known = read_built(library.parent)
        files = {name: (library.parent if name.startswith("kernels-") else source) / name for name in known}
        return library.name not in known or any(checksum(files[name]) != known[name] for name in known)
    except OSError:
        return True


def read_built(folder: Path) -> dict[str, str]:
    """Return the checksums of libraries and sources by their names, those of sources relative to the source folder."""
    lines = (folder / BUILT).read_text(encoding="utf-8", errors="replace").splitlines()
    return {name: state for name, _, state in (line.partition(" ") for line in lines)}


def _sources(source: Path) -> list[str]:
    """Return the sources of a library: kernels, the modules that they import, and the package that compiles them."""
    files = {*source.rglob("*_kernel.py"), *(source / "pipeplan" / "foundation" / "compiling").glob("*.py")}
    for path in [*files]:
        for name in re.findall(r"^from ([\w.]+) import", path.read_text(encoding="utf-8"), re.MULTILINE):
            files.add(source.joinpath(*name.split(".")).with_suffix(".py"))
    return sorted(path.relative_to(source).as_posix() for path in files if path.is_file())


def write_at_once(path: Path, text: str) -> None:
    """Replace a file atomically: other processes may read it meanwhile."""
    from tempfile import NamedTemporaryFile

    path.parent.mkdir(exist_ok=True)
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        file.write(text + "\n")
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
