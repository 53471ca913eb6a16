"""HalfCheetah with other parts and another world (Henderson et al.'s variations)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial

from slackline.envs.brax import HalfCheetah
from slackline.learn.hyper import Hyper
from slackline.suites.bodies import Change, friction, gravity, part_size, robot_suite, times
from slackline.suites.suite import Suite, Variation

FACTORS = {"Tiny": 0.5, "Small": 0.75, "Big": 1.25, "Huge": 1.5}

Changes = Mapping[str, tuple[str, Callable[[float], Change]]]
"""What changes, in words, and the change by a factor; by the end of a variation's name."""


def changes(*, softened: bool = False) -> Changes:
    """The paper's; softened, the engine softens what is done to a part, see `part_size`."""

    def of(part: str) -> tuple[str, Callable[[float], Change]]:
        owner = f"{part}'" if part.endswith("s") else f"{part}'s"
        words = f"{owner} mass and radius{' (softened)' if softened else ''}"
        return words, partial(part_size, part, softened=softened)

    return {
        "Feet": of("feet"),
        "Friction": ("friction", friction),
        "Gravity": ("gravity", gravity),
        "Shins": of("shins"),
        "Thighs": of("thighs"),
        "Torso": of("torso"),
    }


CHANGES = changes()
SOFTENED = changes(softened=True)

VARIED = (
    *((size, what) for size in ("Big", "Small") for what in CHANGES),
    *((size, what) for size in ("Huge", "Tiny") for what in ("Friction", "Gravity")),
)
"""The paper's sixteen, in its order."""

PAPER = Hyper(
    algorithm="ppo",
    policy_lr=3e-4,
    critic_lr=3e-4,
    discount=0.99,
    gae_lambda=0.96,
    entropy=0.0,
    max_grad_norm=10.0,
    clip=0.3,
    action_std=0.5,
    num_envs=2048,
    num_steps=20,
    epochs=8,
    minibatches=32,
    normalise_advantage=True,
    normalise_observation=True,
    block=128,
    hidden=(64,) * 4,
    critic_hidden=(256,) * 5,
    discriminator_lr=1e-4,
    discriminator_hidden=(64, 64),
)
"""The paper's table. Its minibatches are of sub-trajectories, 512 of them; ours of single steps. It
does not say whether observations and advantages are normalised; without, little is learned."""

FAST = replace(
    PAPER,
    policy_lr=1e-3,
    critic_lr=1e-3,
    final_lr=0.02,
    layer_norm=True,
    num_envs=256,
    num_steps=32,
    epochs=4,
    minibatches=8,
    block=64,
    hidden=(64, 64),
    critic_hidden=(128, 128),
    discriminator_lr=1e-3,
)
"""For a machine without a GPU: less than a tenth of the arithmetic per step, all of it in the
update, and more updates. Learning rates fall and layers are normalised,
which lifted the single policy on the seeds it was tried with."""

NOTE = (
    "The paper ran brax.v1, whose physics is gone: absolute returns do not compare with its table; "
    "ratios to Single come nearest to it. Its Brax tables select on one episode per policy, and so "
    "do we; resets are noisy, so the score is the mean of ten fresh ones. "
)
POWERS = "This engine integrates every mass to the power 0.7 and every inertia to the power 0.2; "
FLOOR = (
    "torso and shins pass through the floor (the head does not), so that their radius acts "
    "through inertia alone."
)
IN_FULL = POWERS + (
    "changes of parts act in full on what it integrates: a part × 1.25 weighs × 1.25; " + FLOOR
)
SOFT = POWERS + (
    "changes of parts are softened alike: a part × 1.25 weighs × 1.17 (halfcheetah has them in "
    "full); " + FLOOR
)
EXACT = "This engine takes masses and inertias as they are; " + FLOOR


def varied(size: str, what: str, changes: Changes = CHANGES) -> Variation:
    words, change = changes[what]
    return times(f"{size}{what}", words, FACTORS[size], change)


@cache
def on(engine: str) -> Suite:
    """The suite on one of Brax's physics engines."""
    return robot_suite(
        HalfCheetah,
        engine,
        variations=tuple(varied(*pair) for pair in VARIED),
        extras=(varied("Huge", "Torso"),),
        hyper=PAPER,
        exceptions={"lc": {"discriminator_lr": 1e-3}},
        presets={"fast": FAST},
        # A narrower fan than elsewhere: it scored more on `halfcheetah-dev`.
        options={
            "diayn_r": {"beta": 0.1},
            "lc": {"beta": 10.0},
            "fan": {"late_damping": 0.1, "angle": 60.0},
        },
        note=NOTE + (EXACT if engine == "generalized" else IN_FULL),
    )


SUITE = on("spring")

SOFT_SUITE = replace(
    SUITE,
    name="halfcheetah-soft",
    title="HalfCheetah, softened changes",
    variations=tuple(varied(*pair, SOFTENED) for pair in VARIED),
    extras=(varied("Huge", "Torso", SOFTENED),),
    note=NOTE + SOFT,
)
"""The same robot and the same names; parts change as they did before changes acted in full."""
