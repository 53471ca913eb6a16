"""What can be changed about motors and sensors, in the parameters of an `Impaired` environment.

Each function returns a function from parameters to changed parameters, as those of `bodies` do:
`line.adapt(weak_motor(0, 0.5), suite="halfcheetah-hard")`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from slackline.envs.api import Params
from slackline.envs.impaired import MAX_LATENCY, ImpairedParams
from slackline.errors import SlacklineError, require_count, require_number

Change = Callable[[ImpairedParams], ImpairedParams]


def inside(change: Callable[[Params], Params]) -> Change:
    """A change of the environment that has the motors and sensors."""
    return lambda params: params._replace(inner=change(params.inner))


def weak_motor(motor: int, gain: float) -> Change:
    """One motor does `gain` × the commanded action; 0 is dead. Motors are numbered as actions
    are."""
    require_number("gain of a motor", gain, low=0.0, high=1.0)

    def change(params: ImpairedParams) -> ImpairedParams:
        require_count("motor", motor, low=0, high=len(params.gains) - 1)
        gains = np.array(params.gains, np.float32)
        gains[motor] *= gain
        return params._replace(gains=gains)

    return change


def latency(steps: int) -> Change:
    """Actions reach the motors so many steps late; until the first one does, they are idle."""
    require_count("latency", steps, low=0, high=MAX_LATENCY)
    return lambda params: params._replace(latency=np.int32(steps))


def sensor_noise(std: Sequence[float]) -> Change:
    """Normal noise on every sensor, drawn anew in every step; in the observation's units."""
    for value in std:
        require_number("standard deviation of a sensor's noise", value, low=0.0)
    return lambda params: params._replace(noise=_of_sensors("noise", std, params))


def sensor_bias(offset: Sequence[float]) -> Change:
    """A constant error of every sensor, in the observation's units."""
    for value in offset:
        require_number("bias of a sensor", value)
    return lambda params: params._replace(bias=_of_sensors("bias", offset, params))


def _of_sensors(what: str, values: Sequence[float], params: ImpairedParams) -> np.ndarray:
    size = len(params.bias)
    if len(values) != size:
        raise SlacklineError(
            f"{what} has {len(values)} numbers; there must be {size}, one a sensor"
        )
    return np.array(values, np.float32)
