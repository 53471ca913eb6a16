"""Latent spaces: how z is drawn at the start of an episode, and which K values adaptation tries."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from slackline.arrays import jax, jnp, namespace
from slackline.errors import SlacklineError, spelt
from slackline.io.decode import check, count, number, one_of
from slackline.methods.draws import uniform
from slackline.types import Array


class Latent(abc.ABC):
    """A set of z's with a sampling law."""

    size: int
    """How many numbers make up one z."""

    num_anchors: int
    """How many anchor coefficients `weights` returns."""

    describe: str
    """What a z looks like, for error messages."""

    is_line = False
    """Whether z has one degree of freedom: returns can be plotted against its first number."""

    num_trained = 1
    """How many policies are trained independently, each on its own samples."""

    def __post_init__(self) -> None:
        check(self)

    @property
    def has_choice(self) -> bool:
        """Whether there is more than one z."""
        return self.size > 0

    def show(self, z: Any) -> str:
        """z as a short text."""
        return f"{z[0]:.2f}" if self.is_line else " ".join(f"{x:.2f}" for x in z) or "–"

    @abc.abstractmethod
    def sample(self, key: Array, num: int) -> Array:
        """Draw z for `num` episodes: (num, size)."""

    @abc.abstractmethod
    def weights(self, z: Array) -> Array:
        """Anchor coefficients of z: (..., size) -> (..., num_anchors)."""

    @abc.abstractmethod
    def candidates(self, shots: int) -> np.ndarray:
        """At most `shots` values spread uniformly over the space: (K, size)."""

    def drawn_by(self, seed: int) -> Latent:
        """The same space for one training seed, where candidates are random draws: each seed has
        draws of its own, so that their luck averages out. Elsewhere the space itself."""
        return self

    @abc.abstractmethod
    def nested(self, num: int) -> np.ndarray:
        """At most `num` values, the middle first; a longer list begins with every shorter one."""

    def cover(self, num: int, *, wider: int = 3) -> np.ndarray:
        """z's all over the space, the middle first, (K, size): `num` of a line or a curve, `wider`
        times as many where z has more degrees of freedom; of finitely many at most as many."""
        return self.nested(num if self.is_line else wider * num)

    def grid(self, num: int) -> np.ndarray:
        """`num` z's spread as candidates are; of finitely many policies all: (K, size)."""
        return self.candidates(num)

    @abc.abstractmethod
    def contains(self, z: np.ndarray) -> bool:
        """Whether z (size,) belongs to the space."""

    @abc.abstractmethod
    def shorthand(self, value: float | None) -> np.ndarray | None:
        """The z that one number (or None) abbreviates; None where that is not a z."""

    def parse(self, z: Any) -> np.ndarray:
        """z as an array of the space, or an error that says what a z is. "centre" is its middle."""
        if isinstance(z, str) and z == CENTRE:
            z = self.nested(1)[0]
        array = as_floats(np.nan if z is None else z)
        if array is not None and array.ndim == 0:
            array = self.shorthand(None if z is None else float(array))
        fits = array is not None and array.shape == (self.size,) and np.isfinite(array).all()
        if array is None or not fits or not self.contains(array):
            raise SlacklineError(f"z is {spelt(z)}; it must be {self.describe}")
        return np.asarray(array, np.float32)


def only_anchor(z: Array) -> Array:
    """The coefficient 1 of the only anchor there is: (..., size) -> (..., 1)."""
    return namespace(z).ones((*z.shape[:-1], 1), np.float32)


NO_NUMBERS = "cmMV"
"""Kinds of arrays that NumPy would turn into floats all the same: complex numbers and times."""


def as_floats(value: Any) -> np.ndarray | None:
    """Whatever was given as an array of numbers, or None if it is none."""
    try:
        if np.asarray(value).dtype.kind in NO_NUMBERS:
            return None
        with np.errstate(over="ignore"):  # infinite then, which nobody takes
            return np.asarray(value, np.float32)
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class Point(Latent):
    """A single policy: z is empty and there is one candidate."""

    size = 0
    num_anchors = 1
    describe = "left out (there is only one policy)"

    def sample(self, key: Array, num: int) -> Array:
        return jnp.zeros((num, 0))

    def weights(self, z: Array) -> Array:
        return only_anchor(z)

    def candidates(self, shots: int) -> np.ndarray:
        return np.zeros((1, 0), np.float32)

    def nested(self, num: int) -> np.ndarray:
        return self.candidates(num)

    def contains(self, z: np.ndarray) -> bool:
        return True

    def shorthand(self, value: float | None) -> np.ndarray | None:
        return np.zeros(0) if value is None else None


