from pipeplan.model import format_schedule
from pipeplan.strategies.one_f_one_b import one_f_one_b
from pipeplan.strategies.sliced import seq1f1b


def test_one_slice_is_1f1b() -> None:
    assert seq1f1b(seq1f1b.shape(4, 6, slices=1)) == one_f_one_b(one_f_one_b.shape(4, 6))


def test_three_slices_of_one_microbatch_go_back_in_reverse() -> None:
    rows = format_schedule(seq1f1b(seq1f1b.shape(2, 1, slices=3))).splitlines()
    assert rows == ["0F0 0F0.1 0F0.2 0B0.2 0B0.1 0B0", "1F0 1F0.1 1F0.2 1B0.2 1B0.1 1B0"]
