"""The errands of docs/extending.md, done as they stand there on a copy of the package."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
BUILDS_ON = {"A cost": ("A setting",)}
"""Errands that go on from others."""

OTHERWISE = {
    "A move of the search": (
        {"PIPEPLAN_PURE_PYTHON": "1"},
        {"XDG_CACHE_HOME": "empty", "CC": "false"},
        {"XDG_CACHE_HOME": "empty", "CC": "", "PATH": ""},
    )
}
"""Environments in which what an errand tries goes on in the same way."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title, its text."""

    language: str
    title: str
    text: str


def errands() -> dict[str, list[Block]]:
    """The blocks under each heading."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return {
        heading: [Block(*(group or "" for group in match.groups())) for match in BLOCK.finditer(text)]
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def change(root: Path, block: Block) -> None:
    """Write a file, or change one as a diff says: its old lines must stand there once."""
    path = root / block.title
    if block.language == "python":
        assert not path.exists(), f"{path} is there already"
        path.write_text(block.text, encoding="utf-8")
        return
    lines = block.text.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path} has these lines {text.count(old)} times:\n{old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def commands(block: Block) -> Iterator[tuple[list[str], int]]:
    """The command lines of a block, as they run on the copy, and with what they exit."""
    for line in block.text.splitlines():
        command, _, remark = line.partition("#")
        tool, *arguments = shlex.split(command)
        yield [sys.executable, "-m", tool, *arguments], int(remark.removeprefix(" exits with ") or 0)


@pytest.mark.slow
@pytest.mark.parametrize("errand", errands())
def test_an_errand_does_what_its_recipe_says(errand: str, tmp_path: Path) -> None:
    recipes = errands()
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path / "src"),
        "COLUMNS": "120",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    blocks = [block for name in (*BUILDS_ON.get(errand, ()), errand) for block in recipes[name]]
    text, expected, ran = "", [], 0
    for block in blocks:
        if block.title == "try it":
            subprocess.run([sys.executable, "-c", block.text], cwd=tmp_path, env=environment, check=True)
            ran += 1
        elif block.title:
            change(tmp_path, block)
    for variables in OTHERWISE.get(errand, ()):
        for block in blocks:
            if block.title == "try it":
                command = [sys.executable, "-W", "ignore::RuntimeWarning", "-c", block.text]
                subprocess.run(command, cwd=tmp_path, env=environment | variables, check=True)
    for block in recipes[errand]:
        if block.language == "shell":
            for command, code in commands(block):
                done = subprocess.run(
                    command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
                )
                assert done.returncode == code, done.stderr + done.stdout
                text += done.stdout + done.stderr
                ran += 1
        elif block.language == "text":
            expected += block.text.splitlines()
    assert ran
    assert expected or not text
    assert [line for line in expected if line not in text] == [], text


def test_the_page_has_all_errands() -> None:
    assert list(errands()) == [
        "A plugin",
        "A strategy",
        "A format",
        "A trainer",
        "A recipe",
        "A rule",
        "A picture",
        "A move of the search",
        "A setting",
        "A cost",
        "A column of `compare`",
        "A figure of an answer",
        "A what-if",
        "A GPU",
        "A model type",
        "A model of costs",
    ]
