"""YAML as people mean it: the core schema of YAML 1.2, with what could be a slip or a bomb an error.

PyYAML reads YAML 1.1, in which ``1:30`` is 90, ``010`` is 8, ``no`` is false and ``2024-01-01`` is a date. In the core
schema (YAML 1.2.2, section 10.3.2) a plain value is a number (``010`` is 10, ``0o10`` is 8, ``1e9`` is a number), ``true``
or ``false``, ``null`` or nothing, and else text.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import Any

MOST_DEPTH = 20
"""Groups in groups; PyYAML's C loader has no guard of its own."""

_TAG = "tag:yaml.org,2002:"

_PLAIN = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    "merge": (r"<<", ["<"]),
}
"""What plain values are, and how they start; the first that fits."""


def read_yaml(text: str) -> Any:
    """What a YAML document holds, as plain values.

    Raises
    ------
    ValueError
        For text that is no YAML; a key given twice; a merge of groups (``<<``), of which a few lines make more keys than any
        memory holds, and aliases (``*name``) that do; groups that are nested too deeply.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's way

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
            if any(key.tag == f"{_TAG}merge" for key, _ in node.value):
                raise ValueError("'<<' merges groups of keys, and a config file is one group: write the keys out")
            names = [key.value for key, _ in node.value]
            if len(set(map(str, names))) < len(names):
                repeated = next(name for name in names if names.count(name) > 1)
                raise ValueError(f"the key '{repeated}' stands twice")
            mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
            return mapping

    for kind, (pattern, firsts) in _PLAIN.items():
        Loader.add_implicit_resolver(f"{_TAG}{kind}", re.compile(f"(?:{pattern})\\Z"), firsts)
    Loader.add_constructor(f"{_TAG}int", lambda loader, node: _whole(loader.construct_scalar(node)))
    Loader.add_constructor(f"{_TAG}float", lambda loader, node: _number(loader.construct_scalar(node)))
    try:
        _require_small(yaml.parse(text, Loader), len(text))
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _whole(text: str) -> int:
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _number(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _require_small(events: Iterable[Any], most: int) -> None:
    """Refuse what is nested deeply, and aliases that stand for more values than the text has letters."""
    import yaml

    sizes: dict[str, int] = {}
    opened: list[tuple[str | None, int]] = []
    total = 0
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            if anchor is not None:
                sizes[anchor] = total - before
            continue
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise ValueError(f"the alias '*{event.anchor}' stands for nothing, or for what it is in")
            total += sizes[event.anchor]
        elif isinstance(event, yaml.NodeEvent):
            total += 1
            if isinstance(event, yaml.CollectionStartEvent):
                opened.append((event.anchor, total))
            elif event.anchor is not None:
                sizes[event.anchor] = 1
        if len(opened) > MOST_DEPTH:
            raise ValueError("it is nested too deeply")
        if total > most:
            raise ValueError("its aliases (*name) stand for more than the file has letters: write out what is meant")
