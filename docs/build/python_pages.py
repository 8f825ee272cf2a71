"""The reference of the Python API: every public name, from its docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pipeplan

FUNCTIONS = """# Functions

Each command of the shell is the function of its name. Settings are keywords of the same names as in the shell;
[Settings](options.md) has all of them, [In Python](python.md) the overview.
"""

TYPES = """# Types

What functions take and give. Every answer has `print()`, `to_dict()`, `to_frame()` and `save(path)`, and is a picture
or a table in a notebook.
"""

SUBMODULES = """# Submodules

For code that builds on pipeplan: plugins, one's own costs and schedules, and parts of the workbench on their own. These
names remain, as those of `pipeplan` itself do; other names of these modules may change. [Training](runtime.md) has those of
`pipeplan.runtime`, [Errors](errors.md) those of `pipeplan.foundation.errors`.
"""

PUBLIC = {
    "costs": (
        "Costs of stages, from settings or from layers.",
        "Layer Limits balanced_layers stage_settings",
    ),
    "strategies": ("Rules that make schedules.", "Strategy Shape Formula FromCosts strategy"),
    "model": (
        "Schedules, timelines, and what waits for what.",
        "concatenate format_schedule ops overlap parse_schedule",
    ),
    "passes": (
        "Schedules changed into other schedules.",
        "insert_communication insert_offload insert_recompute merge_backward split_backward",
    ),
    "formats": ("File formats.", "Format TimelineContent TrainerSettings"),
    "trainers": ("Trainers that run schedules and plans.", "Trainer"),
    "extensions.planning.hardware": ("GPUs, links and clusters.", "Cluster Gpu Link Node Preset cluster gpu"),
    "extensions.planning.workload": (
        "Models: FLOPs, bytes and parameters of their layers.",
        "Execution ModelShape layers_of model parameter_counts read_model token_flops",
    ),
    "extensions.search.layouts": (
        "Layouts of a model's layers on stages.",
        "LaidLayer LayerOption best_layout",
    ),
    "testing": ("Tests of plugins.", "check_format check_strategy"),
}
"""Purpose and public names of each submodule, apart from those that have pages of their own."""

RUNTIME = """# Training

`pipeplan.runtime` trains the stages of a model by a schedule; it needs the extra `pytorch`. [Train in your own
loop](../how-to/training.md) shows how it is used.
"""

ERRORS = """# Errors

Every error that pipeplan raises on purpose is a [`PipeplanError`][pipeplan.foundation.errors.PipeplanError]; import the
others from `pipeplan.foundation.errors`.

```text
{tree}
```
"""


def pages() -> Iterator[tuple[str, str]]:
    """The path and the text of each page."""
    public = sorted(pipeplan.__all__)
    functions = [name for name in public if name[0].islower()]
    types = [name for name in public if name[0].isupper() and name != "PipeplanError"]
    yield "reference/functions.md", FUNCTIONS + "".join(f"\n::: pipeplan.{name}\n" for name in functions)
    yield "reference/types.md", TYPES + "".join(f"\n::: pipeplan.{name}\n" for name in types)
    yield "reference/runtime.md", RUNTIME + "".join(f"\n::: pipeplan.runtime.{name}\n" for name in _runtime())
    yield "reference/submodules.md", SUBMODULES + "".join(_submodule(name, *entry) for name, entry in PUBLIC.items())
    tree, classes = _errors()
    yield (
        "reference/errors.md",
        ERRORS.format(tree=tree) + "".join(f"\n::: pipeplan.foundation.errors.{name}\n" for name in classes),
    )


def public_names() -> list[str]:
    """The names that the reference describes, each after its module."""
    names = [f"pipeplan.{name}" for name in pipeplan.__all__ if name != "PipeplanError"]
    names += [f"pipeplan.{module}.{name}" for module, (_, public) in PUBLIC.items() for name in public.split()]
    names += [f"pipeplan.runtime.{name}" for name in _runtime()]
    return names + [f"pipeplan.foundation.errors.{name}" for name in _errors()[1]]


def _submodule(name: str, about: str, public: str) -> str:
    members = "".join(
        f"\n::: pipeplan.{name}.{member}\n    options:\n      heading_level: 3\n" for member in public.split()
    )
    return f"\n## pipeplan.{name}\n\n{about}\n{members}"


def _source(module: str) -> ast.Module:
    """A module, read and not imported: one of them needs PyTorch."""
    return ast.parse((Path(pipeplan.__file__).parent / module).read_text(encoding="utf-8"))


def _runtime() -> list[str]:
    """The public classes and functions of the runtime; what a training loop is made of comes first."""
    (listed,) = (
        node.value
        for node in _source("extensions/training/runtime/__init__.py").body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"
    )
    return sorted(ast.literal_eval(listed), key=lambda name: (name != "Pipeline", name.islower(), name))


def _errors() -> tuple[str, list[str]]:
    """The tree of errors as their module draws it, and their names."""
    module = _source("foundation/errors.py")
    _, _, tree = (ast.get_docstring(module) or "").partition("\n\n")
    return tree, [node.name for node in module.body if isinstance(node, ast.ClassDef)]
