"""Random functions in the part of Python that kernels may use: arithmetic, conditions, loops and rows, nested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any


def write(folder: Path, number: int) -> tuple[dict[str, Callable[..., Any]], Path]:
    """Write functions ``f1``, ``f2`` ... into a file in a folder; return them by their names, and the file."""
    path = folder / "random_kernel.py"
    texts = [Program(Random(seed)).text(f"f{seed}") for seed in range(1, number + 1)]
    path.write_text("\n\n\n".join(['"""Random programs."""', *texts]) + "\n")
    names: dict[str, Any] = {"Ints": None, "Floats": None, "__name__": "random_kernel"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return {f"f{seed}": names[f"f{seed}"] for seed in range(1, number + 1)}, path


class Program:
    """A function, made from random numbers. Its ints are kept small, divisors are not 0, and places lie within rows."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def text(self, name: str) -> str:
        """Return the function."""
        head = f"def {name}(n: int, x: float, ints: Ints, floats: Floats) -> float:"
        body = ["i, j, y, z = n, 3, x, 0.5", *self.block(3)]
        return "\n".join([head, *(f"    {line}" for line in body), "    return y + z + i + j"])

    def block(self, depth: int) -> list[str]:
        """Return lines of statements."""
        return [line for _ in range(self.random.randint(1, 3)) for line in self.statement(depth)]

    def statement(self, depth: int) -> list[str]:
        """Return the lines of a statement."""
        kind = self.random.choice(("int", "float", "row", "both", "if", "for", "while") if depth else ("int", "float"))
        within = [f"    {line}" for line in self.block(depth - 1)] if kind in ("if", "for", "while") else []
        match kind:
            case "int":
                return [f"{self.random.choice('ij')} = ({self.whole(3)}) % 97 - 40"]
            case "float":
                return [f"{self.random.choice('yz')} {self.random.choice(('=', '+=', '-='))} {self.real(3)}"]
            case "row":
                place = f"({self.whole(1)}) % 4"
                return [
                    self.random.choice((f"ints[{place}] = ({self.whole(2)}) % 50", f"floats[{place}] = {self.real(2)}"))
                ]
            case "both":
                return [f"i, j = ({self.whole(1)}) % 31, ({self.whole(1)}) // 5 % 17", "y, z = z, y"]
            case "if":
                other = ["else:", *(f"    {line}" for line in self.block(0))] if self.random.random() < 0.5 else []
                return [f"if {self.condition(2)}:", *within, *other]
            case "for":
                span = self.random.choice(("3", "0, 5, 2", "4, -1, -1", "i % 3, 4", "j % 5"))
                leave = [f"    if {self.condition(1)}:", f"        {self.random.choice(('break', 'continue'))}"]
                return [f"for k{depth} in range({span}):", *leave, *within, f"    i += k{depth}"]
        return [f"left{depth} = 3", f"while left{depth} > 0 and {self.condition(1)}:", f"    left{depth} -= 1", *within]

    def whole(self, depth: int) -> str:
        """Return an expression that is an int."""
        if depth == 0:
            return self.random.choice(("i", "j", "n", "len(ints)", "ints[i % 4]", "ints[j % 4]", "-7", "12", "3"))
        first, second = self.whole(depth - 1), self.whole(depth - 1)
        forms = (
            "{} + {}", "{} - {}", "({}) % 61 * (({}) % 13)", "({}) // (abs({}) + 1)", "({}) % -(abs({}) + 1)",
            "min({}, {})", "max({}, {})", "-abs({}) + {}", "int(y > {}) + {}",
        )  # fmt: skip
        if self.random.random() < 0.2:
            return f"({first} if {self.condition(depth - 1)} else {second})"
        return f"({self.random.choice(forms).format(first, second)})"

    def real(self, depth: int) -> str:
        """Return an expression that is a float, and stays small."""
        if depth == 0:
            return self.random.choice(
                ("y * 0.5", "z / 3", "x", "floats[i % 4] * 0.25", "floats[j % 4] / 7", "0.1", "-2.5")
            )
        first, second = self.real(depth - 1), self.real(depth - 1)
        forms = (
            "{} + {}", "{} - {}", "{} * 0.25 * min({}, 2.0)", "{} / (abs({}) + 1)", "min({}, {})", "max({}, {})",
            "-abs({}) + {}",
        )  # fmt: skip
        if self.random.random() < 0.2:
            return f"({first} if {self.condition(depth - 1)} else {second} + i)"
        return f"({self.random.choice(forms).format(first, second)})"

    def condition(self, depth: int) -> str:
        """Return an expression that is true or false."""
        number = self.random.choice((self.whole, self.real))
        compared = f"{number(1)} {self.random.choice(('<', '<=', '==', '!=', '>', '>='))} {self.whole(1)}"
        if depth == 0 or self.random.random() < 0.3:
            return self.random.choice((compared, f"{self.whole(0)} < {compared}"))
        joined = f"({self.condition(depth - 1)} {self.random.choice(('and', 'or'))} {self.condition(depth - 1)})"
        return self.random.choice((joined, f"not {joined}"))
