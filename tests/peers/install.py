"""Installs peers into this environment: ``python -m tests.peers.install [NAME ...]``, without names all for its PyTorch.

A peer that does not install stops no other, but it is a failure: its reason is printed, and the exit code is 1.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.peers.peers import PEERS, REASONS, Peer, needed_torch, torch_release, version, why_absent

CONSTRAINTS = Path(__file__).parent / "constraints.txt"


def main(names: list[str]) -> None:
    peers = [peer for peer in PEERS if not names or peer.name in names]
    if names and len(peers) < len(names):
        sys.exit(f"the peers are {', '.join(peer.name for peer in PEERS)}; got {' '.join(names)}")
    reasons: dict[str, str] = {}
    for peer in peers:
        if torch_release() < peer.torch and not names:
            print(why_absent(peer), flush=True)
            continue
        reason = install(peer)
        if reason is not None:
            reasons[peer.name] = reason
        print(
            f"{peer.name}: {version(peer)}" if reason is None else f"{peer.name}: not installed: {reason}", flush=True
        )
    REASONS.write_text(json.dumps(reasons, indent=1))
    if reasons:
        sys.exit(f"{len(reasons)} of {len(peers)} peers not installed: {', '.join(reasons)}")


def install(peer: Peer) -> str | None:
    """Install a peer, what its schedules need beside it, and import it; the reason where that fails."""
    if torch_release() < peer.torch:
        return needed_torch(peer)
    how = ["--no-deps", *(["--no-build-isolation"] if peer.built else [])]
    steps = [pip(peer.beside)] if peer.beside else []
    steps += [
        pip((peer.package,), *how),
        [sys.executable, "-W", "ignore", "-c", f"import tests.peers.{peer.name}, {peer.module}"],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return reason_in(done.stdout + done.stderr)
    return None


def pip(packages: tuple[str, ...], *options: str) -> list[str]:
    """The command that installs packages at the pinned releases."""
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return [*words, "--constraint", str(CONSTRAINTS), *options, *packages]


def reason_in(output: str) -> str:
    """The line of a failed command that says why: the last one with an error, else the last one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["the command failed without a word"]
    return next((line for line in reversed(lines) if "error" in line.lower()), lines[-1])


if __name__ == "__main__":
    main(sys.argv[1:])
