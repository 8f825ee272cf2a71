"""Pages that are run: every command and example that they show, with what it prints.

A page is Markdown, and what is run of it can be read off its blocks. All of a page's blocks share an empty folder, in order:

=================================  ====================================================================================
a block of                         is
=================================  ====================================================================================
``console``                        lines that start with ``$`` run, in bash; beneath each stands what it prints, which
                                   is compared
``python``                         run, with the names of the page's earlier blocks; a block of ``text`` right behind it
                                   is what it prints
anything with ``title="NAME"``     written to that file
``shell`` and all others           not run
=================================  ====================================================================================

A comment right before a block changes that: ``<!-- not run -->``; ``<!-- exits 1 -->``; ``<!-- shows 1-9, 14 -->`` for the
lines of its output that the page has, with ``...`` where some are left out; ``<!-- numbers vary -->`` where only words are
compared; ``<!-- output varies -->`` where nothing is. ``<!-- before: COMMAND -->`` anywhere runs a command that no reader
needs, with the repository in ``$ROOT``.

``python -m docs.build.executed PAGE ...`` compares, and with ``--write`` puts what is printed now into the pages. Files that
the commands leave behind are in the site: a page ``tutorials/first.md`` shows them as ``made/first/NAME``.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from docs.build import pictures
from docs.build.kept import EVERYTHING, digest

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "pages"
"""What the commands of each page left behind, until the page or the package changes."""

DIGITS = 16
COLUMNS = 80
SECONDS = 300
"""How wide the terminal is, and how long a command may take."""

BLOCK = re.compile(
    r"(?P<notes>(?:^<!--[^\n]*-->\n)*)^```(?P<kind>\w+)(?P<more>[^\n]*)\n(?P<text>.*?)^```[ ]*$"
    r"|^<!-- before: (?P<before>[^\n]*?) -->$",
    re.DOTALL | re.MULTILINE,
)
PROGRESS = re.compile(r"^.* \(\d{1,3}%\)\n", re.MULTILINE)
"""How far a command is: a line that comes now and then where it takes long, and is no output."""

QUICK = re.compile(
    r"pipeplan ((?:check|compare|diff|estimate|explain|export|list|review|simulate)\b[^|&;<>$`*?(){}~]*)"
)
"""Commands that run in this process: they start no others, and need nothing of bash."""

BEFORE = re.compile(r"<!-- before: (.*?) -->")


@dataclass(frozen=True, slots=True)
class Notes:
    """What the comments right before a block say about it."""

    skipped: bool = False
    code: int = 0
    shown: str = ""
    numbers: bool = True
    compared: bool = True

    @classmethod
    def of(cls, text: str) -> Notes:
        """The notes in a run of comments."""
        shown, code = re.search(r"<!-- shows (.*?) -->", text), re.search(r"<!-- exits (\d+) -->", text)
        return cls(
            skipped="<!-- not run -->" in text,
            code=int(code.group(1)) if code else 0,
            shown=shown.group(1) if shown else "",
            numbers="<!-- numbers vary -->" not in text,
            compared="<!-- output varies -->" not in text,
        )

    def of_output(self, text: str) -> str:
        """The part of an output that the page shows."""
        if not self.shown:
            return text
        lines, kept = text.splitlines(), list[str]()
        last = 0
        for part in self.shown.split(","):
            first, _, final = part.strip().partition("-")
            end = int(final) if final else int(first)
            kept += ["..."] * (int(first) > last + 1) + lines[int(first) - 1 : end]
            last = end
        return "\n".join([*kept, *(["..."] if last < len(lines) else [])]) + "\n"

    def same(self, expected: str, printed: str) -> bool:
        """Whether an output is what the page says, as far as the notes compare it."""
        return not self.compared or self._as_compared(expected) == self._as_compared(printed)

    def _as_compared(self, text: str) -> str:
        text = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
        if self.numbers:
            return text
        return re.sub(r"[ ─━]+", " ", re.sub(r"[-+]?\d[\d,.]*", "#", text))


@dataclass(slots=True)
class Run:
    """A page's blocks, run one after the other in a folder."""

    folder: Path
    faults: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def page(self, text: str) -> str:
        """Run a page; the text is given back with what was printed in the place of what it said."""
        written, at = [], 0
        blocks = list(BLOCK.finditer(text))
        for number, block in enumerate(blocks):
            start = text.count("\n", 0, block.start()) + 1
            for command in BEFORE.findall(block.group(0)):
                self._shell(command, Notes(), start)
            if block["kind"] is None:
                continue
            notes, body = Notes.of(block["notes"]), block["text"]
            behind = blocks[number + 1] if number + 1 < len(blocks) else None
            title = re.search(r'title="([^"]+)"', block["more"])
            where = block.span("text")
            if notes.skipped:
                continue
            if title is not None:
                (self.folder / title.group(1)).write_text(body, encoding="utf-8")
            elif block["kind"] == "console":
                written += [text[at : where[0]], self._console(body, notes, start)]
                at = where[1]
            elif block["kind"] == "python":
                printed = self._python(body, notes, start)
                if behind is None or behind["kind"] != "text" or text[block.end() : behind.start()].strip():
                    continue
                about, where = Notes.of(block["notes"] + behind["notes"]), behind.span("text")
                written += [
                    text[at : where[0]],
                    self._settled(behind["text"], printed, about, "the example above", start),
                ]
                at = where[1]
        return "".join([*written, text[at:]])

    def _console(self, body: str, notes: Notes, line: int) -> str:
        parts = []
        for command, expected in _commands(body):
            printed = self._shell(command, notes, line)
            parts += [f"$ {command}\n", self._settled(expected, printed, notes, command, line)]
        return "".join(parts)

    def _settled(self, expected: str, printed: str, notes: Notes, what: str, line: int) -> str:
        """What the page should say: what it says, where that is still true."""
        shown = notes.of_output(printed)
        if notes.same(expected, shown):
            return expected
        lines = difflib.unified_diff(expected.splitlines(), shown.splitlines(), "the page", "printed", lineterm="", n=1)
        self.faults.append(f"line {line}: {what}\n" + "\n".join(lines))
        return "".join(f"{each.rstrip()}\n" for each in shown.strip("\n").splitlines())

    def _shell(self, command: str, notes: Notes, line: int) -> str:
        environment = {
            **{name: value for name, value in os.environ.items() if name not in {"FORCE_COLOR", "PYTHONWARNINGS"}},
            "COLUMNS": str(COLUMNS),
            "NO_COLOR": "1",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            "ROOT": str(ROOT),
            "TERM": "dumb",
        }
        here = QUICK.fullmatch(command.replace("\\\n", " "))
        code, printed = (
            self._in_process(shlex.split(here.group(1)), environment) if here else self._in_bash(command, environment)
        )
        printed = PROGRESS.sub("", printed.replace(f"{self.folder}/", ""))
        if code != notes.code:
            self.faults.append(f"line {line}: {command}\nexits with {code}, not {notes.code}\n{printed}")
        return printed

    def _in_process(self, arguments: list[str], environment: dict[str, str]) -> tuple[int, str]:
        from pipeplan.cli import main as command_line

        printed = io.StringIO()
        with (
            contextlib.chdir(self.folder),
            patch.dict(os.environ, environment, clear=True),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            return command_line(arguments), printed.getvalue()

    def _in_bash(self, command: str, environment: dict[str, str]) -> tuple[int, str]:
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
        return ended.returncode, ended.stdout.decode()

    def _python(self, source: str, notes: Notes, line: int) -> str:
        printed = io.StringIO()
        try:
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
                exec(compile(source, f"the example in line {line}", "exec"), self.names)
        except Exception:
            self.faults.append(f"line {line}: the example in Python ends early\n{traceback.format_exc()}")
        return printed.getvalue()


def _commands(body: str) -> Iterator[tuple[str, str]]:
    """The commands of a block of ``console``, continued by a backslash, each with the output beneath it."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        end = next(number for number, line in enumerate(lines) if not line.rstrip("\n").endswith("\\"))
        yield "".join(lines[: end + 1]).rstrip("\n"), "".join(lines[end + 1 :])


def run(page: Path) -> tuple[str, list[str]]:
    """Run a page, and keep what its commands leave behind for the site.

    Returns
    -------
    tuple
        The page with what was printed, and a paragraph for each place where that is not what it says.
    """
    text = page.read_text(encoding="utf-8")
    with TemporaryDirectory() as folder:
        ran = Run(Path(folder).resolve())
        written = ran.page(text)
        kept = _kept(page)
        for earlier in KEPT.glob(f"{page.parent.name}-{page.stem}-{'?' * DIGITS}"):
            shutil.rmtree(earlier)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder, kept, symlinks=True)
    undrawn = [name for name in pictures.shown_by(page) if not (kept / f"{name}.svg").is_file()]
    return written, [*ran.faults, *(f"the page shows {name}.webp, but no command draws {name}.svg" for name in undrawn)]


def pages() -> list[Path]:
    """The pages of the documentation, README and the skills of agents that have blocks to run as ``console``."""
    folders = (page for folder in ("docs", "skills") for page in sorted((ROOT / folder).rglob("*.md")))
    return [page for page in (ROOT / "README.md", *folders) if "```console\n" in page.read_text(encoding="utf-8")]


def pages_with_files() -> list[Path]:
    """Return the pages that show files which their commands make, and which the repository does not keep."""
    return [page for page in pages() if _files_of(page)]


def _files_of(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    names = sorted(set(re.findall(rf"\bmade/{re.escape(page.stem)}/([\w.+-]*\w)", text)))
    return [name for name in names if not (page.parent / "made" / page.stem / name).is_file()]


def left_behind(page: Path) -> Iterator[tuple[str, bytes]]:
    """The files that a page shows of what its commands made: their paths beside the page, and what they hold.

    Raises
    ------
    FileNotFoundError
        For a file that no command of the page makes, with what went wrong there.
    """
    names = _files_of(page)
    if not names:
        return
    faults = [] if _kept(page).is_dir() else run(page)[1]
    for name in names:
        path = _kept(page) / name
        if not path.is_file():
            raise FileNotFoundError("\n\n".join([f"{page}: no command made {name}", *faults]))
        yield f"made/{page.stem}/{name}", path.read_bytes()


def _kept(page: Path) -> Path:
    """Return the folder for the files that a page's commands write: a new one if its blocks or the package changed."""
    blocks = "\n".join(block.group(0) for block in BLOCK.finditer(page.read_text(encoding="utf-8")))
    hashed = hashlib.sha256(f"{blocks}\n{digest(Path(__file__), *EVERYTHING)}".encode()).hexdigest()
    return KEPT / f"{page.parent.name}-{page.stem}-{hashed[:DIGITS]}"


def main() -> int:
    """Compare pages with what their commands print, or write it into them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, help="all, where none is given")
    parser.add_argument(
        "--write", action="store_true", help="put what is printed now into the pages, and their pictures anew"
    )
    parser.add_argument("--pictures", action="store_true", help="draw the pictures anew that the pages show")
    options = parser.parse_args()
    wrong = 0
    for page in options.pages or pages():
        written, faults = run(page.resolve())
        wrong += bool(faults)
        if options.write or options.pictures:
            pictures.write(pictures.made_by(page.resolve(), _kept(page.resolve())))
        print(f"{page}: {len(faults) or 'nothing'} to say", *faults, sep="\n\n" if faults else "\n")
        if options.write:
            page.write_text(written, encoding="utf-8")
    return 1 if wrong and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
