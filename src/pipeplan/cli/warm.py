"""``pipeplan warm``."""

from __future__ import annotations

from pipeplan.answers.warming import warm as warm_kernels
from pipeplan.cli.answers import deliver
from pipeplan.cli.options import command
from pipeplan.cli.progress import progress_bar


@command
def warm(*, json: bool = False) -> int:
    """Compile the kernels ahead of time, as when an image is built.

    Otherwise a search or a large simulation compiles what it needs when it first runs on a machine. The machine code is
    stored in `NUMBA_CACHE_DIR`, or else next to the package or in the user's cache. It is for this type of processor;
    `NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES=`, now and later, makes it independent of the type. Exits with 1 if nothing
    can be stored.
    """
    with progress_bar("compiling", quiet=json) as bar:
        kernels = warm_kernels(bar.show)
    deliver(kernels, json=json)
    return 0 if kernels.stored else 1
