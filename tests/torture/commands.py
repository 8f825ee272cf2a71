"""Command lines with hostile options, and broken files given to the commands that read them.

Both run :func:`pipeplan.cli.main` in this process. Whatever it is given, a command ends with one of its exit codes and with
a sentence: no traceback, no invalid JSON under ``--json``, nothing that controls the terminal.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import shlex
import unicodedata
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import yaml

import pipeplan
from pipeplan.cli import main
from pipeplan.cli.app import command_line
from pipeplan.errors import PipeplanError
from pipeplan.model import Schedule, Timeline
from tests.torture.honest_files import honest_files, put
from tests.torture.suite import Found, Suite
from tests.torture.values import NODES, NUMBERS, TEXTS, hostile_value

_SHAPE = "-p 2 -m 3"
_SEARCH = "search -p 2 -m 2 --workers 1 --evaluations 30"
_PLAN = "plan --global-batch 8 --sequence 64 --seconds 0.3 --workers 1"

HONEST = {
    "schedules": ["schedules", "schedules zbv"],
    "simulate": [f"simulate zbv {_SHAPE}", "simulate order.json", "simulate --config config.yaml"],
    "compare": [f"compare 1f1b gpipe {_SHAPE}", "compare order.json rows.rows.txt"],
    "explain": [f"explain 1f1b {_SHAPE}", "explain json.json", "explain traces"],
    "search": [_SEARCH, f"{_SEARCH} --pareto --points 2"],
    "plan": [f"{_PLAN} --model model.yaml --cluster h100-sxm:2x1"],
    "estimate": ["estimate configuration.yaml --workers 1"],
    "check": ["check order.json", "check torch-csv.csv", f"check zbv {_SHAPE}"],
    "export": [f"export zbv {_SHAPE} --to {to}" for to in ("json", "torch-csv", "trace", "megatron", "zb-nodes")],
    "profile": ["profile --from traces"],
    "diff": ["diff 1f1b traces", "diff json.json json.json"],
    "convert": ["convert order.json x.csv", "convert json.json x.svg", "convert costs.costs.json y.costs.json"],
}
"""Small honest lines of each command, to change. ``run`` and ``serve`` start processes and are tested on their own."""

_PLANNING = (f"{_PLAN} --model model.yaml --cluster cluster.yaml", "estimate configuration.yaml --workers 1")
READERS = {
    "traces/": ("diff 1f1b traces", "explain traces", "profile --from traces", "check {}", "convert {} out.json"),
    "layers.": ("simulate -p 2 -m 3 --layers {}", "compare -p 2 -m 3 --layers {}"),
    "config.": ("simulate --config {}", "compare 1f1b zbv --config {}", "export --config {} --to torchtitan"),
    "shipped.": ("simulate --config {}", "check 1f1b --config {}"),
    "huggingface.": (f"{_PLAN} --cluster cluster.yaml --model {{}}",),
    "model.": _PLANNING,
    "cluster.": _PLANNING,
    "configuration.": ("estimate {} --workers 1", "diff 1f1b traces --configuration {} --calibration out.yaml"),
    "rows.json": ("estimate {} --workers 1",),
    "calibration.": ("estimate configuration.yaml --calibration {} --workers 1",),
    "costs.": ("simulate zbv -p 2 -m 3 --config {}", "convert {} out.costs.json", "check {}"),
    "": (
        *("check {}", "simulate {}", "explain {}", "convert {} out.json", "convert {} out.csv", "convert {} out.html"),
        *("compare {} 1f1b -p 2 -m 3", "diff 1f1b {}", "export {} --to torch-csv", "export {} --to megatron"),
    ),
}
"""Commands that read a file, by the beginning of its name."""


def _attempt_command(seed: int, folder: Path) -> str:
    luck = random.Random(f"commands {seed}")
    _prepare(folder)
    return _judged(line_of(luck))


def _attempt_file(seed: int, folder: Path) -> str:
    luck = random.Random(f"files {seed}")
    _prepare(folder)
    name = luck.choice(sorted(honest_files()))
    (folder / name).write_bytes(broken(honest_files()[name], luck))
    lines = next(lines for start, lines in READERS.items() if name.startswith(start))
    word = _judged([*luck.choice(lines).format(name).split(), *luck.choice(([], ["--json"]))])
    if lines is READERS[""]:
        require_the_same_again(folder / name)
    return word


def _prepare(folder: Path) -> None:
    os.environ["HOME"] = str(folder)
    put(folder)
    (folder / "folder").mkdir()
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "link.json").symlink_to("order.json")
    for name in ("empty.json", "empty.csv", "empty.yaml"):
        (folder / name).touch()


@cache
def options_of(command: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of each option of a command."""
    arguments = command_line()[command].assemble_argument_collection()
    names = (tuple(name for name in argument.names if name.startswith("-")) for argument in arguments)
    return tuple(each for each in names if each)


def line_of(luck: random.Random) -> list[str]:
    """Return an honest line with a few options changed or added, without ``pipeplan``."""
    command = luck.choice(sorted(HONEST))
    line = luck.choice(HONEST[command]).split()
    for _ in range(luck.choice((0, 1, 1, 1, 2, 3))):
        way = luck.random()
        if way < 0.8:
            names = luck.choice(options_of(command))
            name = luck.choice(names)
            line += [name] if luck.random() < 0.2 else [f"{name}={hostile_value(names, luck)}"]
        elif way < 0.9:
            line.append(luck.choice([*TEXTS, "--unknown", "-Z", "--no-", "---", "--="]))
        else:
            line += luck.choice(options_of(luck.choice(sorted(HONEST))))[:1]
    return line if "--json" in line or luck.random() < 0.5 else [*line, "--json"]


