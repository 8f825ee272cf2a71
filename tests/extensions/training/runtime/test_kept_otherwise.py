"""Steps of schedules that recompute and offload, in users' own loops (``kept_otherwise``)."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from tests.extensions.training.runtime.test_pipeline import EXACT, job


def test_what_is_kept_changes_memory_and_no_gradient(tmp_path: Path) -> None:
    scenarios = ("alike", "by_hand", "passing", "busy", "peaks", "replicated")
    for rank, answer in enumerate(job(tmp_path, 2, *scenarios, of="kept_otherwise")):
        for name, result in answer["alike"].items():
            assert result == EXACT, name
        assert answer["by_hand"] == EXACT
        assert answer["passing"] == dict.fromkeys(answer["passing"], 0.0)
        assert answer["busy"] == {"recomputed": True, "offloaded": True, "mixed": True}
        for name, differences in answer["replicated"].items():
            assert max(differences) < 1e-5, name
        # Of four microbatches, one is there at a time where all are recomputed, and two where each comes back early.
        share = {way: peak / answer["peaks"]["kept"] for way, peak in answer["peaks"].items()}
        assert share["recomputed"] < 0.5
        assert 0.5 < share["offloaded"] < 0.7
        assert share["mixed"] == pytest.approx(share["recomputed" if rank == 0 else "offloaded"], abs=0.15)
