"""PyTorch's orders in the conformance data."""

from __future__ import annotations

import re

from pipeplan.model import format_cells
from pipeplan.strategies.protocol import Strategy
from tests.conformance import conformance


def assert_matches_pytorch(strategy: Strategy, torch_name: str) -> None:
    """The strategy's rows are PyTorch's, op by op, at every shape in the data; bubbles are passed over."""
    orders = conformance("torch_orders.json")["orders"]
    shapes = [name for name in orders if name.split("|")[0] == torch_name]
    assert shapes
    for name in shapes:
        ranks, microbatches, chunks = (int(number) for number in re.findall(r"\|[a-z]+(\d+)", name))
        schedule = strategy(strategy.shape(ranks, microbatches, chunks))
        expected = [[cell for cell in row.split() if cell != "."] for row in orders[name]]
        assert [format_cells(row) for row in schedule] == expected, name
