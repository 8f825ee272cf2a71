"""What commands do here: each with its inputs, its outputs and how it ends where nothing disturbs it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from pipeplan.api.outputs import all_formats, export_formats
from tests.torture.box import MARK
from tests.torture.forked import Ran, judged, ran
from tests.torture.machine.conditions import Conditions
from tests.torture.suite import Found

SHAPE = ("-p", "2", "-m", "4")
"""Small: hundreds of commands a minute."""

_CONFIGURATION = "model: gpt2\ncluster: h100-sxm:4x1\nglobal_batch: 8\nsequence: 512\npipeline: 2\ndata: 2\n"
_PLAN = (
    *("plan", "--model", "gpt2", "--cluster", "h100-sxm:4x1", "--global-batch", "8", "--sequence", "512"),
    *("--fix", "tp=1", "--fix", "pp=2", "--fix", "dp=2", "--fix", "schedule=1f1b", "--fix", "mbs=1", "--fix", "vpp=1"),
    *("--fix", "recompute=none", "--fix", "offload=0", "--fix", "zero=1", "--seconds", "600", "--json"),
)
_SEARCH = ("search", *SHAPE, "--evaluations", "150", "--json")

Content = str | bytes


@dataclass(frozen=True)
class Errand:
    """A command line that an honest user might type.

    Attributes
    ----------
    arguments
        What stands behind ``pipeplan``; files are named as seen from the working folder.
    outputs
        The files that it names as outputs.
    named
        Further files that these name, and that are written beside them.
    inputs
        What it reads, by name.
    store
        A file that keeps what is finished; empty: none.
    measures
        Whether its answer is a measurement, which differs each time.
    betters
        Whether its outputs and its answer are the best so far where it is ended early: whole, but of less work.
    code
        How it ends where nothing disturbs it.
    """

    arguments: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict, hash=False)
    store: str = ""
    measures: bool = False
    betters: bool = False
    code: int = 0

    @property
    def written(self) -> tuple[str, ...]:
        """Every file that it writes, but the store."""
        return (*self.outputs, *self.named)

    def lay_out(self, folder: Path) -> None:
        """Put what it reads into a folder."""
        for name, content in self.inputs.items():
            (folder / name).write_text(content)


def _to(command: Sequence[str], *outputs: str, **more: Any) -> Errand:
    return Errand((*command, *(each for output in outputs for each in ("-o", output))), outputs, **more)


def _beside(name: str) -> tuple[str, ...]:
    """What a trainer's settings name: the schedule itself."""
    return (f"{name.partition('.')[0]}.torchtitan.csv",) if ".torchtitan." in name else ()


@cache
def quick() -> tuple[Errand, ...]:
    """Those of one process, a tenth of a second to one and a half each: one for each format that a file can be of."""
    simulate, compare = ("simulate", "1f1b", *SHAPE, "--json"), ("compare", "1f1b", "gpipe", *SHAPE, "--json")
    endings = tuple(each.ending for each in all_formats().values() if each.writers.keys() & {"timeline", "schedule"})
    zbv = ("simulate", "zbv", *SHAPE, "--json")
    wide = {ending for ending in endings if ".zb" in ending}
    schedule = {"in.json": _schedule()}
    return (
        *(
            _to(
                zbv if ending in wide else simulate,
                f"a{ending}",
                named=_beside(f"a{ending}"),
            )
            for ending in endings
        ),
        _to(simulate, "a.json", "b.svg", "c.trace.json"),
        *(_to(compare, f"a{ending}") for ending in (".svg", ".html", ".txt", ".json")),
        *(
            Errand(
                ("convert", "in.json", f"a{each.ending}"), (f"a{each.ending}",), _beside(f"a{each.ending}"), schedule
            )
            for each in export_formats().values()
            if "schedule" in each.writers and each.ending not in wide
        ),
        *(
            _to(
                ("export", "zbv" if each.ending in wide else "1f1b", *SHAPE, "--to", each.name),
                f"a{each.ending}",
                named=_beside(f"a{each.ending}"),
            )
            for each in export_formats().values()
            if each.writers.keys() & {"schedule", "timeline", "costs"}
        ),
        _to(("diff", "1f1b", "in.json", *SHAPE), "a.html", "b.json", inputs=schedule),
        _to((*_SEARCH, "--workers", "1"), "a.json", betters=True),
        Errand(("explain", "1f1b", *SHAPE)),
        Errand(("check", "in.json"), inputs=schedule),
        Errand(("schedules",)),
    )