@dataclass(frozen=True)
class Simplex(Latent):
    """z = (z_1 … z_N), non-negative with sum 1. N = 2 is a line."""

    anchors: int = count(low=2, high=64)
    spread: str = one_of("dirichlet", lambda: SPREADS)
    """How candidates of N > 2 anchors lie: flat Dirichlet draws (the paper), evenly spread, or
    corners first (the centre, the anchors, the midpoints between two, then evenly spread)."""
    concentration: float = number(1.0, low=0.01, high=1000.0)
    """Of the Dirichlet law z is trained with: 1 is flat (the paper), less is nearer to the anchors,
    more is nearer to the middle."""

    def drawn_by(self, seed: int) -> Simplex:
        if self.anchors == 2 or self.spread != "dirichlet":
            return self
        return DrawnSimplex(self.anchors, self.spread, self.concentration, seed)

    @property
    def size(self) -> int:
        return self.anchors

    @property
    def num_anchors(self) -> int:
        return self.anchors

    @property
    def is_line(self) -> bool:
        return self.anchors == 2

    @property
    def describe(self) -> str:
        also = " (or one number in [0, 1], the first of them)" if self.is_line else ""
        if self.anchors > WRITTEN_OUT:
            also = f" (or 'centre', or an anchor: '#1' to '#{self.anchors}')"
        return f"{self.anchors} non-negative numbers with sum 1{also}"

    def parse(self, z: Any) -> np.ndarray:
        if isinstance(z, str):
            z = {f"{ANCHOR}{k}": one for k, one in enumerate(np.eye(self.anchors), 1)}.get(z, z)
        return super().parse(z)

    def show(self, z: Any) -> str:
        """Of many anchors, only those that z has a share of: "centre", "#3", "0.5 #1 + 0.5 #3"."""
        if self.anchors <= WRITTEN_OUT:
            return super().show(z)
        shares = np.asarray(z, np.float64)
        if np.allclose(shares, 1.0 / self.anchors, atol=1e-3):
            return CENTRE
        largest = np.argsort(-shares, kind="stable")[:NAMED]
        named = [k for k in largest if shares[k] >= LEAST]
        if len(named) == 1 and shares[named[0]] >= 1.0 - LEAST:
            return f"{ANCHOR}{named[0] + 1}"
        rest = ["…"] if shares.sum() - shares[named].sum() >= LEAST else []
        return " + ".join([*(f"{shares[k]:.2f} {ANCHOR}{k + 1}" for k in named), *rest])

    def sample(self, key: Array, num: int) -> Array:
        """The spacings of N − 1 sorted uniforms follow the flat Dirichlet law."""
        if self.concentration != 1.0:
            return jax.random.dirichlet(key, jnp.full(self.anchors, self.concentration), (num,))
        return self._spacings(jax.random.uniform(key, (num, self.anchors - 1)))

    def _spacings(self, cuts: Any) -> Any:
        """The N lengths into which N − 1 points (num, N − 1) cut the unit interval."""
        num, xp = cuts.shape[0], namespace(cuts)
        if self.anchors > 2:
            cuts = xp.sort(cuts, axis=-1)
        edges = [xp.zeros((num, 1), np.float32), cuts, xp.ones((num, 1), np.float32)]
        return xp.diff(xp.concatenate(edges, axis=-1), axis=-1)

    def weights(self, z: Array) -> Array:
        return z

    def candidates(self, shots: int) -> np.ndarray:
        if self.anchors == 2:
            first = spread(shots)
            return np.stack([first, 1.0 - first], axis=-1)
        if self.spread == "even":
            return self._evenly(shots)
        if self.spread == "corners":
            return self.nested(shots)
        return self._drawn(shots, 0)

    def _drawn(self, shots: int, seed: int) -> np.ndarray:
        return self._spacings(uniform(seed, (shots, self.anchors - 1)))

    def nested(self, num: int) -> np.ndarray:
        if self.anchors == 2:
            first = halved(num)
            return np.stack([first, 1.0 - first], axis=-1)
        return np.concatenate([self._corners(), self._evenly(num)])[:num]

    def _evenly(self, num: int) -> np.ndarray:
        points = low_discrepancy(num, self.anchors - 1)
        return self._spacings(points)

    def _corners(self) -> np.ndarray:
        """The centre, the anchors, and the midpoint between any two."""
        anchors = np.eye(self.anchors, dtype=np.float32)
        pairs = [(a + b) / 2.0 for i, a in enumerate(anchors) for b in anchors[:i]]
        return np.stack([anchors.mean(axis=0), *anchors, *pairs])

    def contains(self, z: np.ndarray) -> bool:
        return bool((z >= -1e-6).all()) and abs(float(z.sum()) - 1.0) <= 1e-4

    def shorthand(self, value: float | None) -> np.ndarray | None:
        return None if value is None or self.anchors != 2 else np.array([value, 1.0 - value])


@dataclass(frozen=True)
class DrawnSimplex(Simplex):
    """A simplex as one training seed sees it. (Not the latent of a method: `seed` is no option.)"""

    seed: int = 0
    """Of the candidates' draw."""

    def candidates(self, shots: int) -> np.ndarray:
        return self._drawn(shots, self.seed)


CENTRE, ANCHOR = "centre", "#"
"""How z's of many anchors are named: "centre", "#3"."""

WRITTEN_OUT, NAMED, LEAST = 3, 3, 0.005
"""How many shares are written out; of more, how many of the largest, and the least that counts."""

