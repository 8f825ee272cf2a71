"""A peer that does not install stops no other, and its tests skip with its reason."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.peers import install, peers
from tests.peers.peers import ELSEWHERE, Peer, why_absent

BROKEN = Peer("broken", "broken-package", "broken", torch=(0, 0))
SOUND = Peer("sound", "pytest", "pytest", beside=("pluggy",), torch=(0, 0))
LATER = Peer("later", "pytest", "pytest", torch=(99, 0))
PIP_SAYS = "Collecting broken-package\nERROR: No matching distribution found for broken-package\n\nhint: try again"


@pytest.fixture
def reasons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of reasons, with peers of which pip cannot find one, and one for a PyTorch to come."""

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        fails = "broken-package" in command
        return subprocess.CompletedProcess(command, int(fails), PIP_SAYS if fails else "", "")

    path = tmp_path / "reasons.json"
    monkeypatch.setattr(subprocess, "run", run)
    for module in (install, peers):
        monkeypatch.setattr(module, "REASONS", path)
        monkeypatch.setattr(module, "PEERS", (BROKEN, SOUND, LATER))
    return path


def test_the_others_install(reasons: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install.main([])
    assert capsys.readouterr().out.splitlines() == [
        "broken: not installed: ERROR: No matching distribution found for broken-package",
        f"sound: {pytest.__version__}",
        "later: needs PyTorch 99.0: `make peers-trainer`",
    ]
    assert list(json.loads(reasons.read_text())) == ["broken"]


def test_the_reason_of_the_skip(reasons: Path) -> None:
    assert why_absent(BROKEN) == ELSEWHERE
    install.main([])
    assert why_absent(BROKEN) == "broken: not installed: ERROR: No matching distribution found for broken-package"
    assert why_absent(SOUND) is None


@pytest.mark.usefixtures("reasons")
def test_a_newer_pytorch_is_asked_for() -> None:
    assert why_absent(LATER) == "later: needs PyTorch 99.0: `make peers-trainer`"


@pytest.mark.usefixtures("reasons")
def test_names_that_are_no_peers() -> None:
    with pytest.raises(SystemExit, match="the peers are broken, sound, later; got sound sounder"):
        install.main(["sound", "sounder"])
