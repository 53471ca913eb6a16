"""Pendulum as Gymnasium has it, with a continuous torque; not in the paper."""

from slackline.envs.pendulum import Pendulum
from slackline.learn.hyper import Hyper
from slackline.suites.pendulum import VARIATIONS
from slackline.suites.suite import Protocol, Suite

SUITE = Suite(
    name="pendulum-continuous",
    title="Pendulum, continuous torque",
    env=Pendulum(),
    horizon=200,
    variations=VARIATIONS,
    hyper=Hyper(
        algorithm="ppo",
        policy_lr=1e-3,
        critic_lr=1e-3,
        discount=0.95,
        gae_lambda=0.95,
        entropy=0.0,
        max_grad_norm=0.5,
        clip=0.2,
        action_std=0.5,
        num_envs=64,
        num_steps=32,
        epochs=10,
        minibatches=8,
        normalise_advantage=True,
        hidden=(32, 32),
        critic_hidden=(64, 64),
        discriminator_hidden=(32, 32),
    ),
    protocol=Protocol(steps=1_000_000, shots=10, episodes=10),
)
