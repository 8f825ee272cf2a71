"""The command line as a process of its own, for what cannot be seen from inside one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Mapping


def ran(
    line: str,
    *,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    closed: Collection[int] = (),
    environment: Mapping[str, str] = {},
) -> subprocess.CompletedProcess[str]:
    """Run a command line and return how it ended.

    Parameters
    ----------
    closed
        Which of the descriptors 0, 1 and 2 the command finds closed.
    environment
        Variables beside those of this process.
    """

    def prepare() -> None:
        for number in closed:
            os.close(number)

    return subprocess.run(
        [sys.executable, "-m", "pipeplan", *line.split()],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
        preexec_fn=prepare if closed else None,
    )
