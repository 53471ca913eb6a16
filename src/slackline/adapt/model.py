"""Noisy returns over z: a Gaussian process whose mean is the shape of the training return.

    the return of an episode at z = f(z) + noise
    f(z) = c + b t(z) + g(z),   c ~ N(mean, 9u²),  b ~ N(1/2, 1/4),  g ~ GP(0, σ² k(d(z, z') / ℓ))

t is the training return less that of the default z, k Matérn's kernel of order 3/2, d a distance in
which two anchors are 1 apart. How rough f is (σ, ℓ) and how noisy episodes are is averaged over a
grid by likelihood, in units u of how much the return was seen to change. So one lucky episode
counts for little, and where nothing is known the default z is best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from slackline.adapt.adapter import Choice, State, Tried, tried

NUM_POINTS, WIDER = 17, 6
"""z's of a line that are considered, and how many times as many elsewhere (`Latent.cover`)."""
MOST_SHOTS = 128
"""More different z's than the belief is meant to be computed for."""
LENGTHS, SIZES, NOISES = (0.15, 0.4, 1.2), (0.03, 0.1, 0.3, 1.0), (0.01, 0.03, 0.1, 0.3, 1.0)
GRID = np.array(list(product(LENGTHS, SIZES, NOISES)))
"""ℓ, and σ and the standard deviation of an episode in units u, (H, 3)."""
SMOOTHING = 0.1
"""Width of the kernel that smooths the training return."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
"""Gauss and Hermite's quadrature of a standard normal law."""


@dataclass(frozen=True, eq=False)
class Belief:
    """The posterior of the mean return at P z's: a multivariate normal distribution."""

    z: np.ndarray
    """(P, size); the first is the default z."""
    mean: np.ndarray
    """(P,)"""
    covariance: np.ndarray
    """(P, P)"""
    noise: float
    """Standard deviation of one episode's return."""

    def index(self, z: np.ndarray) -> int:
        """Which of the P is (nearest to) z."""
        return int(np.argmin(np.square(self.z - z).sum(axis=-1)))

    def choice(self, i: int) -> Choice:
        """The i-th z as an answer."""
        error = math.sqrt(max(self.covariance[i, i], 0.0))
        return Choice(self.z[i].copy(), float(self.mean[i]), error, self.better(i))

    def best(self) -> Choice:
        """The z with the highest mean; the default z where several tie. The law itself shrinks to
        the default z: a threshold of probability on top of it lost on development changes."""
        return self.choice(int(np.argmax(self.mean)))

    def better(self, i: int) -> float:
        """Probability that the i-th z returns more than the default z."""
        gap, cov = self.mean[i] - self.mean[0], self.covariance
        variance = cov[i, i] + cov[0, 0] - 2.0 * cov[i, 0]
        return normal_cdf(float(gap), max(float(variance), 0.0))

    def after(self, i: int) -> Belief:
        """The posterior once an episode at the i-th z is told, whatever it returns: the same mean,
        less variance."""
        column = self.covariance[:, i]
        known = np.outer(column, column) / max(column[i] + self.noise**2, 1e-300)
        return replace(self, covariance=self.covariance - known)


def normal_cdf(x: float, variance: float) -> float:
    """Probability that a normal law with mean x and this variance is above 0."""
    if variance <= 0.0:
        return 0.5 + 0.5 * float(np.sign(x))
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0 * variance)))


def believe(state: State) -> Belief:
    """The posterior after all that was told. Episodes that are not told yet reduce its variance and
    leave its mean."""
    z, data = considered(state), tried(state)
    shape, unit = training_shape(state, z), unit_of(state, data)
    if len(data.means):
        belief = posterior(z, shape, unit, data)
    else:
        level = 0.0 if state.prior is None else float(state.prior.mean.max())
        prior = covariances(z, shape, unit, GRID).mean(axis=0)
        belief = Belief(z, level + 0.5 * shape, prior, NOISES[-2] * unit)
    for out in state.asked[~state.told]:
        belief = belief.after(belief.index(out))
    return belief


def considered(state: State) -> np.ndarray:
    """The z's (P, size) to choose from: the default z first, then a cover of the space and all
    that was asked for."""
    latent = state.latent
    cover = latent.cover(NUM_POINTS, wider=WIDER)
    every = np.concatenate([state.default[None], cover, state.asked])
    if not latent.has_choice:
        return every[:1]
    return every[np.sort(np.unique(every, axis=0, return_index=True)[1])]


