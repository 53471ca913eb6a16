"""The catalogue: names, options and what cannot be asked for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slackline.errors import SlacklineError
from slackline.methods.catalogue import CATALOGUE, method
from slackline.methods.latent import Bezier, Point, Simplex


def test_every_method_of_the_paper_is_listed_under_its_name() -> None:
    assert set(CATALOGUE) >= {
        "single",
        "ensemble",
        "lop",
        "cop",
        "bop",
        "diayn_r",
        "diayn_r_l2",
        "lc",
    }
    assert all(name == found.name for name, found in CATALOGUE.items())


@pytest.mark.parametrize("name", CATALOGUE)
def test_options_rebuild_the_method(name: str) -> None:
    """What a run folder keeps is enough."""
    assert method(name, **CATALOGUE[name].options) == CATALOGUE[name]


def test_papers_settings() -> None:
    for name in ("lop", "cop", "bop"):
        options = CATALOGUE[name].options
        assert (options["beta"], options["penalty"]) == (1.0, "tensor")
    assert CATALOGUE["lop"].latent == Simplex(2)
    assert CATALOGUE["cop"].latent == Simplex(3)
    assert CATALOGUE["bop"].latent == Bezier(3)
    assert CATALOGUE["single"].options == {}


def test_changed_options_leave_the_catalogue_alone() -> None:
    changed = method("lop", beta=0.1, penalty="vector", anchors=4)
    expected = {**CATALOGUE["lop"].options, "anchors": 4, "beta": 0.1, "penalty": "vector"}
    assert changed.options == expected
    assert CATALOGUE["lop"].options["beta"] == 1.0


def test_only_an_ensemble_trains_members_apart() -> None:
    members = {name: found.num_members for name, found in CATALOGUE.items()}
    assert members.pop("ensemble") == 5
    assert set(members.values()) == {1}
    assert CATALOGUE["ensemble"].member.latent == Point()
    assert CATALOGUE["lop"].member is CATALOGUE["lop"]


def test_unknown_name_suggests_a_known_one() -> None:
    with pytest.raises(SlacklineError, match=r"unknown method 'lopp'; did you mean lop"):
        method("lopp")


def test_unknown_option_names_those_there_are() -> None:
    with pytest.raises(SlacklineError, match=r"no option 'gamma' \(it has: anchors, .*penalty\)"):
        method("lop", gamma=1.0)
    with pytest.raises(SlacklineError, match=r"no option 'beta' \(it has: none\)"):
        method("single", beta=1.0)


@pytest.mark.parametrize(
    "options", [{"anchors": 1}, {"beta": -1.0}, {"penalty": "none"}, {"beta": float("nan")}]
)
def test_bad_option_values_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(SlacklineError, match="must be"):
        method("lop", **options)


@pytest.mark.parametrize("name", CATALOGUE)
def test_anchor_coefficients_sum_to_one(name: str) -> None:
    """What the fused layers rely on."""
    latent = CATALOGUE[name].latent
    for z in (latent.sample(jax.random.key(0), 50), jnp.asarray(latent.candidates(5))):
        np.testing.assert_allclose(jnp.sum(latent.weights(z), axis=-1), 1.0, rtol=1e-6)