def _judged(line: list[str]) -> str:
    """Run a command and return how it ended. Raises Found for what no command may do."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        code = main(line)
    said = f"pipeplan {shlex.join(line)}"[:300]
    for fault in faults(line, code, out.getvalue(), err.getvalue()):
        raise Found(f"{fault}: {said}")
    return {0: "answered", 1: "negative"}.get(code, "refused")


def faults(line: list[str], code: int, out: str, err: str) -> list[str]:
    """Return what is wrong with how a command ended, a sentence each."""
    found = []
    if code not in (0, 1, 2):
        found.append(f"exit code {code}")
    if "should not have happened" in err or "internal error" in err:
        found.append(f"an error of last resort ({err.strip()[:300]})")
    elif "Traceback (most recent call last)" in out + err and not any(word.startswith("--debug") for word in line):
        found.append("a traceback")
    if code and not (err.strip() or out.strip()):
        found.append(f"exit code {code} without a word")
    if code == 2 and re.search(r"\n\s*\n", err.strip()) and not any(word.startswith("--debug") for word in line):
        found.append("an error of several paragraphs")
    if "--json" in line and out.strip() and not {"--help", "-h", "--version"} & {*line}:
        try:
            json.loads(out, parse_constant=_refuse)
        except ValueError as error:
            found.append(f"stdout is not JSON ({error})")
    harmful = {
        sign for sign in out + err if unicodedata.category(sign) in {"Cc", "Cs", "Zl", "Zp"} and sign not in "\n\t"
    }
    if harmful:
        found.append(f"the output holds {sorted(harmful)}")
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def broken(content: bytes, luck: random.Random) -> bytes:
    """Return a file's content with a few faults: in its bytes, its words, its lines, or its tree of values."""
    for _ in range(luck.choice((1, 1, 1, 2, 4))):
        content = luck.choice((_bytes, _words, _words, _tree, _tree, _tree))(content, luck)
    return content


def _bytes(content: bytes, luck: random.Random) -> bytes:
    at, other = sorted((luck.randint(0, len(content)), luck.randint(0, len(content))))
    text = content.decode("utf-8", "replace")
    ways = [b"", content[:at], content[at:], content * 2, content[:at] + content[other:], b"\x00" * 100, b"\n" * 3000]
    ways += [content[:at] + luck.randbytes(8) + content[at:], luck.randbytes(64), b"\xef\xbb\xbf" + content]
    return luck.choice([*ways, text.encode("utf-16"), content.replace(b"\n", b"\r\n"), content[:at] + b"\xff"])


def _words(content: bytes, luck: random.Random) -> bytes:
    text = content.decode("utf-8", "surrogateescape")
    words = re.findall(r"\w+|\s+|[^\w\s]", text)
    lines = text.splitlines(keepends=True)
    if not words:
        return content
    at, other = luck.randrange(len(words)), luck.randrange(len(words))
    way = luck.randrange(5)
    if way == 0:
        words[at], words[other] = words[other], words[at]
    elif way == 1:
        words[at] = luck.choice([*NUMBERS, *TEXTS])
    elif way == 2:
        words[at : at + 1] = [words[at]] * luck.choice((0, 2, 500))
    else:
        line = lines.pop(luck.randrange(len(lines)))
        words = [*lines, *([line, line] if way == 3 else [])]
    return "".join(words).encode("utf-8", "surrogateescape")


def _tree(content: bytes, luck: random.Random) -> bytes:
    """Change a key or value of a JSON or YAML document; other files get another word."""
    try:
        tree = yaml.safe_load(content) if len(content) < 50_000 else None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict | list):
        return _words(content, luck)
    if luck.random() < 0.1:
        return luck.choice(
            (b"[" * 3000, b'{"a":' * 3000, b"null", b"&a [*a]\n", b"!!python/object/apply:os.abort []\n")
        )
    places = list(_places([tree]))
    for _ in range(luck.choice((1, 1, 2))):
        holder, key = luck.choice(places)
        if (isinstance(holder, dict) and key in holder) or (isinstance(holder, list) and key < len(holder)):
            if luck.random() < 0.25:
                del holder[key]
            else:
                holder[key] = luck.choice(NODES)
    try:
        return json.dumps(tree).encode()
    except (TypeError, ValueError):  # dates and other values that only YAML has
        return yaml.safe_dump(tree).encode("utf-8", "surrogatepass")


def _places(node: Any) -> Any:
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from _places(node[key])


def require_the_same_again(path: Path) -> None:
    """Raise Found where a file that can be read holds something else after it was written and read again."""
    try:
        first = pipeplan.read(path)
        pipeplan.save(first, path.parent / "again.json")
    except PipeplanError:
        return
    second = pipeplan.read(path.parent / "again.json")
    pairs = [(first, second)]
    if isinstance(first, Timeline) and isinstance(second, Timeline):
        if not (np.array_equal(first.start, second.start) and np.array_equal(first.end, second.end)):
            raise Found(f"times of {path.name} are others after they were written and read again")
        pairs = [(first.schedule, second.schedule)]
    for one, other in pairs:
        if not (isinstance(one, Schedule) and isinstance(other, Schedule) and one.columns == other.columns):
            raise Found(f"ops of {path.name} are others after they were written and read again")


COMMANDS = Suite(
    "commands",
    "command lines made from the commands' own options; how each ends",
    _attempt_command,
    sample=25,
)
FILES = Suite("files", "honest files, broken, and given to every command that reads them", _attempt_file, sample=25)
