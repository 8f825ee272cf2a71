"""Files of keys and values: YAML, TOML or JSON, by their ending, with what could be a slip an error."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

from pipeplan.errors import FormatError, UnknownNameError
from pipeplan.files import MEBIBYTE, read_text

SIZE_LIMIT = MEBIBYTE
"""No file that people write by hand is larger than this, in bytes."""


def read_document(path: Path, what: str, *, limit: int = SIZE_LIMIT) -> Any:
    """What a file holds, as plain values; a key given twice is an error.

    Parameters
    ----------
    what
        What it should be, for messages: ``config file``.
    limit
        The most bytes that such a file can have.

    Raises
    ------
    InputError
        If it cannot be read.
    FormatError
        If it is empty, over ``limit``, not in the language of its ending, or has a key twice.
    UnknownNameError
        For an unknown ending.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise UnknownNameError(f"ending of a {what}", path.suffix or path.name, _READERS)
    text = read_text(path, limit=limit, what=what)
    try:
        return reader(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the {what} {path} is not right: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return " ".join(str(error).split()).partition("; use sys.set_int_max_str_digits")[0]


def _read_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise ValueError(f"the key '{key}' stands twice")
        seen[key] = value
    return seen


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _read_toml(text: str) -> Any:
    return tomllib.loads(text)


def _read_yaml(text: str) -> Any:
    """YAML with plain types only; unlike for PyYAML's own loader, ``1e9`` is a number and a key twice is an error.

    So is a merge (``<<``): a few lines of them multiply to more keys than any memory holds.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
            if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
                raise ValueError("'<<' merges groups of keys, and a config file is one group: write the keys out")
            names = [key.value for key, _ in node.value]
            if len(set(map(str, names))) < len(names):
                repeated = next(name for name in names if names.count(name) > 1)
                raise ValueError(f"the key '{repeated}' stands twice")
            mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
            return mapping

    number = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+.0123456789"))
    try:
        _require_shallow(yaml.parse(text, Loader))
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _require_shallow(events: Iterable[Any]) -> None:
    """Refuse what would exhaust the stack of PyYAML's C loader, which has no guard of its own."""
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > 20:
            raise ValueError("it is nested too deeply")


_READERS: dict[str, Callable[[str], Any]] = {
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
    ".toml": _read_toml,
    ".json": _read_json,
}

ENDINGS = frozenset(_READERS)
"""Of files that :func:`read_document` reads."""
