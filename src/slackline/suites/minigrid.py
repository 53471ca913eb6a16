"""MiniGrid's MultiRoom: one small maze to train in, other and larger ones to find the way in."""

from collections.abc import Callable

from slackline.envs.minigrid import MultiRoom, MultiRoomParams, check_maze, generate
from slackline.learn.hyper import Hyper
from slackline.suites.suite import Protocol, Suite, Variation


def maze(seed: int, rooms: int = 2, size: int = 4) -> Callable[[MultiRoomParams], MultiRoomParams]:
    """Another maze instead: the one that MultiRoom-N{rooms}-S{size} has for this seed."""
    check_maze(seed, rooms, size)
    return lambda _: generate(seed, rooms, size)


def two_rooms(number: int) -> Variation:
    words = f"MultiRoom-N2-S4, seed {number}: two rooms, 40 steps"
    return Variation(f"TwoRoomsMaze{number}", words, maze(number, rooms=2, size=4))


def four_rooms(number: int) -> Variation:
    words = f"MultiRoom-N4-S5, seed {number}: four rooms, 80 steps"
    return Variation(f"FourRoomsMaze{number}", words, maze(number, rooms=4, size=5))


PAPER = Hyper(
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
)
"""The paper's table. It has one learning rate and one width for policy and critic, and does not say
how the image is shown to them; here it is flat, with MiniGrid's numbers as they are."""

SUITE = Suite(
    name="minigrid",
    title="MiniGrid",
    env=MultiRoom(),
    horizon=120,  # six rooms, the most a maze may have; every maze brings its own, shorter limit
    # Training has the two rooms of seed 0. All seeds were chosen before anything was trained.
    bounds=(0.0, 1.0),
    variations=(*map(two_rooms, (1, 2, 3)), *map(four_rooms, (1, 2, 3))),
    hyper=PAPER,
    # The paper does not say how long it trains. On the training maze Single and LoP gain nothing
    # more after about half of this.
    protocol=Protocol(steps=1_000_000, shots=10, episodes=1, score_episodes=1),
    digits=3,  # as the paper's table has: all returns lie between 0 and 1
    note=(
        "The paper does not say which mazes it used nor how long it trained. Ours are those that "
        "MiniGrid makes for the seeds named here: compare methods with each other, not these "
        "numbers with the paper's. Four rooms are meant by N4-S5, as the paper says; MiniGrid's "
        "id MultiRoom-N4-S5-v0 has six by mistake, v1 four. Mazes and policies are deterministic, "
        "so that the fresh episode of the chosen z is the one it was chosen by once more."
    ),
)
