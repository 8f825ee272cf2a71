"""Write kernels as C: all functions of ``*_kernel.py`` in one file, and what Python calls them by.

A kernel is a plain function over numbers and flat arrays; ``docs/explanation/kernels.md`` says which Python it may use. It
is read as text: a build imports nothing of pipeplan but this package, which needs nothing but the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
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
"""How descriptions name numbers and rows; rows of functions are ``fn``."""


class Leaf(NamedTuple):
    """A number or row that an entry takes: its name, its text in C, and its field."""

    name: str
    text: str
    field: Field

    @property
    def size(self) -> str:
        """The length of a row, or an int itself, as C reads it."""
        return self.text if self.field.type in NUMBERS else f"{self.text}.length"


def leaves(program: Program, name: str, text: str, part: Field) -> Iterator[Leaf]:
    """Yield everything that lies in memory for a parameter or field, records within it in place."""
    if part.type not in program.records:
        yield Leaf(name, text, part)
    for key, inner in program.records.get(part.type, {}).items():
        yield from leaves(program, f"{name}.{key}", f"{text}.{key}_", inner)


def entry(program: Program, function: Function) -> str:
    """Return what Python calls a function by: one address of all arguments, lengths that are checked, and a description.

    The description has a line for the result and one for each leaf: its name, its kind as numpy names it, and its shape.
    """
    name, fields = function.name, function.parameters
    every = [leaf for key, part in fields.items() for leaf in leaves(program, key, f"a->{key}_", part)]
    result = {INT: "q", BOOL: "?", FLOAT: "d", NOTHING: "-"}.get(function.returns)
    if result is None:
        raise KernelError(function.module.path, function.node.lineno, "what a Kernel runs returns a number or None")
    takes = [result, *(f"{leaf.name} {KINDS.get(leaf.field.type, 'fn')} {leaf.field.shape}".rstrip() for leaf in every)]
    arguments = ", ".join(f"{'&' if part.type in program.records else ''}a->{key}_" for key, part in fields.items())
    answer = {"d": "*(double*)result = ", "-": ""}.get(result, "*(i64*)result = ")
    lines = [
        f"typedef struct {{ {members(fields)} }} {name}_arguments;",
        f'EXPORT const char {name}_takes[] = "{"%n".join(takes)}";'.replace("%n", r"\n"),
        f"EXPORT i64 {name}_entry(const {name}_arguments* a, void* result) {{",
        *(f"    if ({wrong}) return {place};" for place, wrong in checks(function, every)),
        f"    {answer}{name}({arguments});",
        "    return 0;",
        "}",
    ]
    return "\n".join(lines)


def checks(function: Function, every: Sequence[Leaf]) -> Iterator[tuple[int, str]]:
    """Yield the number of each leaf that may be wrong, from 1, and the condition of that.

    A shape is a formula of names and whole numbers, or several with ``or`` in between; ``> 0`` behind it means that the row
    must not be empty. What is said of the length of a row is said of an int itself::

        offsets: Annotated[Ints, "ranks + 1"]       the first row of a name, or a name plus a number, says how many there are
        limit: Annotated[Floats, "ranks"]           as many
        link: Annotated[Ints, "ops or 0"]           may be empty: ``link`` is then its length, for shapes of other rows,
                                                    and other rows of the name are as long
        several: Annotated[Ints, "1"]               one item, which ``several`` is; an int is its own name, too
        due: Annotated[Floats, "classes * several"]
        turn: Annotated[Ints, "ops // slices"]      divided without a rest, or else nothing is as long
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
    # Rows of one item come first, as others may depend on the item.
    for place, leaf in sorted(enumerate(every, 1), key=lambda numbered: numbered[1].field.shape != "1"):
        formulas, _, least = leaf.field.shape.partition("> ")
        if unknown := sorted(set(re.findall(r"[a-z]\w*", formulas)) - {*known, "or"}):
            message = f"no argument says how many {', '.join(unknown)} there are, of which {leaf.name} has {formulas}"
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
        # What says how many there are is compared with itself.
        wrong = [condition for condition in wrong if condition != f"{leaf.size} != {leaf.size}"]
        if wrong:
            yield place, " || ".join(f"({condition})" for condition in wrong)


def write(source: Path) -> str:
    """Return the C file of all kernels in a folder of source: entries are the functions that a ``Kernel`` is made of.

    Raises KernelError for a kernel that cannot be compiled.
    """
    program = Program(source)
    for path in sorted(source.rglob("*_kernel.py")):
        module = program.read(".".join(path.relative_to(source).with_suffix("").parts), path)
        for function in module.functions.values():
            translated(program, function)
    entries = []
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"\bKernel\((\w+)\)", text):
            module = program.read(".".join(path.relative_to(source).with_suffix("").parts), path)
            match program.named(module, name):
                case _, Function() as function if function in program.order and function not in entries:
                    entries.append(function)
    text = program.text(entry(program, function) for function in entries)
    return f'{text}EXPORT const char pipeplan_digest[] = "{sha256(text.encode()).hexdigest()}";\n'


def write_functions(functions: Mapping[str, tuple[str, Path, str]], source: Path) -> str:
    """Return a C file that exports functions of other files, by module, file and name, under names of their own.

    They may use what lies beside their files or in the folder ``source``. Raises KernelError for what cannot be compiled.
    """
    program = Program(source, *{path.parents[module.count(".")] for module, path, _ in functions.values()})
    exported = []
    for name, (home, path, original) in functions.items():
        module = program.read(home, path)
        if original not in module.functions:
            raise KernelError(path, 1, f"{original} is no function of the file: define it there")
        function = translated(program, module.functions[original])
        call = f"{function.name}({', '.join(f'{key}_' for key in function.parameters)});"
        returned = "" if function.returns == NOTHING else "return "
        exported.append(f"EXPORT {signature(program, function, name)} {{ {returned}{call} }}")
    return program.text(exported)
