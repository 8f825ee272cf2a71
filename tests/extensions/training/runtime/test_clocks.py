import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from tests.processes import run_ranks


def test_offsets_between_hosts_are_found_by_messages() -> None:
    """The processes share a clock, so the true offset is 0; the messages find it to within their round trip."""
    first, *others = run_ranks("tests.extensions.training.runtime.many", 3, ())[0]
    assert first == 0
    assert all(abs(offset) < 20e6 for offset in others)
    assert any(others)
