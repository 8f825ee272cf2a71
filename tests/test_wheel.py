"""The wheel and the sdist as they are published: what is in them, and that they run in a bare environment.

``make wheel`` builds one with kernels for all platforms. Environments are made anew, filled from the package registry, and
find no C compiler. Tests that end in ``lowest`` run the same commands, and those of the README, with the lowest releases
that are declared; ``make lowest`` runs them alone, with kernels for this machine.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from pipeplan.foundation.compiling.compiler import TARGETS, file_name

if "PIPEPLAN_WHEEL" not in os.environ:
    pytest.skip("the wheel is installed where it is built: make wheel", allow_module_level=True)

ROOT = Path(__file__).parents[1]
SMALL = ("-p", "4", "-m", "8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WITHOUT_PYTORCH = sorted(PROJECT["optional-dependencies"].keys() - {"all", "pytorch"})

LIBRARIES = "pipeplan/foundation/kernels/libraries"
ALL_PLATFORMS = os.environ.get("PIPEPLAN_PLATFORMS") == "all"

EPOCH = os.environ.get("SOURCE_DATE_EPOCH", "1700000000")


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The commands of a new environment with what builds and checks packages."""
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [folder / "bin" / "pip", "install", "--quiet"]
    subprocess.run([*install, "build", "hatchling", "twine", "uv"], check=True)
    needed = "from hatchling.build import *; print(*get_requires_for_build_wheel())"
    more = subprocess.run(
        [folder / "bin" / "python", "-c", needed], cwd=ROOT, capture_output=True, text=True, check=True
    )
    if more.stdout.split():
        subprocess.run([*install, *more.stdout.split()], check=True)
    return folder / "bin"


def build(tools, source, folder, *options, **environment):
    """Build into a folder: the sdist, and the wheel from it, unless ``options`` choose one."""
    command = [tools / "python", "-m", "build", "--no-isolation", "--outdir", folder, *options, source]
    # Zig keeps what it compiles in a cache, which saves a build of the same files a minute.
    variables = os.environ | {"SOURCE_DATE_EPOCH": EPOCH, "ZIG_GLOBAL_CACHE_DIR": str(tools / "zig")} | environment
    subprocess.run(command, check=True, env=variables, stdout=subprocess.DEVNULL)
    return {path.suffix: path for path in folder.glob("pipeplan-*")}


@pytest.fixture(scope="module")
def published(tools):
    """The files that are published, by suffix."""
    folder = ROOT / os.environ["PIPEPLAN_WHEEL"]
    for earlier in folder.glob("pipeplan-*"):
        earlier.unlink()
    return build(tools, ROOT, folder)


@pytest.fixture(scope="module")
def wheel(published):
    return published[".whl"]


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    """The commands of a new environment that holds the wheel and what it needs."""
    commands = new_environment(tmp_path_factory.mktemp("bare"))
    subprocess.run([commands / "pip", "install", "--quiet", wheel], check=True)
    return commands


@pytest.fixture(scope="module")
def with_extras(wheel, bare, tools):
    """The same environment, later, with the extras ``web`` and ``search``; PyTorch's is as large as a release is."""
    command = ["pip", "install", "--quiet", "--python", bare / "python", f"{wheel}[search,web]"]
    subprocess.run([tools / "uv", *command], check=True)
    return bare


@pytest.fixture(scope="module")
def lowest_releases(tools, tmp_path_factory):
    """A file with the lowest releases that are declared, of all extras but PyTorch's."""
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the lowest releases are for the lowest Python, 3.11")
    file = tmp_path_factory.mktemp("releases") / "lowest.txt"
    extras = [word for extra in WITHOUT_PYTORCH for word in ("--extra", extra)]
    command = ["pip", "compile", "--quiet", "--resolution", "lowest-direct", *extras, "--output-file", file]
    subprocess.run([tools / "uv", *command, ROOT / "pyproject.toml"], check=True)
    return file


@pytest.fixture(scope="module")
def lowest(wheel, lowest_releases, tools, tmp_path_factory):
    """The commands of a new environment with the wheel and these releases."""
    commands = new_environment(tmp_path_factory.mktemp("lowest"))
    package = f"pipeplan[{','.join(WITHOUT_PYTORCH)}] @ {wheel.resolve().as_uri()}"
    command = ["pip", "install", "--quiet", "--python", commands / "python", "--constraint", lowest_releases]
    subprocess.run([tools / "uv", *command, package], check=True)
    return commands