@cache
def kept() -> tuple[Errand, ...]:
    """Those with processes of their own and a file that keeps what is finished: one to four seconds each."""
    searches, front = ("--searches", "3", "--workers", "2"), ("--pareto", "--points", "3", "--workers", "2")
    return (
        _to((*_SEARCH, *searches, "--store", "kept.db"), "a.json", store="kept.db", betters=True),
        _to((*_SEARCH, *front, "--store", "kept.db"), "a.json", store="kept.db", betters=True),
        _to((*_SEARCH, *front, "--store", "kept.db"), "a.svg", store="kept.db", betters=True),
        _to(
            ("estimate", "in.yaml", "--workers", "2", "--store", "kept.db", "--json"),
            "a.json",
            store="kept.db",
            inputs={"in.yaml": _CONFIGURATION},
        ),
        _to((*_PLAN, "--workers", "2", "--store", "kept.db"), "a.json", store="kept.db", betters=True),
    )


@cache
def trained() -> tuple[Errand, ...]:
    """Those of a process a rank, with PyTorch: ten seconds each."""
    tiny = ("-p", "2", "-m", "2")
    return (
        _to(("run", *tiny, "--steps", "1", "--warmup", "0", "--json"), "a.json", "b.svg", measures=True),
        _to(("profile", *tiny, "--repeats", "1", "--json"), "a.yaml", measures=True),
    )


@cache
def _schedule() -> str:
    """A schedule as a file, made by the command line itself."""
    folder = _reference("schedule")
    ended = ran(("simulate", "1f1b", *SHAPE, "--json", "-o", "in.json"), folder)
    judged(ended)
    return (folder / "in.json").read_text()


@dataclass(frozen=True)
class Undisturbed:
    """How an errand ends where nothing disturbs it.

    Attributes
    ----------
    ended
        Its end.
    answer
        What it says on stdout, told so that two are equal if they say the same.
    contents
        Of its outputs, by name, told the same way.
    moments
        How often it touches a file of its folder or starts a process.
    """

    ended: Ran
    answer: Content
    contents: Mapping[str, Content]
    moments: int


_KNOWN: dict[tuple[str, ...], Undisturbed] = {}


def undisturbed(errand: Errand) -> Undisturbed:
    """Found once a process for each errand. Raises Found where an honest errand does not end well."""
    known = _KNOWN.get(errand.arguments)
    if known is None:
        folder = _reference(f"errand{len(_KNOWN)}")
        errand.lay_out(folder)
        counted = folder.with_suffix(".counted")
        conditions = Conditions(watched=str(folder), counted=str(counted))
        ended = ran(errand.arguments, folder, seconds=120, prepare=conditions.asked())
        judged(ended)
        if ended.code != errand.code:
            raise Found(f"an honest command ends with {ended.code} ({ended.stderr.strip()!r}): {ended.line}")
        contents = {name: told(name, (folder / name).read_bytes()) for name in errand.written}
        answer = answer_of(errand, ended.out)
        moments = int(counted.read_text()) if counted.exists() else 0
        known = _KNOWN[errand.arguments] = Undisturbed(ended, answer, contents, moments)
    return known


def _reference(name: str) -> Path:
    """An empty folder of this box, beside those of the cases; one for each process that tries cases."""
    import os

    folder = Path(os.environ[MARK]) / "undisturbed" / f"{os.getpid()}-{name}"
    folder.mkdir(parents=True)
    return folder


def told(name: str, content: bytes) -> Content:
    """What a file says, without the seconds that it took to find: two that say the same are equal."""
    if not name.endswith(".json"):
        return content
    return json.dumps(_without_seconds(json.loads(content)), sort_keys=True)


def answer_of(errand: Errand, out: bytes) -> Content:
    """What a command has said on stdout, told the same way. Raises Found where it is cut off."""
    try:
        return told("a.json" if "--json" in errand.arguments else "a.txt", out)
    except ValueError:
        raise Found(f"its answer is cut off after {len(out)} bytes: {errand.arguments[0]}") from None


def _without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_seconds(each) for name, each in value.items() if name != "seconds"}
    return [_without_seconds(each) for each in value] if isinstance(value, list) else value


def chosen(rng: Random, *kinds: tuple[Callable[[], tuple[Errand, ...]], float]) -> Errand:
    """An errand of one of several kinds, each with its weight."""
    (kind,) = rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])
    return rng.choice(kind())
