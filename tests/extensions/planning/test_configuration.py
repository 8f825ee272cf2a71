import pytest

from pipeplan.foundation.errors import InputError, PipeplanError, ShapeError, UnknownNameError
from tests.extensions.planning.configurations import configuration


def test_what_follows_from_a_configuration():
    requested = configuration(microbatch_size=2, expert=4, expert_tensor=2)
    assert requested.gpus == 64
    assert requested.microbatches == 32
    assert requested.stages == 20
    assert requested.expert_data == 2
    hybrid = configuration(data=8, context=1, expert=4, replicate=4)
    assert (hybrid.shards, hybrid.replicate) == (2, 4)
    assert (hybrid.expert_shards, hybrid.expert_replicate) == (2, 4)
    alone = configuration(data=8, context=1, expert=32, replicate=4)
    assert (alone.expert_shards, alone.expert_replicate) == (1, 1), "each expert exists once"


@pytest.mark.parametrize(
    ("changes", "error", "words", "field"),
    [
        ({"microbatch_size": 0}, ShapeError, "microbatch size must be an integer >= 1, got 0", None),
        ({"tensor": 4.0}, ShapeError, "tensor must be an integer >= 1, got 4.0", None),
        ({"zero": 5}, InputError, "invalid zero 5: expected 0, 1, 2 or 3", None),
        ({"replicate": 3}, ShapeError, "replicate 3 does not divide data 2 x context 2", None),
        ({"precision": "int8"}, UnknownNameError, "unknown precision 'int8'", None),
        ({"in_flight": -1.0}, InputError, "invalid in_flight -1.0: expected a number", None),
        ({"recompute": ("core_atn",)}, UnknownNameError, "did you mean 'core_attn'", None),
        ({"recompute_by_stage": ((),)}, ShapeError, "1 values for 20 stages", None),
        ({"recompute_by_stage": (("x",), *[()] * 19)}, UnknownNameError, "unknown module", "recompute"),
        ({"layers": (80,)}, ShapeError, "1 values for 20 stages", None),
        ({"offload": 1.5}, InputError, "invalid offload 1.5: expected a fraction from 0 to 1", None),
        ({"offload": (0.5,)}, ShapeError, "offload: 1 values for 20 stages", None),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_said(changes, error, words, field):
    with pytest.raises(error, match=words) as caught:
        configuration(**changes)
    assert isinstance(caught.value, PipeplanError)
    assert caught.value.field == (field or next(iter(changes)))
