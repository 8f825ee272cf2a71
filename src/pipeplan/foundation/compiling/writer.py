"""Write kernels as C: all functions of ``*_kernel.py`` in one file, and an entry for each one that Python calls.

A kernel is a plain function over numbers and flat arrays; ``docs/explanation/kernels.md`` says which Python it may use.
Kernels are parsed, not imported: a build needs only this package and the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pipeplan.foundation.compiling.program import (
    BOOL,
    FLOAT,
    INT,
    NOTHING,
    NUMBERS,
    ROWS,
    Field,
    Function,
    KernelError,
    Program,
    members,
    signature,
)
from pipeplan.foundation.compiling.translation import translated

__all__ = ["KernelError", "write", "write_functions"]

KINDS = {INT: "q", BOOL: "q", FLOAT: "d", **{name: kind for name, (_, _, kind) in ROWS.items()}}
"""Kinds of numbers and rows in the descriptions of entries; rows of functions are ``fn``."""


class Leaf(NamedTuple):
    """A number or row that an entry takes, alone or in a record: its name, its expression in C, and its field."""

    name: str
    text: str
    field: Field

    @property
    def size(self) -> str:
        """Length of a row, or a number itself, in C."""
        return self.text if self.field.type in NUMBERS else f"{self.text}.length"


def leaves(program: Program, name: str, text: str, part: Field) -> Iterator[Leaf]:
    """Yield the numbers and rows of a parameter or field, those of records within it in order."""
    if part.type not in program.records:
        yield Leaf(name, text, part)
    for key, inner in program.records.get(part.type, {}).items():
        yield from leaves(program, f"{name}.{key}", f"{text}.{key}_", inner)


def entry(program: Program, function: Function) -> str:
    """Return the C functions and constants by which Python calls a function.

    ``NAME_entry`` takes the address of a struct of all arguments and the address for the result. It returns 0, or the number
    of the first leaf with a wrong length, from 1. ``NAME_takes`` describes the struct: a line for the kind of the result,
    then one for each leaf with its name, kind and shape; see :mod:`pipeplan.foundation.kernels.library`.
    """
    name, fields = function.name, function.parameters
    every = [leaf for key, part in fields.items() for leaf in leaves(program, key, f"a->{key}_", part)]
    result = {INT: "q", BOOL: "?", FLOAT: "d", NOTHING: "-"}.get(function.returns)
    if result is None:
        raise KernelError(function.module.path, function.node.lineno, "a Kernel's function returns a number or None")
    described = (f"{leaf.name} {KINDS.get(leaf.field.type, 'fn')} {leaf.field.shape}".rstrip() for leaf in every)
    takes = r"\n".join([result, *described])
    arguments = ", ".join(f"{'&' if part.type in program.records else ''}a->{key}_" for key, part in fields.items())
    answer = {"d": "*(double*)result = ", "-": ""}.get(result, "*(i64*)result = ")
    lines = [
        f"typedef struct {{ {members(fields)} }} {name}_arguments;",
        f'EXPORT const char {name}_takes[] = "{takes}";',
        f"EXPORT i64 {name}_entry(const {name}_arguments* a, void* result) {{",
        *(f"    if ({wrong}) return {place};" for place, wrong in checks(function, every)),
        f"    {answer}{name}({arguments});",
        "    return 0;",
        "}",
    ]
    return "\n".join(lines)


def checks(function: Function, every: Sequence[Leaf]) -> Iterator[tuple[int, str]]:
    """Yield the number of each leaf with a shape, from 1, and the condition in C under which it is wrong.

    A shape is a formula of names and integers for the length of a row, or several formulas with ``or`` in between. ``> 0``
    at its end means that the row must not be empty. For an int, the shape describes its value::

        offsets: Annotated[Ints, "ranks + 1"]       the first row with the shape NAME or NAME + NUMBER defines NAME
        limit: Annotated[Floats, "ranks"]           the same number of items
        link: Annotated[Ints, "ops or 0"]           may be empty; ``link`` is then a name for its length in other shapes,
                                                    and all rows named ``link`` have the same length
        several: Annotated[Ints, "1"]               ``several`` is the value of the only item; an int names its value, too
        due: Annotated[Floats, "classes * several"]
        turn: Annotated[Ints, "ops // slices"]      exact division: with a remainder, no length is right
        slices: Annotated[int, "> 0"]
    """
    named: dict[str, str] = {}
    first: dict[str, str] = {}
    for leaf in every:
        name, shape = leaf.name.split(".")[-1], leaf.field.shape
        if leaf.field.type == INT or " or " in shape:
            named.setdefault(name, leaf.size)
        elif leaf.field.type == "Ints" and shape == "1":
            named.setdefault(name, f"{leaf.text}.data[0]")
        elif counted := re.fullmatch(r"([a-z]\w*)(?: \+ (\d+))?(?: > \d+)?", shape):
            first.setdefault(counted[1], f"({leaf.size} - {counted[2]})" if counted[2] else leaf.size)
    known = first | named
    # Rows of one item are checked first: other shapes read the item.
    for place, leaf in sorted(enumerate(every, 1), key=lambda numbered: numbered[1].field.shape != "1"):
        formulas, _, least = leaf.field.shape.partition("> ")
        if unknown := sorted(set(re.findall(r"[a-z]\w*", formulas)) - {*known, "or"}):
            names = ", ".join(unknown)
            message = f"no argument says how many {names} there are, which the shape '{formulas}' of {leaf.name} needs"
            raise KernelError(function.module.path, function.node.lineno, message)
        wrong = []
        if formulas:
            divided = re.sub(r"(\w+) // (\w+)", r"parts(\1, \2)", formulas.strip())
            texts = [re.sub(r"\w+", lambda name: known.get(name[0], name[0]), text) for text in divided.split(" or ")]
            wrong.append(" && ".join(f"{leaf.size} != {text}" for text in texts))
        if " or " in formulas:
            wrong.append(f"{leaf.size} != {known[leaf.name.split('.')[-1]]}")
        if least:
            wrong.append(f"{leaf.size} <= {least}")
        # The row that defines a name would be compared with itself.
        wrong = [condition for condition in wrong if condition != f"{leaf.size} != {leaf.size}"]
        if wrong:
            yield place, " || ".join(f"({condition})" for condition in wrong)


def write(source: Path) -> str:
    """Return the C file of all kernels in a folder of source, with an entry for each function in a ``Kernel(function)``.

    Raises KernelError for a kernel that cannot be written as C.
    """
    program = Program(source)
    for path in sorted(source.rglob("*_kernel.py")):
        module = program.read(".".join(path.relative_to(source).with_suffix("").parts), path)
        for function in module.definitions.values():
            if isinstance(function, Function):
                translated(program, function)
    entries = []
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"\bKernel\((\w+)\)", text):
            module = program.read(".".join(path.relative_to(source).with_suffix("").parts), path)
            match program.named(module, name):
                case _, Function() as function if function in program.order and function not in entries:
                    entries.append(function)
    return program.text(entry(program, function) for function in entries)


def write_functions(functions: Mapping[str, tuple[str, Path, str]], source: Path) -> str:
    """Return a C file that exports functions from outside the package.

    ``functions`` maps the exported name of each function to its module, file and name. Functions may import from the folder
    ``source`` and from the folders of their own files. Raises KernelError for a function that cannot be written as C.
    """
    program = Program(source, *{path.parents[module.count(".")] for module, path, _ in functions.values()})
    exported = []
    for name, (home, path, original) in functions.items():
        module = program.read(home, path)
        function = module.definitions.get(original)
        if not isinstance(function, Function):
            raise KernelError(path, 1, f"{original} is not defined in this file: define it there")
        translated(program, function)
        call = f"{function.name}({', '.join(f'{key}_' for key in function.parameters)});"
        returned = "" if function.returns == NOTHING else "return "
        exported.append(f"EXPORT {signature(program, function, name)} {{ {returned}{call} }}")
    return program.text(exported)