SPREADS = ("dirichlet", "even", "corners")


def low_discrepancy(num: int, dimensions: int) -> np.ndarray:
    """Points that fill the unit cube evenly: Roberts' additive recurrence, (num, dimensions).

    x_n = frac(1/2 + n α), α_d = φ^−d, where φ is the root of φ^(dimensions + 1) = φ + 1.
    """
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    return ((0.5 + np.arange(1.0, num + 1)[:, None] * steps) % 1.0).astype(np.float32)


def spread(shots: int) -> np.ndarray:
    """K values evenly over [0, 1], ends included; the middle for K = 1."""
    return (
        np.linspace(0.0, 1.0, shots, dtype=np.float32) if shots > 1 else np.array([0.5], np.float32)
    )


def halved(num: int) -> np.ndarray:
    """The middle of [0, 1], its ends, then the middles between all neighbours, over and over."""
    found = [0.5, 0.0, 1.0]
    level = 4
    while len(found) < num:
        found += [k / level for k in range(1, level, 2)]
        level *= 2
    return np.array(found[:num], np.float32)


class UnitInterval(Latent):
    """z is one number in [0, 1], drawn uniformly."""

    size = 1
    is_line = True
    describe = "one number in [0, 1]"

    def sample(self, key: Array, num: int) -> Array:
        return jax.random.uniform(key, (num, 1))

    def candidates(self, shots: int) -> np.ndarray:
        return spread(shots)[:, None]

    def nested(self, num: int) -> np.ndarray:
        return halved(num)[:, None]

    def contains(self, z: np.ndarray) -> bool:
        return bool(((z >= 0.0) & (z <= 1.0)).all())

    def shorthand(self, value: float | None) -> np.ndarray | None:
        return None if value is None else np.array([value])


@dataclass(frozen=True)
class Interval(UnitInterval):
    """A number in [0, 1] that is an input of the policy, which has one anchor."""

    num_anchors = 1

    def weights(self, z: Array) -> Array:
        return only_anchor(z)


@dataclass(frozen=True)
class Bezier(UnitInterval):
    """A Bézier curve: θ(z) = Σ_k C(N−1, k) z^k (1−z)^(N−1−k) θ_k."""

    anchors: int = count(low=3, high=64)

    @property
    def num_anchors(self) -> int:
        return self.anchors

    def weights(self, z: Array) -> Array:
        degree = self.anchors - 1
        terms = [
            math.comb(degree, k) * z[..., 0] ** k * (1.0 - z[..., 0]) ** (degree - k)
            for k in range(self.anchors)
        ]
        return namespace(z).stack(terms, axis=-1)


class OneHot(Latent):
    """z is one-hot: one of a finite number of policies."""

    def show(self, z: Any) -> str:
        return f"#{int(np.argmax(z))}"

    def nested(self, num: int) -> np.ndarray:
        return np.eye(self.size, dtype=np.float32)[:num]

    def grid(self, num: int) -> np.ndarray:
        return self.nested(self.size)

    def sample(self, key: Array, num: int) -> Array:
        return jax.nn.one_hot(jax.random.randint(key, (num,), 0, self.size), self.size)

    def contains(self, z: np.ndarray) -> bool:
        return bool(((z == 0.0) | (z == 1.0)).all()) and float(z.sum()) == 1.0

    def shorthand(self, value: float | None) -> np.ndarray | None:
        if value is None or value not in range(self.size):
            return None
        return np.eye(self.size)[int(value)]

    @property
    def describe(self) -> str:
        return f"a one-hot vector of {self.size} (or its index, 0 to {self.size - 1})"


@dataclass(frozen=True)
class Skills(OneHot):
    """One of `skills` behaviours; the policy has z as an input."""

    skills: int = count(low=2, high=1024)
    num_anchors = 1

    @property
    def size(self) -> int:
        return self.skills

    def weights(self, z: Array) -> Array:
        return only_anchor(z)

    def candidates(self, shots: int) -> np.ndarray:
        if shots > self.skills:
            raise SlacklineError(
                f"shots is {shots}, but this method has {self.skills} skills and cannot try more: "
                f"train it with --skills {shots}, or adapt with --shots {self.skills}"
            )
        return np.eye(self.skills, dtype=np.float32)[:shots]


@dataclass(frozen=True)
class Members(OneHot):
    """One of `members` independently trained policies."""

    members: int = count(low=2, high=1024)

    @property
    def size(self) -> int:
        return self.members

    @property
    def num_anchors(self) -> int:
        return self.members

    @property
    def num_trained(self) -> int:
        return self.members

    def weights(self, z: Array) -> Array:
        return z

    def candidates(self, shots: int) -> np.ndarray:
        return np.eye(self.members, dtype=np.float32)[:shots]


@dataclass(frozen=True)
class Copies(Members):
    """A trained policy and noisy copies of it, made after training by `adapt/perturb.py`."""

    noise: float = number(0.1, above=0.0, high=100.0)
    """Standard deviation of the noise as a fraction of each tensor's root mean square."""

    @property
    def num_trained(self) -> int:
        return 1
