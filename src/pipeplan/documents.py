"""Files of keys and values: YAML, TOML or JSON, by their ending, with what could be a slip an error."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeplan.errors import FormatError, UnknownNameError
from pipeplan.files import MEBIBYTE, read_text
from pipeplan.strict_json import no_constant, unique_keys
from pipeplan.yaml_core import read_yaml

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
    return json.loads(text, object_pairs_hook=unique_keys, parse_constant=no_constant)


def _read_toml(text: str) -> Any:
    return tomllib.loads(text)


_READERS: dict[str, Callable[[str], Any]] = {
    ".yaml": read_yaml,
    ".yml": read_yaml,
    ".toml": _read_toml,
    ".json": _read_json,
}

ENDINGS = frozenset(_READERS)
"""Of files that :func:`read_document` reads."""
