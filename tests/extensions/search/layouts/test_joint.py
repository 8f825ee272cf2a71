"""The search over layouts, placements and orders: against all of them on tiny instances, and its bounds on random ones."""

from fractions import Fraction
from functools import partial
from random import Random

import numpy as np
import pytest

from pipeplan.costs import Layer, Limits, Settings
from pipeplan.extensions.search import Choices, Effort
from pipeplan.extensions.search.choices import USUAL
from pipeplan.extensions.search.joint import LayoutSpace, joint_search
from pipeplan.extensions.search.joint.least import LeastBounds
from pipeplan.extensions.search.joint.proposals import Proposals
from pipeplan.extensions.search.layouts.problem import bounds_of, counts_of
from pipeplan.foundation.errors import InfeasibleError, InputError
from pipeplan.model import Placement
from tests.extensions.search.case import Case, numbers, whole
from tests.extensions.search.independent_enumeration import Enumeration
from tests.extensions.search.layouts.test_overlapped_layouts import layouts_of, problem_of, random_layer

pytest.importorskip("ortools", reason="proofs need OR-Tools: the extra 'search'")

TWO_RANKS = (Placement.linear(2), Placement.loop(2, 2), Placement.v(2))
WHOLE_BACKWARDS = Choices.of([], ["split"])


def space_of(layers, placement, *, microbatches=4, p2p=0.0, limit=None, choices=USUAL):
    limits = None if limit is None else Limits(np.full(placement.ranks, float(limit)), in_activations=False)
    made = partial(problem_of, layers, placement, microbatches, p2p, choices)
    return LayoutSpace(tuple(layers), made, placement, limits)


def random_layers(random, count):
    layers = [
        Layer(
            forward=float(random.integers(1, 5)),
            backward_input=float(random.integers(1, 5)),
            backward_weight=float(random.integers(1, 5)),
            activation_bytes=float(random.integers(1, 4)),
            static_bytes=float(random.integers(0, 3)),
        )
        for _ in range(count)
    ]
    return [layers[0], *layers[1:2] * (count - 2), layers[-1]] if random.random() < 0.5 else layers


def case_of(layers, placement, layout, *, microbatches, p2p, limit, choices):
    """One layout for the independent enumeration; the sums over layers are made once more."""
    runs = [layers[sum(layout[:stage]) : sum(layout[: stage + 1])] for stage in range(len(layout))]

    segments = Settings(layers=layers, layers_per_stage=layout).costs(placement).segments
    stages = np.arange(len(layout))
    pairs = None
    if segments is not None:
        rows = {kind: segments.together(stages[:, None], stages, kind == "I").time.tolist() for kind in "BI"}
        pairs = {kind: tuple(numbers(*row) for row in times) for kind, times in rows.items()}

    def sums(*names):
        return numbers(*(sum(getattr(layer, name) for layer in run for name in names) for run in runs))

    return Case(
        placement=placement.name,
        rank_of=placement.rank_of[0],
        microbatches=microbatches,
        forward=sums("forward"),
        backward=sums("backward_input", "backward_weight"),
        inputs=sums("backward_input"),
        weights=sums("backward_weight"),
        pairs=pairs,
        transfer=Fraction(str(p2p)),
        activation=sums("activation_bytes"),
        kept=sums("activation_bytes"),
        static=sums("static_bytes"),
        limits=None if limit is None else numbers(*[limit] * placement.ranks),
        in_activations=False,
        split=choices.split,
    )


def least_and_found(layers, placements, *, evaluations=None, **instance):
    """The least makespan of every layout, placement and order, each enumerated, and the search's; None if nothing fits."""
    shops = (
        whole(case_of(layers, placement, layout, **instance))
        for placement in placements
        for layout in layouts_of(len(layers), placement.stages)
    )
    least = min(
        (float(best * shop.unit) for shop in shops if (best := Enumeration(shop).best) is not None), default=None
    )
    spaces = [space_of(layers, placement, **instance) for placement in placements]
    effort = Effort(seconds=60.0 if evaluations is None else None, evaluations=evaluations)
    if least is None:
        with pytest.raises(InfeasibleError):
            joint_search(spaces, effort)
        return None, None
    return pytest.approx(least, rel=1e-9), joint_search(spaces, effort).result


@pytest.mark.parametrize("seed", [0, 1, 2, pytest.param(4, marks=pytest.mark.slow)])
def test_tiny_instances_are_solved_to_the_optimum_over_everything(seed):
    random = np.random.default_rng(seed)
    layers = random_layers(random, 5)
    p2p, limit = float(random.choice([0.0, 0.5])), None if seed % 2 else int(random.integers(11, 16))
    instance = {"microbatches": 2, "p2p": p2p, "limit": limit, "choices": WHOLE_BACKWARDS}
    least, found = least_and_found(layers, TWO_RANKS, **instance)
    assert found is None or (found.value, found.bound.value, found.optimal) == (least, least, True)


