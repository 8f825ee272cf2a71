"""Columns of a comparison: the same table for the terminal, the help, notebooks and data frames."""

import pytest

import pipeplan
from pipeplan.answers.comparing.columns import COLUMNS, DEFAULT_COLUMNS, ColumnOptions
from pipeplan.costs import table_of
from pipeplan.foundation.errors import UnknownNameError


@pytest.mark.parametrize(
    "settings",
    [{}, {"activation_bytes": "1GiB", "memory_limit": "3GiB", "forward_times": 2.0, "time_unit": "ms"}],
    ids=["activations", "bytes"],
)
def test_every_column_is_in_the_table_the_help_and_data_frames(settings, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    comparison = pipeplan.compare("1f1b", "zbv", ranks=4, microbatches=8, **settings)
    comparison.print(["all"], verbose=True)
    printed = capsys.readouterr().out
    frame = comparison.to_frame()
    for name, column in COLUMNS.items():
        heading = column.heading(comparison.results)
        cells = column.texts([column.value(result) for result in comparison], comparison.results)
        assert all(word in printed for word in (*heading.split(), *cells)), name
        assert not column.meaning or column.meaning in " ".join(printed.split())
        assert name in table_of(ColumnOptions)["columns"].help
        key = name.replace("-", "_") if column.key is None else column.key
        if key:
            assert frame[key].tolist() == [column.value(result) for result in comparison]


def test_columns_are_shown_in_their_order_and_others_are_unknown():
    assert DEFAULT_COLUMNS == ("makespan", "bubble", "peak", "gap")
    assert ColumnOptions(columns=("gap,chunks", "bound")).names == ["chunks", "bound", "gap"]
    with pytest.raises(UnknownNameError, match="unknown column 'gab'; did you mean 'gap'"):
        pipeplan.compare("1f1b", ranks=2, microbatches=2).print(["gab"])