def new_environment(folder):
    """Return the folder of a new environment's commands. Beside them are the programs that pages use: no compiler."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    for name in ("bash", "grep"):
        (folder / "bin" / name).symlink_to(shutil.which(name))
    return folder / "bin"


def unpacked(sdist, folder):
    """Return the folder of an sdist's files, which are written into a folder that only this user may read."""
    folder.mkdir(mode=0o700, exist_ok=True)
    with tarfile.open(sdist) as opened:
        opened.extractall(folder, filter="data")
    return next(folder.iterdir())


def metadata_of(wheel):
    with zipfile.ZipFile(wheel) as opened:
        name = next(name for name in opened.namelist() if name.endswith("METADATA"))
        return Parser().parsestr(opened.read(name).decode())


def ran(program, *arguments, folder, code=0):
    """Run a program that finds those of its environment alone."""
    environment = {"HOME": os.environ.get("HOME", str(folder)), "PATH": str(Path(program).parent)}
    ended = subprocess.run(
        [program, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout if code == 0 else ended.stderr


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        licences = [name for name in opened.namelist() if "/licenses/" in name]
    files = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    sources = {name for name in files if not name.startswith(LIBRARIES) and not name.endswith(".pyc")}
    built = {f"{LIBRARIES}/{name}" for name in ("built.txt", *(TARGETS if ALL_PLATFORMS else [file_name()]))}
    assert names == sources | built
    assert wheel.name.endswith("-py3-none-any.whl") == ALL_PLATFORMS
    assert [Path(name).name for name in licences] == ["LICENSE"]
    assert "pipeplan/drawing/html/assets/timeline.licences.txt" in names
    about = metadata_of(wheel)
    assert set(about.get_all("Provides-Extra", [])) == {"all", "cluster", "mcp", "pandas", "pytorch", "search", "web"}
    assert about["Description-Content-Type"] == "text/markdown"
    assert wheel.stat().st_size < 2.5e6


def test_a_build_gives_the_same_bytes_again(published, tools, tmp_path):
    """Elsewhere, later, by a user with other permissions, from a C file that is written anew."""
    sdist = unpacked(published[".gz"], tmp_path / "copy")
    (sdist / "kernels.c").unlink()
    for path in sdist.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path)
    again = build(tools, sdist, tmp_path, "--wheel", "--sdist", PIPEPLAN_REPOSITORY="")
    assert {suffix: path.read_bytes() for suffix, path in again.items()} == {
        suffix: path.read_bytes() for suffix, path in published.items()
    }


def test_a_build_without_the_detour_over_the_sdist_gives_the_same_bytes(published, tools, tmp_path):
    sources = {"direct": ROOT, "detour": unpacked(published[".gz"], tmp_path / "copy")}
    direct, detour = (
        build(tools, source, tmp_path / name, "--wheel", PIPEPLAN_PLATFORMS="none")[".whl"].read_bytes()
        for name, source in sources.items()
    )
    assert direct == detour


@pytest.mark.skipif(not ALL_PLATFORMS, reason="another compiler than ziglang compiles the kernels of this machine")
def test_ziglang_gives_the_same_bytes_without_its_cache(published, tools, tmp_path):
    """With the C library and all that it builds beside the kernels built anew."""
    sdist = unpacked(published[".gz"], tmp_path)
    program = (
        "from pathlib import Path; from pipeplan.foundation.compiling.compiler import ZIG, compile_library;"
        f"compile_library(Path('kernels.c').read_text(encoding='utf-8'), Path('{file_name()}').absolute(), ZIG)"
    )
    cold = os.environ | {"PYTHONPATH": str(sdist / "src"), "ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "zig")}
    subprocess.run([tools / "python", "-c", program], cwd=sdist, env=cold, check=True)
    with zipfile.ZipFile(published[".whl"]) as opened:
        assert (sdist / file_name()).read_bytes() == opened.read(f"{LIBRARIES}/{file_name()}")


def test_the_c_file_of_the_sdist_is_compiled_unless_a_kernel_was_changed(published, tools, tmp_path):
    sdist = unpacked(published[".gz"], tmp_path)

    def library(name):
        wheel = build(tools, sdist, tmp_path / name, "--wheel", PIPEPLAN_PLATFORMS="this")[".whl"]
        with zipfile.ZipFile(wheel) as opened:
            return opened.read(f"{LIBRARIES}/{file_name()}")

    with (sdist / "kernels.c").open("a", encoding="utf-8") as c_file:
        c_file.write('EXPORT const char of_the_sdist[] = "";\n')
    assert b"of_the_sdist" in library("first")
    kernel = next((sdist / "src").rglob("*_kernel.py"))
    kernel.write_text(kernel.read_text(encoding="utf-8") + "\n\ndef more(number: int) -> int:\n    return number\n")
    assert b"of_the_sdist" not in library("second")


def test_a_build_that_finds_no_compiler_brings_one(tools, tmp_path):
    """In an environment of its own, as pip builds what it installs."""
    environment = {name: value for name, value in os.environ.items() if name not in {"CC", "PIPEPLAN_PLATFORMS"}}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT]
    subprocess.run(command, env=environment | {"PATH": "", "ZIG_GLOBAL_CACHE_DIR": str(tools / "zig")}, check=True)
    (wheel,) = tmp_path.iterdir()
    with zipfile.ZipFile(wheel) as opened:
        assert f"{LIBRARIES}/{file_name()}" in opened.namelist()


def test_where_no_compiler_works_the_wheel_is_pure_python_and_says_so(tools, bare, tmp_path):
    failing = tmp_path / "failing-cc"
    failing.write_text("#!/bin/sh\necho 'error: the disk is full' >&2\nexit 1\n")
    failing.chmod(0o755)
    wheel = build(tools, ROOT, tmp_path, "--wheel", PIPEPLAN_PLATFORMS="this", CC=str(failing))[".whl"]
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as opened:
        assert [name for name in opened.namelist() if name.startswith(LIBRARIES)] == [f"{LIBRARIES}/not_built.txt"]
        opened.extractall(tmp_path / "package")
    # The current folder comes before what is installed.
    program = "from pipeplan.cli import main; main()"
    search = ("search", *SMALL, "--evaluations", "500", "--workers", "1", "--json")
    command = [bare / "python", "-c", program, *search]
    ended = subprocess.run(command, cwd=tmp_path / "package", capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout)["makespan"] > 0
    assert ended.stderr.count(f"{failing}: error: the disk is full") == 1


def test_the_description_renders_and_its_links_lead_to_the_repository(published, tools, tmp_path):
    subprocess.run([tools / "twine", "check", "--strict", *published.values()], check=True)
    address = "https://git.example.org/team/pipeplan/"
    linked = build(tools, ROOT, tmp_path, "--wheel", PIPEPLAN_REPOSITORY=address, PIPEPLAN_PLATFORMS="none")[".whl"]
    plain = build(tools, ROOT, tmp_path / "plain", "--wheel", PIPEPLAN_REPOSITORY="", PIPEPLAN_PLATFORMS="none")[".whl"]
    subprocess.run([tools / "twine", "check", "--strict", linked, plain], check=True)
    targets = re.compile(r"\]\(([^)#]+)\)")
    assert targets.findall(metadata_of(plain).get_payload()) == []
    about = metadata_of(linked)
    addresses = targets.findall(about.get_payload())
    assert len(addresses) > 15
    for address in [*addresses, *(line.split(", ")[1] for line in about.get_all("Project-URL"))]:
        base, _, path = address.partition("/HEAD/")
        assert base.startswith("https://git.example.org/team/pipeplan")
        assert path == "" or (ROOT / path).exists()


def test_the_extra_of_the_search_brings_nothing_for_a_gpu(wheel, tools, tmp_path):
    needed = tmp_path / "needed.in"
    needed.write_text(f"pipeplan[search] @ {wheel.resolve().as_uri()}\n")
    command = [tools / "uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", needed]
    resolved = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^[\w.-]+", resolved.lower(), re.MULTILINE))
    assert "ortools" in names
    assert [name for name in names if re.search("cuda|cudnn|nvidia|rocm|torch|triton|tensorflow|jax", name)] == []


def test_it_runs_without_extras(bare, tmp_path):
    answers_commands(bare / "pipeplan", tmp_path)


def test_the_commands_of_the_readme_run_without_extras(bare, tmp_path):
    runs_the_readme(bare / "python", tmp_path)


def test_its_kernels_are_machine_code(bare, tmp_path):
    program = "from pipeplan.foundation.kernels.library import loaded_library; print(loaded_library())"
    assert file_name() in ran(bare / "python", "-W", "error", "-c", program, folder=tmp_path)


def test_it_runs_with_the_lowest(lowest, tmp_path):
    answers_commands(lowest / "pipeplan", tmp_path)


def answers_commands(pipeplan, tmp_path):
    """Run commands that use each dependency."""
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", ran(pipeplan, "--version", folder=tmp_path))
    assert "makespan" in ran(pipeplan, "simulate", "zbv", *SMALL, folder=tmp_path)
    assert (tmp_path / "pipeline_zbv.png").read_bytes().startswith(b"\x89PNG")
    ran(pipeplan, "compare", *SMALL, "-o", "all.html", "-o", "all.svg", folder=tmp_path)
    assert {"all.html", "all.svg"} <= {path.name for path in tmp_path.iterdir()}
    assert "zbv" in (tmp_path / "all.html").read_text()
    assert "8 ranks" in ran(pipeplan, "compare", "1f1b", "zbv", "--config", "gpt-6.2b-24", folder=tmp_path)
    record = json.loads(ran(pipeplan, "explain", "zb-h1", *SMALL, "--json", folder=tmp_path))
    assert record["schedule"] == "zb-h1"
    plan = ("--model", "llama3-8b", "--cluster", "h100-sxm:8", "--global-batch", "32", "--sequence", "8192")
    assert "step" in ran(pipeplan, "plan", *plan, "--seconds", "1", folder=tmp_path)
    assert "step" in ran(pipeplan, "estimate", ROOT / "examples/plans/llama3-70b-64.yaml", folder=tmp_path)
    (tmp_path / "offload.yaml").write_text("offload: all\noffload_times: 0.5\n")
    offload = ("-c", "offload.yaml")
    assert "makespan" in ran(pipeplan, "simulate", "gpipe", *SMALL, *offload, folder=tmp_path)
    searches = ("--evaluations", "500", "--workers", "2")
    assert "shorter than" in ran(pipeplan, "search", *SMALL, *searches, "-o", "better.json", folder=tmp_path)
    assert "valid" in ran(pipeplan, "check", "better.json", folder=tmp_path)


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("serve",), "web"),
        (("mcp",), "mcp"),
        (("run", "1f1b", "-p", "2"), "pytorch"),
        (("profile", "1f1b", "--model", "gpt-tiny"), "pytorch"),
    ],
)
def test_what_needs_an_extra_names_it(bare, command, extra, tmp_path):
    assert f"pip install '.[{extra}]'" in ran(bare / "pipeplan", *command, folder=tmp_path, code=2)


