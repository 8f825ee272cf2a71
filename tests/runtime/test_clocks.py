import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from pipeplan.runtime.launch import launch
from tests.runtime.many import Offsets


def test_offsets_between_hosts_are_found_by_messages() -> None:
    """The processes share a clock, so the true offset is 0; the messages find it to within their round trip."""
    first, *others = launch(Offsets(3))
    assert first == 0
    assert all(abs(offset) < 20e6 for offset in others)
    assert any(others)
