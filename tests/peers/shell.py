"""Bash reads what is to be pasted: the words of its arrays, and the variables that it exports."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pasted:
    """The words of some arrays, one array after the other, and the exported variables."""

    words: tuple[str, ...]
    variables: dict[str, str]


def pasted(text: str, arrays: Sequence[str], folder: Path | None = None) -> Pasted:
    """A text as bash runs it in a folder, in an environment that has nothing else. Raises CalledProcessError."""
    words = " ".join(f'"${{{name}[@]}}"' for name in arrays)
    script = f"set -u\n{text}\nprintf '%s\\0' {words} && printf '\\0' && env -0"
    command = ["env", "-i", "PATH=/usr/bin:/bin", "bash", "--norc", "-c", script]
    output = subprocess.run(command, capture_output=True, check=True, cwd=folder).stdout.decode()
    before, _, after = output.partition("\0\0")
    variables = dict(line.split("=", 1) for line in after.split("\0") if line)
    own = ("PATH", "PWD", "SHLVL", "_", "OLDPWD")
    return Pasted(tuple(before.split("\0")), {name: value for name, value in variables.items() if name not in own})
