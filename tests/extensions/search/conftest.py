"""What tests of the search share."""

import pytest

from pipeplan.foundation.kernels import Kernel


@pytest.fixture
def interpreted(monkeypatch):
    """Kernels stay plain Python: compiling the largest takes longer than all that a test asks of them."""
    monkeypatch.setattr(Kernel, "__call__", lambda self, inputs, outputs, *, work: self._run_on_lists(inputs, outputs))
    monkeypatch.setattr(Kernel, "compile", lambda self, inputs, outputs: self._run_on_lists(inputs, outputs))
