"""Bash runs a launch script up to torchrun: the words of its command line, and the variables that it exports."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

TORCHRUN = """torchrun() { printf '%s\\0' "$@" && printf '\\0' && env -0; }\n"""


@dataclass(frozen=True)
class Launch:
    """The words of torchrun's command line, and the exported variables that the user did not set."""

    words: tuple[str, ...]
    variables: dict[str, str]

    def after(self, program: str) -> tuple[str, ...]:
        """The words after the one that ends with a program's name."""
        [place] = [place for place, word in enumerate(self.words) if word.endswith(program)]
        return self.words[place + 1 :]


NUMBERS = {"STEPS": "1000", "LEARNING_RATE": "1e-4"}
"""Values of the variables to set that are numbers."""


def launched(text: str, values: Mapping[str, str] = NUMBERS) -> Launch:
    """A script as bash runs it with nothing else set than the variables to set. Raises CalledProcessError.

    Where ``values`` has none, a variable has its own name in small letters, or its default.
    """
    users = {name: values.get(name, name.lower()) for name in re.findall(r'^: "\$\{(\w+):\?', text, re.MULTILINE)}
    users |= {name: values[name] for name in re.findall(r'^(\w+)="\$\{\1:-', text, re.MULTILINE) if name in values}
    words = [f"{name}={value}" for name, value in users.items()]
    command = ["env", "-i", "PATH=/usr/bin:/bin", *words, "bash", "--norc", "-c", TORCHRUN + text]
    output = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    before, _, after = output.partition("\0\0")
    variables = dict(line.split("=", 1) for line in after.split("\0") if line)
    own = ("PATH", "PWD", "SHLVL", "_", "OLDPWD", *users)
    return Launch(tuple(before.split("\0")), {name: value for name, value in variables.items() if name not in own})
