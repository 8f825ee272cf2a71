"""A peer that is not here is one skip, or an error if it failed to install; a table at the end says what ran."""

import re
import warnings
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.peers.peers import ELSEWHERE, PEERS, Peer, failed_to_install, version, why_absent

HERE = Path(__file__).parent
OF_PEERS = "ignore::Warning:({})".format("|".join(sorted({re.escape(peer.module.split(".")[0]) for peer in PEERS})))


class AbsentPeer(pytest.Directory):
    """The folder of a peer that is not installed: one skip with the reason, or an error if it failed to install."""

    def collect(self) -> list[pytest.Item]:
        peer = peer_of(self.path)
        assert peer is not None
        reason = why_absent(peer) or ""
        if failed_to_install(peer):
            raise self.CollectError(reason)
        pytest.skip(reason)


def peer_of(path: Path) -> Peer | None:
    """The peer in whose folder a path lies, None for what lies in no peer's."""
    parts = path.relative_to(HERE).parts if path.is_relative_to(HERE) else ()
    return next((peer for peer in PEERS if parts and parts[0] == peer.name), None)


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    peer = peer_of(path)
    if peer is None or why_absent(peer) is None:
        return None
    absent: AbsentPeer = AbsentPeer.from_parent(parent, path=path)
    return absent


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """What a peer warns of when it is imported is not ours to mend."""
    with warnings.catch_warnings():
        if peer_of(collector.path) is not None:
            warnings.simplefilter("ignore")
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if peer_of(item.path) is not None:
            item.add_marker(pytest.mark.filterwarnings(OF_PEERS))


@pytest.fixture
def ran(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Note what a test has compared, for the table at the end: ``ran("the orders of 800 shapes")``."""
    return lambda what: record_property("ran", what)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each peer, its release, what ran, what did not."""
    absent = {peer: why_absent(peer) for peer in PEERS}
    here = [peer for peer in PEERS if absent[peer] != ELSEWHERE]
    if not here:
        return
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    tests = [report for report in reports if isinstance(report, pytest.TestReport)]
    terminalreporter.section("peers")
    for peer in here:
        terminalreporter.write_line(f"{peer.name} {version(peer) or ''}".rstrip())
        reason = absent[peer]
        for line in [f"did not run: {reason}"] if reason else outcomes(peer, tests):
            terminalreporter.write_line(f"    {line}")


def outcomes(peer: Peer, reports: list[pytest.TestReport]) -> list[str]:
    """What a peer's tests noted where they passed; the names of those that did not, with the reasons of skips."""
    own = [report for report in reports if f"tests/peers/{peer.name}/" in report.nodeid]
    passed = [report for report in own if report.passed and report.when == "call"]
    notes = [[str(text) for key, text in report.user_properties if key == "ran"] for report in passed]
    lines = [f"ran: {'; '.join(texts)}" for texts in notes if texts]
    if silent := sum(not texts for texts in notes):
        lines.append(f"ran: {silent} test{'s' if silent > 1 else ''} of single points and refusals")
    for report in own:
        name = report.nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
            lines.append(f"did not run: {name}: {reason.removeprefix('Skipped: ')}")
        elif report.failed:
            lines.append(f"failed: {name}")
    return lines or ["did not run: none of its tests was chosen"]
