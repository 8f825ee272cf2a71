"""A peer that does not install stops no other, and is a failure with its reason."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers import install, peers
from tests.peers.peers import ELSEWHERE, Peer, failed_to_install, why_absent

BROKEN = Peer("broken", "broken-package", "broken", torch=(0, 0))
PEERS_FOLDER = Path(__file__).parent
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
    with pytest.raises(SystemExit, match="1 of 3 peers not installed: broken"):
        install.main([])
    assert capsys.readouterr().out.splitlines() == [
        "broken: not installed: ERROR: No matching distribution found for broken-package",
        f"sound: {pytest.__version__}",
        "later: needs PyTorch 99.0: `make peers-trainer`",
    ]
    assert list(json.loads(reasons.read_text())) == ["broken"]


def test_the_reason_is_kept(reasons: Path) -> None:
    assert why_absent(BROKEN) == ELSEWHERE
    with pytest.raises(SystemExit):
        install.main([])
    assert failed_to_install(BROKEN)
    assert not failed_to_install(SOUND)
    assert why_absent(BROKEN) == "broken: not installed: ERROR: No matching distribution found for broken-package"
    assert why_absent(SOUND) is None


def test_the_folder_of_a_peer_that_failed_to_install_is_an_error(tmp_path: Path) -> None:
    """In an environment whose file of reasons names a peer, its tests are not skipped."""
    (tmp_path / "peers-not-installed.json").write_text(json.dumps({"dualpipe": "ERROR: no such release"}))
    code = f"import sys; sys.prefix = {str(tmp_path)!r}; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "-q", "-p", "no:cacheprovider", str(PEERS_FOLDER / "dualpipe")],
        capture_output=True,
        text=True,
        check=False,
        cwd=PEERS_FOLDER.parents[1],
    )
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert "dualpipe: not installed: ERROR: no such release" in done.stdout
