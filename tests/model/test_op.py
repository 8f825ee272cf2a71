from pipeplan.model import (
    COMMUNICATION_KINDS,
    COMPUTE_KINDS,
    HOST_KINDS,
    RECEIVE_KINDS,
    SEND_KINDS,
    SEND_WAIT_KINDS,
    STAGE_WIDE_KINDS,
    Kind,
)


def test_every_kind_is_of_one_sort():
    sorts = (COMPUTE_KINDS, COMMUNICATION_KINDS, STAGE_WIDE_KINDS, HOST_KINDS)
    assert sorted(kind for sort in (*sorts, SEND_WAIT_KINDS) for kind in sort) == list(Kind)
    assert {*SEND_KINDS, *RECEIVE_KINDS} == {*COMMUNICATION_KINDS}
    for kind in Kind:
        assert (kind.is_compute, kind.is_stage_wide) == (kind in COMPUTE_KINDS, kind in STAGE_WIDE_KINDS)
