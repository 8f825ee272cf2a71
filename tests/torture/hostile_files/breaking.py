"""Honest content with one or a few things wrong: as bytes, as text, as a tree of values."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import tomli_w
import yaml

NUMBERS = (
    *(
        "-1",
        "0",
        "1.5",
        "1e308",
        "-1e308",
        "5e-324",
        "1e999",
        "NaN",
        "Infinity",
        "nan",
        "inf",
        "true",
        "null",
        "1:30",
        "010",
        "0x1F",
        "1_000",
    ),
    *(
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "1" + "0" * 30,
        "1" * 5000,
        "2147483648",
        "٣",
        "",
        "1e2",
        "+1",
    ),
)
TEXTS = (
    *(
        "",
        " ",
        "\x00",
        "\ud800",
        "\x1b[31m",
        "\u202e",
        "\u2028",
        "\ufeff",
        "a\nb",
        "a,b",
        '"',
        "'",
        "\\",
        "<script>",
        "[red]",
        "x" * 5000,
    ),
    *(
        "zbv",
        "1f1b",
        "../../x",
        "/dev/null",
        "NaN",
        "-0",
        "2020-01-01",
        "~",
        "yes",
        "0F0",
        "999F0",
        "0F99999999",
        "0Z0",
        "0F0;0F0",
        "(0F0;0B0)",
    ),
    *(
        "e\u0301",
        "ﷺ",
        "😀",
        "h100-sxm:8x8",
        "12GiB",
        "8act",
        "$x$",
        "{}",
        "%s",
        "0F-1",
        "-1F0",
        "0F1.5",
        "0F０",
        "wave",
    ),
)
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        3,
        1.5,
        -0.0,
        5e-324,
        1e308,
        -1e308,
        2**31,
        2**63,
        -(2**63) - 1,
        10**30,
        10**400,
        "",
        "1",
        "x",
        [],
        {},
        [[]],
    ),
    *(
        [None],
        [1, "x"],
        {"": 1},
        {"a": {"b": {}}},
        [0] * 300,
        "inf",
        "nan",
        float("inf"),
        float("nan"),
        [1e308, 1e308],
        [-1],
        ["0F0"],
    ),
)
CODE = (
    "!!python/object/apply:os.system ['touch ran']",
    "!!python/object/apply:os.mkdir ['ran']",
    "!!python/object/apply:builtins.open ['ran', 'w']",
    "!!python/object/new:builtins.open {args: ['ran', 'w']}",
    "!!python/object/apply:builtins.exec [\"open('ran', 'w')\"]",
)
_DEPTH = 3000
_LARGE = 100_000
_BOMB = 80 << 20
"""Bytes that a packed file of few kilobytes unpacks to: over every limit, and no harm where one is missing."""


def broken(content: bytes, name: str, luck: random.Random) -> bytes:
    """The content of a file of this name, with a fault that its ending invites."""
    if name.endswith(".gz"):
        return luck.choice((_packed, _packed, _unpackable))(content, name, luck)
    for _ in range(luck.choice((1, 1, 1, 2, 4))):
        content = luck.choice(_ways(name))(content, name, luck)
    return content


def _ways(name: str) -> tuple[Callable[[bytes, str, random.Random], bytes], ...]:
    tree = name.endswith((".json", ".yaml", ".toml"))
    if not tree:
        return _text, _text, _bytes
    more = (_code,) if name.endswith(".yaml") else ()
    return (_tree, _tree, _tree, _tree, _text, _bytes, *more)


def _code(content: bytes, name: str, luck: random.Random) -> bytes:
    """What a YAML reader that trusts files would run, in place of a value or in front of all: it makes a file."""
    code = luck.choice(CODE).encode()
    values = list(re.finditer(rb"(?<=: )\S.*", content))
    if not values or luck.random() < 0.3:
        return b"--- " + code + b"\n" + content
    found = luck.choice(values)
    return content[: found.start()] + code + content[found.end() :]


def _packed(content: bytes, name: str, luck: random.Random) -> bytes:
    return gzip.compress(broken(content, name.removesuffix(".gz"), luck), mtime=0)


def _unpackable(content: bytes, name: str, luck: random.Random) -> bytes:
    whole = gzip.compress(content, mtime=0)
    return luck.choice(
        (
            *(
                content,
                whole[:-5],
                whole[:12],
                whole + b"garbage",
                whole + whole,
                gzip.compress(whole, mtime=0),
                b"\x1f\x8b" + content,
            ),
            *(_bytes(whole, name, luck), gzip.compress(b" " * _BOMB, 1, mtime=0), gzip.compress(b"", mtime=0)),
        )
    )


def _bytes(content: bytes, name: str, luck: random.Random) -> bytes:
    """What disks, transfers and editors do."""
    at, other = sorted((luck.randint(0, len(content)), luck.randint(0, len(content))))
    flipped = bytearray(content)
    for _ in range(luck.choice((1, 1, 8)) if content else 0):
        flipped[luck.randrange(len(content))] ^= 1 << luck.randrange(8)
    text = content.decode("utf-8", "replace")
    return luck.choice(
        (
            *(
                bytes(flipped),
                content[:at],
                content[at:],
                content + content,
                content[:at] + content[other:],
                b"",
                b"\x00" * 100,
            ),
            *(
                content[:at] + content[at:other] * 2 + content[other:],
                content[:at] + luck.randbytes(8) + content[at:],
                luck.randbytes(64),
            ),
            *(
                b"\xef\xbb\xbf" + content,
                text.encode("utf-16"),
                text.encode("utf-32"),
                content.replace(b"\n", b"\r"),
                b"\n" * 3000,
            ),
            *(
                content.replace(b"\n", b"\r\n"),
                content[:at] + b"\x00" + content[at:],
                content[:at] + b"\xff" + content[at:],
                b"\n" + content,
            ),
        )
    )


def _text(content: bytes, name: str, luck: random.Random) -> bytes:
    """Words, lines and numbers of a text."""
    text = content.decode("utf-8", "surrogateescape")
    tokens = re.findall(r"\w+|\s|[^\w\s]", text)
    lines = text.splitlines(keepends=True)
    numbers = list(re.finditer(r"\d+(?:\.\d+)?", text))
    way = luck.randrange(7)
    if way == 0 and numbers:
        found = luck.choice(numbers)
        text = text[: found.start()] + luck.choice(NUMBERS) + text[found.end() :]
    elif way == 1 and len(tokens) > 1:
        first, second = luck.randrange(len(tokens)), luck.randrange(len(tokens))
        tokens[first], tokens[second] = tokens[second], tokens[first]
        text = "".join(tokens)
    elif way == 2 and tokens:
        tokens[luck.randrange(len(tokens))] = luck.choice(TEXTS)
        text = "".join(tokens)
    elif way == 3 and lines:
        lines.insert(luck.randrange(len(lines)), luck.choice(lines))
        text = "".join(lines)
    elif way == 4 and lines:
        del lines[luck.randrange(len(lines))]
        text = "".join(lines)
    elif way == 5 and lines:
        luck.shuffle(lines)
        text = "".join(lines)
    elif tokens:
        at = luck.randrange(len(tokens))
        text = "".join(tokens[:at] + [luck.choice(tokens)] * luck.choice((1, 2, 500)) + tokens[at:])
    return text.encode("utf-8", "surrogatepass" if "\ud800" in text else "surrogateescape")


def _tree(content: bytes, name: str, luck: random.Random) -> bytes:
    """Keys and values."""
    if len(content) > _LARGE or b"&a" in content:
        return _text(content, name, luck)  # what multiplies is for the reader, not for us
    try:
        tree = _load(content, name)
    except (ValueError, RecursionError, yaml.YAMLError):
        return _text(content, name, luck)  # broken before
    if luck.random() < 0.08:
        return _whole(tree, name, luck)
    holder = [tree]
    for _ in range(luck.choice((1, 1, 1, 2, 3))):
        _change(*luck.choice(_places(holder)), luck)
    text = _dump(holder[0], name)
    return text if text is not None else _text(content, name, luck)


def _whole(tree: Any, name: str, luck: random.Random) -> bytes:
    """What is wrong with a document as one: depth, a bare value, a list of it, a key twice, anchors that multiply."""
    text = (_dump(tree, name) or b"").decode("utf-8", "replace")
    first = re.search(r'"(\w+)": [^,{}\[\]]+,' if name.endswith(".json") else r"^(\w+)[ :=].*\n", text, re.MULTILINE)
    twice = text.replace(first[0], first[0] * 2, 1) if first else text * 2
    laughs = "\n".join(
        ["a: &a [x, x, x, x, x, x, x, x, x]"]
        + [f"{b}: &{b} [{f'*{a}, ' * 9}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    )
    return luck.choice(
        (
            *(
                "[" * _DEPTH,
                '{"a":' * _DEPTH,
                "[" * _DEPTH + "]" * _DEPTH,
                "null",
                "1",
                '"x"',
                f"[{text}]",
                twice,
                text + "x",
                laughs + "\n",
            ),
            *(
                "&a [*a]\n",
                "!!python/object/apply:os.system ['touch x']\n",
                "--- a\n--- b\n",
                "a: !!set {b}\n",
                "? [1]\n: 2\n",
                "<<: {a: 1}\n",
            ),
        )
    ).encode("utf-8", "replace")


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys."""
    keys: Any = node.keys() if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    found = [(node, key) for key in keys]
    for key in keys:
        found += _places(node[key])
    return found


