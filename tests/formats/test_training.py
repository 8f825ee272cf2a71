import pytest

from pipeplan.formats import Training
from pipeplan.foundation.errors import InputError, ShapeError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"microbatch_size": 0}, "microbatch size must be at least 1, not 0"),
        ({"sequence_length": 0}, "sequence length must be at least 1, not 0"),
        ({"data_parallel": -1}, "data parallel must be at least 1, not -1"),
        ({"mtp_layers": -1}, "mtp layers must be at least 0, not -1"),
        ({"layers": (1, -1)}, r"at least 0 and not all 0, not \(1, -1\)"),
        ({"layers": (0, 0)}, "not all 0"),
    ],
)
def test_numbers_that_cannot_be(options, message):
    with pytest.raises(InputError, match=message) as caught:
        Training(**options)
    assert caught.value.field == ("layers_per_stage" if "layers" in options else next(iter(options)))


def test_layers_of_another_number_of_stages():
    assert Training().layers_of(2) is None
    assert Training(layers=(0, 3)).layers_of(2) == (0, 3)
    with pytest.raises(ShapeError, match="layers per stage: 2 values for 3 stages"):
        Training(layers=(0, 3)).layers_of(3)
