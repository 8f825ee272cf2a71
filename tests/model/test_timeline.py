"""What a timeline says of its ranks."""

import pipeplan


def test_a_rank_that_is_always_busy_idles_for_no_time_at_all():
    """33 times 1.1 and 33 times 0.37 add up to another last digit one by one than pair by pair."""
    timeline = pipeplan.simulate("1f1b", ranks=1, microbatches=33, forward_times=1.1, backward_times=1.1 / 3).timeline
    assert timeline.makespan < timeline.work[0]
    assert timeline.idle.tolist() == [0.0]


def test_what_little_a_rank_idles_counts():
    timeline = pipeplan.simulate("1f1b", ranks=2, microbatches=1, forward_times=[1.0, 1e-6]).timeline
    assert (timeline.idle > 0).all()
    assert timeline.idle[0] < 1e-5
