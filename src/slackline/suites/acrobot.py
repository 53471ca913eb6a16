"""Acrobot with other links (Packer & Gao's variations).

They change both links together and leave the centre of mass 0.5 from the joint whatever the length.
The paper's table gives the training mass as 0.1: a slip for Gymnasium's 1.0.
"""

from slackline.envs.acrobot import Acrobot
from slackline.learn.hyper import Hyper
from slackline.suites.suite import Protocol, Suite, setting

SUITE = Suite(
    name="acrobot",
    title="Acrobot",
    env=Acrobot(),
    horizon=500,
    bounds=(-500.0, 0.0),
    variations=(
        setting("Heavy", mass=1.5),
        setting("HighInertia", inertia=1.5),
        setting("Light", mass=0.5),
        setting("Long", length=1.5),
        setting("LowInertia", inertia=0.5),
        setting("Short", length=0.5),
    ),
    hyper=Hyper(
        algorithm="a2c",
        policy_lr=1e-3,
        critic_lr=1e-3,
        discount=0.99,
        gae_lambda=0.7,
        entropy=1e-3,
        max_grad_norm=2.0,
        num_envs=32,
        num_steps=8,
        hidden=(16, 16),
        critic_hidden=(16, 16),
        discriminator_lr=1e-3,
        discriminator_hidden=(16, 16),
    ),
    protocol=Protocol(steps=3_000_000, shots=10, episodes=10),
)
