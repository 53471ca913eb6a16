"""CartPole with other poles and motors (Packer & Gao's variations; "mass" is the pole's)."""

from slackline.envs.cartpole import CartPole
from slackline.learn.hyper import Hyper
from slackline.suites.suite import Protocol, Suite, setting

SUITE = Suite(
    name="cartpole",
    title="CartPole",
    env=CartPole(),
    horizon=200,
    bounds=(0.0, 200.0),
    variations=(
        setting("HeavyPole", pole_mass=1.0),
        setting("LightPole", pole_mass=0.001),
        setting("LongPole", length=1.0),
        setting("ShortPole", length=0.05),
        setting("StrongPush", force=20.0),
        setting("WeakPush", force=1.0),
    ),
    hyper=Hyper(
        algorithm="a2c",
        policy_lr=1e-3,
        critic_lr=1e-3,
        discount=0.99,
        gae_lambda=1.0,
        entropy=1e-3,
        max_grad_norm=2.0,
        num_envs=32,
        num_steps=8,
        hidden=(8, 8),
        critic_hidden=(8, 8),
    ),
    protocol=Protocol(steps=8_000_000, shots=10, episodes=10),
)
