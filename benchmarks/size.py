"""How large the code is and how much of it one command uses: ``make size``.

Prints a table of counts: lines and files of the package, of its core and of each extension; the imports that tie the core to
extensions; the functions, files and CPU time of a cold ``simulate``; the options of two commands; the files that name one
command, trainer and kind of option; public names, ambiguous class names, and circles of imports.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "pipeplan"
PAGES = ROOT / "web_ui" / "src"
EXTENSIONS = PACKAGE / "extensions"
OPTION = "full_backward"
"""The option whose declarations are counted, as an example of all options."""

EXAMPLES = {"command": "calibrate", "kind of option": "duration", "trainer": "deepspeed"}
"""An example of each: a word that the files name which its like would touch."""

Graph = Mapping[str, Iterable[str]]


def main() -> None:
    """Print the table, then the names and circles behind its counts."""
    sources = sorted(PACKAGE.rglob("*.py"))
    lines = {path: _lines(path) for path in sources}
    short = [path for path, count in lines.items() if count <= 60 and path.name != "__init__.py"]
    trees = {path: ast.parse(path.read_text()) for path in sources}
    naming = {path: len(re.findall(rf".*\b{OPTION}\b", path.read_text())) for path in sources}
    ambiguous = _ambiguous_classes(trees)
    python_circles = circles(_python_imports(trees, local=False))
    local_circles = circles(_python_imports(trees, local=True))
    page_circles = circles(_page_imports())
    core = [path for path in sources if EXTENSIONS not in path.parents]
    rows = {
        "Python lines in src": f"{sum(lines.values()):,}",
        "Python files in src": len(sources),
        "core: lines / files": f"{sum(lines[path] for path in core):,} / {len(core)}",
        **{
            f"{folder.name}: lines / files": _size(lines, folder)
            for folder in sorted(EXTENSIONS.iterdir())
            if (folder / "extension.py").exists()
        },
        "imports from the core to extensions": _ties(trees),
        "of them with 60 lines or fewer, without __init__": len(short),
        "longest file in src": "{1} lines, {0}".format(
            *max(((_name(p), n) for p, n in lines.items()), key=lambda x: x[1])
        ),
        "longest function in src": "{} lines, {}".format(*max(_functions(trees))),
        "Python lines in tests": f"{sum(_lines(path) for path in (ROOT / 'tests').rglob('*.py')):,}",
        **_cold_simulate(),
        **_options(),
        **{f"files that name the {kind} {word}": _naming(trees, word) for kind, word in EXAMPLES.items()},
        "else of TYPE_CHECKING / defstruct": f"{_type_checking_else(trees)} / {_calls(trees, 'defstruct')}",
        f"lines / files of src that name {OPTION}": f"{sum(naming.values())} / {sum(map(bool, naming.values()))}",
        **_public(),
        "public class names defined more than once": len(ambiguous),
        "circles of imports, Python": len(python_circles),
        "the same with imports inside functions": len(local_circles),
        "circles of imports, TypeScript": len(page_circles),
    }
    width = max(map(len, rows))
    print("\n".join(f"{name:{width}}  {value}" for name, value in rows.items()))
    for name, places in sorted(ambiguous.items()):
        print(f"class {name}: {', '.join(places)}")
    for circle in (*local_circles, *page_circles):
        print(f"circle: {' '.join(circle)}")


def circles(graph: Graph) -> list[list[str]]:
    """Return the sets of two or more nodes that reach one another, each sorted (Tarjan 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            members = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(members) > 1:
                found.append(sorted(members))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    for node in sorted(graph):
        if node not in order:
            visit(node)
    sys.setrecursionlimit(limit)
    return sorted(found)


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def _size(lines: Mapping[Path, int], folder: Path) -> str:
    files = [path for path in lines if folder in path.parents]
    return f"{sum(lines[path] for path in files):,} / {len(files)}"


def _ties(trees: Mapping[Path, ast.Module]) -> int:
    """Count the imports of extensions in the core, for types and in functions too; ``runtime.py`` is training's door."""
    graph = _python_imports(trees, local=True)
    inner = {name for name in graph if name.startswith("pipeplan.extensions.")}
    return sum(len({*targets} & inner) for name, targets in graph.items() if name not in {*inner, "pipeplan.runtime"})


def _naming(trees: Mapping[Path, ast.Module], word: str) -> int:
    """Count the files that have this word as a text."""
    texts = {
        path: {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} for path, tree in trees.items()
    }
    return sum(word in values for values in texts.values())


def _type_checking_else(trees: Mapping[Path, ast.Module]) -> int:
    conditions = (node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.If))
    return sum(bool(node.orelse) and getattr(node.test, "id", "") == "TYPE_CHECKING" for node in conditions)