def unit_of(state: State, data: Tried) -> float:
    """u: the largest change of the return that was seen."""
    changes = [1e-6]
    if state.prior is not None:
        mean = state.prior.mean
        changes += [0.02 * abs(mean.max()), state.prior.noise, np.ptp(mean)]
    if len(data.means):
        average = np.average(data.means, weights=data.counts)
        squares = data.within + data.counts @ np.square(data.means - average)
        changes += [0.02 * abs(average), math.sqrt(squares / max(data.counts.sum() - 1, 1))]
        if state.prior is not None:
            changes += [abs(state.prior.mean.max() - average)]
    return float(max(changes))


def posterior(z: np.ndarray, shape: np.ndarray, unit: float, data: Tried) -> Belief:
    """The exact posteriors of all of `GRID`, averaged by their likelihoods to one normal law."""
    rows = [int(np.argmin(np.square(z - one).sum(axis=-1))) for one in data.z]
    expected = 0.5 * shape + np.average(data.means - 0.5 * shape[rows], weights=data.counts)
    surprise = data.means - expected[rows]
    prior, noise = covariances(z, shape, unit, GRID), GRID[:, 2] * unit
    seen = prior[:, rows]
    gram = seen[:, :, rows] + np.square(noise)[:, None, None] * np.diag(1.0 / data.counts)
    right = np.broadcast_to(surprise[:, None], (len(GRID), len(rows), 1))
    solved = np.linalg.solve(gram, np.concatenate([seen, right], axis=2))
    raised = np.swapaxes(seen, 1, 2) @ solved
    weight = _weights(gram, solved[..., -1] @ surprise, noise, data)
    mean = weight @ raised[..., -1]
    apart = raised[..., -1] - mean
    covariance = np.einsum("h,hij->ij", weight, prior - raised[..., :-1])
    covariance += np.einsum("h,hi,hj->ij", weight, apart, apart)
    return Belief(z, expected + mean, covariance, math.sqrt(weight @ np.square(noise)))


def _weights(gram: np.ndarray, misfit: np.ndarray, noise: np.ndarray, data: Tried) -> np.ndarray:
    """How likely the returns are under each of `GRID` (H,), as weights with sum 1."""
    repeats = data.counts.sum() - len(data.counts)
    within = data.within / np.square(noise) + 2.0 * repeats * np.log(noise)
    log = -0.5 * (misfit + np.linalg.slogdet(gram)[1] + within)
    weight = np.exp(log - log.max())
    return weight / weight.sum()


def covariances(z: np.ndarray, shape: np.ndarray, unit: float, grid: np.ndarray) -> np.ndarray:
    """Prior covariances of f at the z's, one for every row of the grid, (H, P, P)."""
    length, size = grid[:, 0, None, None], grid[:, 1, None, None] * unit
    scaled = math.sqrt(3.0) * distances(z, z) / length
    rough = size**2 * (1.0 + scaled) * np.exp(-scaled)
    return rough + 9.0 * unit**2 + 0.25 * np.outer(shape, shape)


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(A, B), in units of the distance between two anchors."""
    squares = np.square(a[:, None] - b[None]).sum(axis=-1)
    return np.sqrt(squares / 2.0 if a.shape[1] > 1 else squares)


def training_shape(state: State, z: np.ndarray) -> np.ndarray:
    """t: the smoothed training return at the z's (P,), less that of the first, the default z: where
    it seems higher, it differs by less than its noise."""
    if state.prior is None:
        return np.zeros(len(z))
    near = np.exp(-0.5 * np.square(distances(z, state.prior.z) / SMOOTHING)) + 1e-12
    smooth = near @ state.prior.mean / near.sum(axis=1)
    return np.minimum(smooth - smooth[0], 0.0)


def knowledge_gradient(belief: Belief) -> np.ndarray:
    """By how much an episode at each z (P,) is expected to raise the best mean.

    An episode at j moves the means by C[:, j] / √(C[j, j] + noise²) times a standard normal.
    """
    cov = belief.covariance
    step = cov / np.sqrt(np.maximum(np.diag(cov) + belief.noise**2, 1e-300))
    future = belief.mean[:, None, None] + step[:, :, None] * NODES
    return future.max(axis=0) @ (WEIGHTS / WEIGHTS.sum()) - belief.mean.max()
