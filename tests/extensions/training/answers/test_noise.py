from pipeplan.costs import Spread
from pipeplan.extensions.training.answers.measuring import noise_of_ops, noise_of_steps


def test_a_single_slow_step_among_many_is_no_noise():
    assert noise_of_steps(Spread.of([0.100, 0.101, 0.102, 0.103, 0.900]), "s") is None
    assert noise_of_steps(Spread.of([0.100]), "s") is None


def test_steps_that_lie_apart_are():
    assert noise_of_steps(Spread.of([0.08, 0.09, 0.10, 0.11, 0.12]), "s") == (
        "steps spread by 20.0% (half of them took 90 to 110 ms): differences below that say nothing"
    )


def test_the_op_that_spreads_the_most_is_named():
    quiet, noisy, noisier = Spread.of([5.0, 5.1, 5.2]), Spread.of([1, 2, 3]), Spread.of([1.0, 2.0, 9.0])
    assert noise_of_ops([("forward of stage 0", quiet)]) is None
    said = noise_of_ops(
        [("forward of stage 0", quiet), ("forward of stage 1", noisier), ("backward of stage 1", noisy)]
    )
    assert said is not None
    assert said.startswith("times spread by up to 200.0% (forward of stage 1: half of them 1.5 to 5.5 ms)")