def _calls(trees: Mapping[Path, ast.Module], function: str) -> int:
    calls = (node.func for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Call))
    return sum(function in (getattr(called, "attr", ""), getattr(called, "id", "")) for called in calls)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _functions(trees: Mapping[Path, ast.Module]) -> Iterator[tuple[int, str]]:
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{_name(path)}:{node.name}"


def _ambiguous_classes(trees: Mapping[Path, ast.Module]) -> dict[str, list[str]]:
    places = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    return {name: files for name, files in places.items() if len(files) > 1}


def _python_imports(trees: Mapping[Path, ast.Module], *, local: bool) -> Graph:
    """Return which module imports which, for types too, and inside functions where ``local``."""
    modules = {_module(path): tree for path, tree in trees.items()}
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, tree in modules.items():
        for node in _nodes(tree, local):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                members = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = [member if member in modules else node.module for member in members]
            else:
                continue
            graph[name].update(target for target in targets if target in modules and target != name)
    return graph


def _nodes(node: ast.AST, local: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if local or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _nodes(child, local)


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _page_imports() -> Graph:
    """Return which TypeScript file of the pages names which; imports of types count."""
    graph = {}
    for path in sorted(PAGES.rglob("*.ts")):
        if path.name.endswith((".test.ts", ".d.ts")):
            continue
        named = re.findall(r"""(?:\bfrom|^import|\bimport\()\s*["'](\.[^"']+)["']""", path.read_text(), re.MULTILINE)
        targets = [(path.parent / target).resolve() for target in named]
        files = [target if target.suffix == ".ts" else target.with_suffix(".ts") for target in targets]
        graph[str(path.relative_to(PAGES))] = [str(file.relative_to(PAGES)) for file in files if file.is_file()]
    return graph


def _public() -> dict[str, object]:
    # Imported here, so that the process of the cold simulate has not loaded them.
    from docs.build.python_pages import public_names
    from pipeplan import Result

    return {
        "public names": len(public_names()),
        "attributes of Result": sum(not name.startswith("_") for name in dir(Result)),
    }


def _options() -> dict[str, object]:
    """Return the number of options of two commands: all, and those that the first view of help shows."""
    counts = (f"{_shown(name, '--help-all')} / {_shown(name, '--help')}" for name in ("simulate", "search"))
    return {"options / in the first view: simulate; search": "; ".join(counts)}


def _shown(command: str, extent: str) -> int:
    """Count the options in a help text: lines of its panels that begin with one."""
    words = [sys.executable, "-m", "pipeplan", command, extent]
    environment = os.environ | {"COLUMNS": "300"}
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return len(re.findall(r"^│ +(?:\* +)?--", done.stdout, re.MULTILINE))


def _cpu(*command: str) -> float:
    """Return the least CPU time of a command in seven processes, in seconds."""
    times = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def _cold_simulate() -> dict[str, object]:
    """Return what ``simulate -p 4 -m 8 --json`` uses, measured in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.size", "simulate"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    functions, files, modules, built, checks = done.stdout.split()
    simulate = _cpu("-m", "pipeplan", "simulate", "-p", "4", "-m", "8", "--json")
    numpy = _cpu("-c", "import numpy")
    return {
        "functions / files / modules of ours in a cold simulate": f"{functions} / {files} / {modules}",
        "settings built / checks in it": f"{built} / {checks}",
        "its CPU time against that of import numpy": f"{simulate / numpy:.2f} times",
    }


def _profile_simulate() -> None:
    codes = set()
    calls: dict[str, int] = defaultdict(int)

    def see(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code.co_filename.startswith(str(PACKAGE)):
            codes.add(code)
            calls[code.co_qualname] += 1
        elif code.co_name == "__init__" and type(frame.f_locals.get("self")).__name__ == "Settings":
            calls["built"] += 1

    sys.path.insert(0, str(PACKAGE.parent))
    with contextlib.redirect_stdout(io.StringIO()):
        sys.setprofile(see)
        from pipeplan.cli import main as command

        command(["simulate", "-p", "4", "-m", "8", "--json"])
        sys.setprofile(None)
    functions = sum(code.co_name != "<module>" for code in codes)
    files = len({code.co_filename for code in codes})
    modules = sum(name.partition(".")[0] == "pipeplan" for name in sys.modules)
    print(functions, files, modules, calls["built"], calls["check_value"])


if __name__ == "__main__":
    if sys.argv[1:] == ["simulate"]:
        _profile_simulate()
    else:
        main()
