"""A peer that does not install stops no other, and is a failure with its reason."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PEERS_FOLDER = Path(__file__).parent


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