def test_overlapped_pairs_are_searched_and_bounded_over_all_layouts():
    for seed in range(6):
        random = Random(seed)
        layers = [random_layer(random) for _ in range(4)]
        instance = {"microbatches": 2, "p2p": 0.5 * (seed % 2), "limit": None, "choices": WHOLE_BACKWARDS}
        least, found = least_and_found(layers, TWO_RANKS, evaluations=2000, **instance)
        assert found.value == least
        assert found.bound.value <= found.value * (1 + 1e-9)


def test_split_backwards_are_solved_to_the_optimum_over_all_layouts():
    layers = random_layers(np.random.default_rng(7), 6)
    instance = {"microbatches": 2, "p2p": 0.5, "limit": None, "choices": USUAL}
    least, found = least_and_found(layers, TWO_RANKS[:1], **instance)
    assert (found.value, found.optimal) == (least, True)


def test_bounds_hold_for_every_layout():
    random = np.random.default_rng(5)
    shares = []
    for _ in range(20):
        layers = random_layers(random, int(random.integers(4, 8)))
        placement = (*TWO_RANKS, Placement.linear(3), Placement.bidirectional(2))[random.integers(5)]
        limit = float(random.integers(8, 30)) if random.random() < 0.5 else None
        space = space_of(
            layers,
            placement,
            microbatches=2 * int(random.integers(1, 4)),
            p2p=float(random.choice([0.0, 0.5])),
            limit=limit,
            choices=(USUAL, WHOLE_BACKWARDS)[random.integers(2)],
        )
        bounds, bounds_of_layouts = LeastBounds(space), []
        for layout in layouts_of(len(layers), placement.stages):
            at = bounds_of(layout)[None]
            problem = space.problem(layout)
            if limit is not None:
                assert (problem is None) == bool(space.excess(at)[0] > 0)
            if problem is not None:
                assert bounds.quick(at)[0] <= problem.bound.value * (1 + 1e-9)
                bounds_of_layouts.append(problem.bound.value)
        if bounds_of_layouts:
            shares.append(bounds.least.value / min(bounds_of_layouts))
            assert shares[-1] <= 1 + 1e-9
    assert np.mean(shares) > 0.9


def test_a_budget_of_evaluations_repeats():
    layers = [Layer(forward=1, backward_input=1, backward_weight=1, count=1) for _ in range(14)]
    layers[-1] = Layer(forward=3, backward_input=2, backward_weight=2)
    spaces = [
        space_of(layers, placement, microbatches=6, p2p=0.2) for placement in (Placement.v(3), Placement.loop(3, 3))
    ]
    first, second = (joint_search(spaces, Effort(seconds=None, evaluations=800, workers=2)) for _ in range(2))
    assert first.layout == second.layout
    assert first.result.evaluations == second.result.evaluations
    assert first.result.schedule == second.result.schedule
    assert first.result.bound.value <= first.result.value * (1 + 1e-9)


def test_roles_keep_the_ends_of_the_model():
    block = Layer(forward=1, backward_input=1, backward_weight=1, role="block")
    ends = {
        role: Layer(forward=4, backward_input=4, backward_weight=4, role=role) for role in ("embedding", "mtp", "head")
    }
    layers = [ends["embedding"], *[block] * 5, ends["mtp"], ends["head"]]
    space = space_of(layers, Placement.linear(3))
    proposals = Proposals(space, LeastBounds(space))
    assert [counts_of(bounds) for bounds in proposals.all()] == [
        layout for layout in layouts_of(8, 3) if layout[-1] >= 2
    ]
    assert space.balanced()[-1] >= 2
    layout = joint_search([space], Effort(seconds=None, evaluations=500)).layout
    assert layout is not None
    assert layout[-1] >= 2


def test_too_many_stages_are_refused():
    with pytest.raises(InputError, match="2 layers cannot make 4 stages"):
        space_of([Layer(forward=1, backward_input=1, backward_weight=1)] * 2, Placement.v(2))
    with pytest.raises(InputError, match="2,000 layers are too many for a search for the layout"):
        space_of([Layer(forward=1, backward_input=1, backward_weight=1)] * 2000, Placement.v(2))
    embedding = Layer(forward=1, backward_input=0, backward_weight=1)
    space = space_of([embedding, *[Layer(forward=1, backward_input=1, backward_weight=1)] * 3], Placement.v(2))
    with pytest.raises(InputError, match="stages that each take time"):
        space.balanced()