def test_with_its_extras_it_proves_and_serves(with_extras, tmp_path):
    proves_and_serves(with_extras, tmp_path)


def test_the_extras_prove_and_serve_with_the_lowest(lowest, tmp_path):
    proves_and_serves(lowest, tmp_path)


def test_the_declared_releases_are_the_lowest(lowest_releases):
    """No declared release is below what another dependency needs, so that each is one with which the tests run."""
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", lowest_releases.read_text(), re.MULTILINE))
    declared = [
        *PROJECT["dependencies"],
        *(text for name in WITHOUT_PYTORCH for text in PROJECT["optional-dependencies"][name]),
    ]
    for requirement in map(Requirement, declared):
        (bound,) = (each.version for each in requirement.specifier if each.operator == ">=")
        pin = Version(pins[requirement.name])
        assert pin.release[: len(Version(bound).release)] == Version(bound).release, requirement


def test_the_commands_of_the_readme_run_with_the_lowest(lowest, tmp_path):
    runs_the_readme(lowest / "python", tmp_path)


def runs_the_readme(python, tmp_path):
    """Run the README as its page is run, without the command that needs PyTorch."""
    page = tmp_path / "README.md"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    page.write_text(re.sub(r"^(?=```console\n\$ pipeplan run )", "<!-- not run -->\n", text, flags=re.MULTILINE))
    ran(python, "-m", "docs.build.executed", page, folder=ROOT)


def proves_and_serves(with_extras, tmp_path):
    question = ("-p", "2", "-m", "4", "--seconds", "5", "--json")
    assert json.loads(ran(with_extras / "pipeplan", "search", *question, folder=tmp_path))["optimal"] is True
    command = [with_extras / "python", "-u", "-m", "pipeplan", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        try:
            address = next(match.group(0) for line in server.stdout if (match := re.search(r"http://[\w.:]+", line)))
            with urllib.request.urlopen(address, timeout=30) as answer:
                assert "<title>" in answer.read().decode()
        finally:
            server.terminate()
    assert "No broken requirements" in ran(with_extras / "pip", "check", folder=tmp_path)
