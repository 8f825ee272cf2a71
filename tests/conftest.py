"""Which tests are slow: ``make test`` leaves them to ``make test-all``; and which tests of the core need an extension."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from pipeplan.foundation.extensions import NAMES, extension
from tests.browser import chromium

# An example may take long on a loaded machine: time limits are asserted where they are meant.
settings.register_profile("pipeplan", deadline=None)
settings.load_profile("pipeplan")

ROOT = Path(__file__).parent

SLOW = (
    "cli/test_signals.py",
    "cli/test_streams.py",
    "docs/test_pages.py",
    "docs/test_site.py",
    "extensions/training/runtime/test_clocks.py",
    "extensions/training/runtime/test_failures.py",
    "extensions/training/runtime/test_kept_otherwise.py",
    "extensions/training/runtime/test_profile.py",
    "extensions/training/runtime/test_profiled.py",
    "extensions/training/runtime/test_run.py",
    "extensions/training/runtime/test_train_text.py",
    "extensions/training/runtime/test_train_tied.py",
    "extensions/training/runtime/test_trained_by_csv.py",
    "extensions/training/test_commands_run.py",
    "extensions/web/pages",
    "extensions/web/test_schema.py",
    "foundation/sweeps/test_cluster.py",
    "foundation/sweeps/test_processes.py",
    "peers",
    "torture",
)
"""Files and folders whose tests are all slow. Single tests are marked where they stand, those in a browser by fixture."""


SEARCH, PLANNING, REVIEW, TRAINING = ({name} for name in ("search", "planning", "review", "training"))
WHOLE = {*NAMES}
NEEDS = {
    "answers/test_answers.py": WHOLE,
    "answers/test_costs_by_name.py": PLANNING,
    "answers/test_published.py": WHOLE,
    "answers/test_reports.py": TRAINING,
    "answers/test_settings_as_values.py": WHOLE,
    "cli/test_numbers.py": WHOLE,
    "cli/test_options.py": WHOLE,
    "corpus": WHOLE,
    "costs/test_settings.py": WHOLE,
    "docs": WHOLE,
    "drawing/test_plan.py": PLANNING,
    "extensions/planning/answers/test_estimates.py": REVIEW,
    "extensions/planning/flags/test_bridge.py": REVIEW,
    "extensions/planning/answers/test_calibrations.py": TRAINING,
    "extensions/planning/test_commands_calibrate.py": TRAINING,
    "extensions/planning/test_kernel_timing.py": TRAINING,
    "extensions/web/test_absent_extensions.py": WHOLE,
    "extensions/web/test_bad_input.py": WHOLE,
    "extensions/web/test_pages.py": WHOLE,
    "extensions/web/test_plan_api.py": PLANNING,
    "extensions/web/test_presets.py": PLANNING,
    "extensions/web/test_review_page.py": REVIEW,
    "extensions/web/test_search_api.py": SEARCH,
    "extensions/web/test_search_page.py": SEARCH,
    "extensions/web/test_tools.py": WHOLE,
    "formats/test_fuzz.py": TRAINING,
    "formats/test_large_numbers.py": TRAINING,
    "formats/test_zb_nodes.py": SEARCH,
    "foundation/kernels/test_kernels.py": WHOLE,
    "foundation/kernels/test_lengths.py": WHOLE,
    "published_runs": WHOLE,
    "simulation/test_round_trips.py": SEARCH,
    "simulation/test_soundness.py": SEARCH,
    "strategies/test_zb_auto.py": SEARCH,
    "strategies/test_zbv_heuristic.py": SEARCH,
    "test_extending.py": WHOLE,
    "test_options_matter.py": WHOLE,
    "test_planning_page.py": WHOLE,
    "test_plugins.py": PLANNING,
    "test_public_api.py": WHOLE,
    "test_questions.py": WHOLE,
    "test_readme.py": WHOLE,
    "test_security.py": WHOLE,
    "test_types.py": WHOLE,
    "torture": WHOLE,
    "trainers/test_table.py": REVIEW,
}
"""Extensions that files and folders need, beside those that their extension needs; single tests are marked in place."""

ABSENT = {name for name in NAMES if extension(name) is None}


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a server of the web app, with warm processes: one for all tests."""
    pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")
    from tests.extensions.web.running import running

    with running() as found:
        yield found


@pytest.fixture(scope="session")
def started() -> Iterator[tuple[Any, asyncio.AbstractEventLoop]]:
    """One Chromium for all tests, and the event loop that its driver keeps running in this thread."""
    with chromium() as found:
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield found, loop
        asyncio._set_running_loop(loop)


@pytest.fixture
def browser(started: tuple[Any, asyncio.AbstractEventLoop]) -> Iterator[Any]:
    """Chromium; its event loop counts as running during this test alone, for others call ``asyncio.run``."""
    found, loop = started
    asyncio._set_running_loop(loop)
    yield found
    asyncio._set_running_loop(None)


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in an empty folder, 80 columns wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], empty_folder: None) -> Callable[[str], tuple[int, str, str]]:
    """A command line, run in an empty folder: its exit code, and what it prints on stdout and stderr."""

    def run(line: str) -> tuple[int, str, str]:
        from pipeplan.cli import main

        code = main(line.split())
        return code, *capsys.readouterr()

    return run


def pytest_configure() -> None:
    """Check the list of slow tests, and let programs that tests start be interrupted.

    A shell ignores interrupts in its background jobs, and their programs inherit that.
    """
    moved = [name for name in SLOW if not (ROOT / name).exists() and _room_of(name).exists()]
    assert moved == [], "these slow tests are elsewhere"
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files whose tests would be deselected, or need an extension that is not installed."""
    if any(_is_in(collection_path, name) and needs & ABSENT for name, needs in NEEDS.items()):
        return True
    return True if config.option.markexpr == "not slow" and _is_slow(collection_path) else None


def pytest_collection_finish() -> None:
    """Keep what was imported out of the garbage collections, which took a tenth of the time."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of slow files and those that open pages in a browser, and skip those that need an absent extension."""
    for item in items:
        if _is_slow(item.path) or "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        for marker in item.iter_markers("needs"):
            if missing := sorted(ABSENT.intersection(marker.args)):
                item.add_marker(pytest.mark.skip(reason=f"not installed: {', '.join(missing)}"))


def _room_of(name: str) -> Path:
    """Return the folder of tests that a file belongs to: that of an extension may be deleted with it."""
    parts = name.split("/")
    return ROOT.joinpath(*parts[:2] if parts[0] == "extensions" else parts[:1])


def _is_slow(path: Path) -> bool:
    return any(_is_in(path, name) for name in SLOW)


def _is_in(path: Path, name: str) -> bool:
    """Return True if a path is a file or folder of tests, or lies in it."""
    return path == ROOT / name or ROOT / name in path.parents