def _change(holder: Any, key: Any, luck: random.Random) -> None:
    if (isinstance(holder, dict) and key not in holder) or (isinstance(holder, list) and key >= len(holder)):
        return
    way = luck.randrange(8)
    if way <= 3:
        holder[key] = luck.choice((*VALUES, *TEXTS))
    elif way == 4:
        del holder[key]
        if isinstance(holder, list) and not holder:
            holder.append(None)
    elif way == 5 and isinstance(holder, dict):
        renamed = luck.choice((str(key) + "s", str(key).upper(), luck.choice(TEXTS), "version", "schedule", "ranks"))
        holder[renamed] = holder.pop(key)
    elif way == 6 and isinstance(holder, list):
        holder[key:key] = [holder[key]] * luck.choice((1, 3, 400))
    elif isinstance(holder[key], (int, float)):
        by = luck.choice((-1, 2, 0.5, 1e300))
        with suppress(OverflowError):  # of what was made larger than any float before
            holder[key] *= by
    else:
        holder[key] = luck.choice(([holder[key]], {"x": holder[key]}, str(holder[key])))


def _load(content: bytes, name: str) -> Any:
    if name.endswith(".json"):
        return json.loads(content)
    if name.endswith(".toml"):
        import tomllib

        return tomllib.loads(content.decode())
    return yaml.safe_load(content)


def _dump(tree: Any, name: str) -> bytes | None:
    """The tree in the language of the file's ending; None where that has no words for it."""
    try:
        if name.endswith(".json"):
            return json.dumps(tree).encode()
        if name.endswith(".toml"):
            return tomli_w.dumps(tree).encode("utf-8", "surrogatepass")
        return yaml.safe_dump(tree, allow_unicode=_as_they_are(tree)).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, AttributeError, yaml.YAMLError, RecursionError):
        return None


def _as_they_are(tree: Any) -> bool:
    """Whether signs stand as they are rather than escaped: told by the tree, so that both happen."""
    return len(repr(tree)) % 2 == 0
