"""How differently policies behave: can a classifier tell them apart by a state?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from slackline.analyses.analysis import (
    Analysis,
    Finding,
    Subject,
    colours,
    common_suite,
)
from slackline.analyses.states import Visitor
from slackline.errors import SlacklineError
from slackline.io.decode import count, counts, number
from slackline.networks.mlp import MLP, init_mlp
from slackline.paper import paper_accuracy
from slackline.report.chart import Axis, Band, Bars, Chart, Line, Mark, Plate
from slackline.report.table import Column, Row, Table
from slackline.runtime import set_up_jax
from slackline.suites.suite import TRAIN, Suite, Variation
from slackline.types import Array

TRAINING, VALIDATION = 0, 1
"""Phases: their states come from different episodes."""


class Accuracy(NamedTuple):
    """One run: the share of validation states whose policy is named, while the classifier learns.

    Axes: seed S, environment V, moment C."""

    subject: Subject
    colour: int
    num_policies: int
    curves: np.ndarray
    """(S, V, C)"""

    @property
    def final(self) -> np.ndarray:
        """(S, V)"""
        return self.curves[:, :, -1]


@dataclass(frozen=True)
class Classifier(Analysis):
    """Functional diversity: a small network learns to say which of five policies visited a state,
    in the training environment and in changed ones, and is tested on states of other episodes. At
    100 % the policies go to places of their own; at 20 % nothing tells them apart."""

    name: ClassVar[str] = "classifier"
    summary: ClassVar[str] = "can a classifier tell the policies apart by a state?"

    policies: int = count(5, low=2, high=64)
    """How many policies are told apart, spread as `slackline adapt` spreads them."""
    interactions: int = count(100_000, high=10_000_000)
    """States of all policies together to learn from, and as many more to be tested on."""
    hidden: tuple[int, ...] = counts((16, 16), high=1024)
    """Widths of the network's hidden layers."""
    passes: int = count(10, high=1000)
    """Passes over the states."""
    batch: int = count(256, high=1_000_000)
    """States of one gradient step."""
    learning_rate: float = number(1e-3, above=0.0, high=1.0)
    """Adam's."""
    moments: int = count(20, high=1000)
    """How often the accuracy is measured during training."""

    def of(self, subjects: Sequence[Subject], variations: Sequence[str] = ()) -> Finding:
        set_up_jax()
        suite = common_suite(subjects)
        named = [suite.variation(name) for name in dict.fromkeys(variations)]
        changed = [v for v in named or suite.variations if v.name != TRAIN.name]
        places = (TRAIN, *changed)
        found = [
            self.accuracy(subject, colour, places)
            for subject, colour in zip(subjects, colours(subjects), strict=True)
        ]
        numbers = {
            each.subject.label: {
                "environments": [v.name for v in places],
                "seeds": list(each.subject.config.seeds),
                "states_seen": self.seen,
                "accuracy": each.curves,
            }
            for each in found
        }
        figures = (self.curves_plate(suite, found, places), self.bars_plate(suite, found, places))
        return Finding(self.name, (self.table(suite, found, places),), figures, numbers)

    @property
    def steps(self) -> int:
        """Gradient steps between two moments."""
        return max(1, round(self.passes * self.interactions / self.batch / self.moments))

    @property
    def seen(self) -> np.ndarray:
        """How many states were learned from at each moment, the start included, (C,)."""
        return np.arange(self.moments + 1) * self.steps * self.batch

    def accuracy(self, subject: Subject, colour: int, places: Sequence[Variation]) -> Accuracy:
        """Collect states and train a classifier for every seed and environment."""
        zs = subject.method.latent.candidates(self.policies)
        if len(zs) < 2:
            raise SlacklineError(
                f"{subject.run.path}: is a {subject.method.name} run with one policy; there is "
                "nothing to tell apart"
            )
        visitor = Visitor(subject.suite, subject.method, tuple(places))
        each = max(1, self.interactions // len(zs))
        curves = [
            np.asarray(self.learn(*self.states(visitor, subject, variation, zs, each)))
            for variation in places
        ]
        return Accuracy(subject, colour, len(zs), np.stack(curves, axis=1))

    def states(
        self, visitor: Visitor, subject: Subject, variation: Variation, zs: np.ndarray, each: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """To learn from and to be tested on, (S, K, n, size)."""
        phases = [
            np.stack([visitor.visited(s, variation, zs, each, phase) for s in subject.subspaces])
            for phase in (TRAINING, VALIDATION)
        ]
        return phases[0], phases[1]

    def learn(self, training: np.ndarray, validation: np.ndarray) -> Array:
        """Accuracies (S, C) of one classifier a seed."""
        run = _learning(self.hidden, self.steps, self.moments, self.batch)
        keys = jax.random.split(jax.random.key(0), len(training))
        return run(keys, jnp.asarray(training), jnp.asarray(validation), self.learning_rate)

    def curves_plate(
        self, suite: Suite, found: Sequence[Accuracy], places: Sequence[Variation]
    ) -> Plate:
        charts = [self.curve_chart(found, v, place) for v, place in enumerate(places)]
        return Plate(
            "curves",
            f"{suite.title}: which policy was here?",
            f"Accuracy of a network of {'-'.join(map(str, self.hidden))} units on states of other "
            "episodes while it learns. Mean over seeds; shade: from the lowest to the highest.",
            tuple(charts),
        )

    def curve_chart(self, found: Sequence[Accuracy], v: int, place: Variation) -> Chart:
        marks: list[Mark] = []
        for each in found:
            percent = 100.0 * each.curves[:, v]
            marks.append(Band(self.seen, percent.min(axis=0), percent.max(axis=0), each.colour))
            marks.append(Line(self.seen, percent.mean(axis=0), each.colour, each.subject.label))
        chance = 100.0 / found[0].num_policies
        guess = Line([0, self.seen[-1]], [chance] * 2, None, "guessing", width=1.2, dashed=True)
        return Chart(
            marks=(*marks, guess),
            x=Axis("states learned from", from_zero=True, large=True),
            y=Axis("%", "accuracy, %", span=(0.0, 102.0)),
            label=f"Accuracy of the classifier on {place.name}.",
            height=220,
            name=place.name,
            note="" if place.name == TRAIN.name else place.description,
        )

    def bars_plate(
        self, suite: Suite, found: Sequence[Accuracy], places: Sequence[Variation]
    ) -> Plate:
        bars = [
            Bars(
                range(len(places)),
                100.0 * each.final.mean(axis=0),
                each.colour,
                each.subject.label,
                tuple(
                    f"{each.subject.label} on {place.name}: {100 * value:.0f} %"
                    for place, value in zip(places, each.final.mean(axis=0), strict=True)
                ),
                errors=100.0 * each.final.std(axis=0, ddof=1) if len(each.final) > 1 else None,
                group=each.subject.label,
            )
            for each in found
        ]
        chart = Chart(
            marks=tuple(bars),
            x=Axis(names=tuple(place.name for place in places)),
            y=Axis("accuracy, %", from_zero=True),
            label="Bar chart of the classifier's accuracy; the table holds its numbers.",
            height=80 + 40 * len(places),
            whiskers="± standard deviation over seeds",
        )
        return Plate(
            "accuracy",
            f"{suite.title}: how often a classifier names the policy",
            f"One of {found[0].num_policies}, from a single state. Whiskers: ± standard deviation "
            "over seeds.",
            (chart,),
        )

    def table(self, suite: Suite, found: Sequence[Accuracy], places: Sequence[Variation]) -> Table:
        columns = [Column("environment", words=True)]
        for each in found:
            columns += [Column(each.subject.label), Column("paper", quoted=True)]
        rows = [
            Row((place.name, *(c for each in found for c in self._cells(suite, each, [v]))))
            for v, place in enumerate(places)
        ]
        changed = list(range(1, len(places)))
        cells = [c for each in found for c in self._cells(suite, each, changed, average=True)]
        average = (Row(("average of the changed", *cells), kind="strong"),) if changed else ()
        return Table(
            f"{suite.title}: accuracy of a classifier of {found[0].num_policies} policies",
            tuple(columns),
            (tuple(rows), average),
            f"Mean ± standard deviation over seeds; {self.interactions:,} states to learn from and "
            f"as many of other episodes to be tested on; guessing has "
            f"{100 / found[0].num_policies:.0f} %.",
        )

    def _cells(
        self, suite: Suite, each: Accuracy, columns: list[int], *, average: bool = False
    ) -> list[str]:
        values = 100.0 * each.final[:, columns].mean(axis=1)
        spread = f" ± {values.std(ddof=1):.0f}" if len(values) > 1 else ""
        quoted = None
        if average or columns == [0]:
            quoted = paper_accuracy(suite.name, each.subject.method, changed=average)
        if quoted is None or each.num_policies != 5:
            return [f"{values.mean():.0f} %{spread}", "–"]
        return [f"{values.mean():.0f} %{spread}", f"{100 * quoted:.0f} %"]


@lru_cache(maxsize=8)
def _learning(
    hidden: tuple[int, ...], steps: int, moments: int, batch: int
) -> Callable[..., Array]:
    """Train one classifier a seed, compiled: (keys (S,), states (S, K, n, size) to learn from and
    to be tested on, learning rate) -> accuracies (S, moments + 1)."""

    def one_seed(key: Array, training: Array, validation: Array, rate: Array) -> Array:
        num_policies, _, size = training.shape
        init_key, key = jax.random.split(key)
        network = init_mlp(init_key, (size, *hidden, num_policies))
        adam = optax.adam(rate)
        states, policy = flat(training)
        tested, truth = flat(validation)

        def right(network: MLP) -> Array:
            return jnp.mean(jnp.argmax(network(tested), axis=-1) == truth)

        def loss(network: MLP, x: Array, y: Array) -> Array:
            logits = network(x)
            return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, y))

        def step(carry: Any, key: Array) -> tuple[Any, None]:
            network, memory = carry
            rows = jax.random.randint(key, (batch,), 0, len(states))
            gradient = jax.grad(loss)(network, states[rows], policy[rows])
            change, memory = adam.update(gradient, memory)
            return (optax.apply_updates(network, change), memory), None

        def moment(carry: Any, key: Array) -> tuple[Any, Array]:
            carry, _ = jax.lax.scan(step, carry, jax.random.split(key, steps))
            return carry, right(carry[0])

        first = right(network)
        keys = jax.random.split(key, moments)
        _, curve = jax.lax.scan(moment, (network, adam.init(network)), keys)
        return jnp.concatenate([first[None], curve])

    # One after the other: batched products of tiny matrices are slower than their sum.
    def all_seeds(keys: Array, training: Array, validation: Array, rate: Array) -> Array:
        def own(data: tuple[Array, Array, Array]) -> Array:
            return one_seed(data[0], data[1], data[2], rate)

        return jax.lax.map(own, (keys, training, validation))

    return jax.jit(all_seeds)


def flat(states: Array) -> tuple[Array, Array]:
    """States (K, n, size) in a row, and which policy visited each."""
    num_policies, num, size = states.shape
    return states.reshape(-1, size), jnp.repeat(jnp.arange(num_policies), num)
