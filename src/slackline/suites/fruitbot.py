"""Procgen's FruitBot, seen in pixels: ten levels to train on, thirty unseen ones to play."""

from dataclasses import replace

from slackline.envs.api import Discrete
from slackline.envs.envpool import EnvPoolEnv
from slackline.learn.hyper import Hyper
from slackline.suites.own import changed_options
from slackline.suites.suite import Protocol, Suite, Variation

LEVELS = 10
"""In training, and in each test: one of them is drawn for every episode."""

GAME = EnvPoolEnv(
    "fruitbot",
    64 * 64 * 3,
    Discrete(15),
    "FruitbotEasy-v0",
    {"num_levels": LEVELS, "start_level": 0},
    picture=(64, 64, 3),
    shortest_limit=1000,
)


def levels(first: int) -> Variation:
    """Other levels than those of the training."""
    changed = changed_options(f"Levels{first}", {"start_level": first})
    return replace(changed, description=f"levels {first} to {first + LEVELS - 1}")


PAPER = Hyper(
    algorithm="ppo",
    policy_lr=5e-4,
    discount=0.99,
    gae_lambda=0.0,
    entropy=0.01,
    max_grad_norm=20.0,
    clip=0.2,
    num_envs=64,
    num_steps=128,
    epochs=5,
    minibatches=8,
    channels=(16, 32, 32),
    hidden=(256,),
    critic_coefficient=1.0,
    discriminator_lr=5e-4,
    discriminator_hidden=(256,),
)
"""The paper's table and IMPALA's sizes. The table does not give PPO's clipping range."""

CPU = replace(
    PAPER,
    gae_lambda=0.95,
    normalise_advantage=True,
    max_grad_norm=0.5,
    num_envs=32,
    num_steps=64,
    epochs=2,
    patch=2,
    critic_coefficient=0.03,
)
"""For two cores. Seeing 2 × 2 pixels as one makes it four times as fast, two passes over what was
collected instead of five twice as fast again. What it learns from is PPO's usual advantage instead
of one step's, and the critic, whose errors are those of returns from −10 to 30, weighs less in what
both see with."""

QUICK = replace(
    CPU,
    policy_lr=7e-4,
    entropy=0.003,
    reward_scale=0.1,
    critic_coefficient=0.5,
    num_envs=64,
    num_steps=32,
    vision="strided",
    patch=8,
    channels=(16,),
    hidden=(128,),
    discriminator_hidden=(128,),
)
"""For one core: every square of 8 × 8 pixels is seen by itself through sixteen filters. Its
convolution costs a forty-fifth of `CPU`'s, so that more pictures are seen in the same time."""

SUITE = Suite(
    name="fruitbot",
    title="FruitBot",
    env=GAME,
    horizon=1000,
    variations=tuple(map(levels, (100, 200, 300))),
    hyper=PAPER,
    presets={"cpu": CPU, "quick": QUICK},
    # The paper does not say how long it trains; 25 million steps are Procgen's easy benchmark.
    protocol=Protocol(steps=25_000_000, shots=10, episodes=16, score_episodes=100),
    # LoP has β = 1 (the paper's section 4). Of DIAYN+R the paper shows the best of several.
    options={"diayn_r": {"beta": 0.1}},
    digits=1,
    note=(
        "Procgen's easy mode. The paper says neither which mode it played nor for how long: "
        "compare methods with each other, not these numbers with the paper's. A policy plays a "
        "level the same way every time and each set has ten levels, so that the fresh episodes of "
        "the chosen z are mostly those it was chosen by once more."
    ),
)
