"""Gymnasium's MuJoCo tasks as data: the model, what is observed, the reward, when an episode ends, how it starts.

Rewards, with a the action, v the velocity of a point, F the contact forces:

forward    weight v + bonus - cost |a|^2 - contact |F|^2
stand      height / (time step of the simulation) - cost |a|^2 - contact |F|^2 + bonus
balance    bonus - 0.01 x^2 - (y - 2)^2 - 0.001 w_1^2 - 0.005 w_2^2, of the tip (x, y) and the angular velocities w
reach      -|object - goal| - cost |a|^2 - near |object - hand|
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

__all__ = ["FUNCTIONS", "PHYSICS", "POINTS", "REWARDS", "SOURCES", "Bound", "Part", "Physics"]

INF = math.inf
# Arrays of MuJoCo's MjData, in the order in which the kernel has them; the first two are the state.
SOURCES = (
    "qpos", "qvel", "cinert", "cvel", "qfrc_actuator", "qfrc_constraint", "cfrc_ext", "xpos", "xipos", "site_xpos"
)  # fmt: skip
FUNCTIONS = ("value", "sin", "cos")
REWARDS = ("forward", "stand", "balance", "reach")
POINTS = ("qpos", "torso", "mass")


@dataclass(frozen=True)
class Part:
    """A part of the observation: numbers of one source, clipped to [-limit, limit]."""

    source: str
    first: int = 0
    stop: int | None = None
    function: str = "value"
    limit: float = INF
    body: str = ""  # begin at this body, of the sources that have a row per body
    minus: str = ""  # subtract the numbers of this body


@dataclass(frozen=True)
class Bound:
    """An episode ends when this coordinate leaves the open interval (low, high)."""

    source: str
    index: int
    low: float
    high: float


@dataclass(frozen=True)
class Physics:
    """A task on a MuJoCo model; see the equations above.

    Args:
        frames: steps of simulation per step of the environment.
        point: the coordinate whose velocity is paid: "qpos", "torso" or "mass", the centre of mass.
        bonus_when_healthy: True if the bonus is not paid in the step that ends the episode.
        contact: weight of the squared contact forces, each clipped to `force_limit`, their cost to `contact_limit`.
        state_limit: an episode ends when a coordinate of the state, but the first two, is beyond it.
        start: how an episode starts: "uniform" and "normal" noise on velocities, or the tasks' own "reacher", "pusher".
        reward_first: True if the reward is that of the state before the step.
    """

    model: str
    frames: int
    parts: tuple[Part, ...]
    reward: str = "forward"
    weight: float = 1.0
    bonus: float = 0.0
    bonus_when_healthy: bool = False
    cost: float = 1e-3
    contact: float = 0.0
    force_limit: float = INF
    contact_limit: float = INF
    near: float = 0.0
    point: str = "qpos"
    bodies: tuple[str, str, str] | None = None  # object, goal and hand of the reward "reach"
    bounds: tuple[Bound, ...] = ()
    state_limit: float = INF
    start: str = "uniform"
    reset_noise: float = 5e-3
    reward_first: bool = False
    horizon: int = 1000

    @property
    def has_forces(self) -> bool:
        """True if contact forces are to be computed, which MuJoCo does not do by itself."""
        return self.contact > 0.0 or any(part.source == "cfrc_ext" for part in self.parts)


def _closed(source: str, index: int, low: float, high: float) -> Bound:
    return Bound(source, index, math.nextafter(low, -INF), math.nextafter(high, INF))


def _state(skipped: int, velocity_limit: float = INF) -> tuple[Part, ...]:
    return Part("qpos", skipped), Part("qvel", limit=velocity_limit)


def _humanoid(first_body: int, first_joint: int) -> tuple[Part, ...]:
    return (
        *_state(2),
        Part("cinert", 10 * first_body),
        Part("cvel", 6 * first_body),
        Part("qfrc_actuator", first_joint),
        Part("cfrc_ext", 6 * first_body),
    )


def _double_pendulum(forces: int) -> tuple[Part, ...]:
    angles = (Part("qpos", 1, function="sin"), Part("qpos", 1, function="cos"))
    return Part("qpos", 0, 1), *angles, Part("qvel", limit=10.0), Part("qfrc_constraint", 0, forces, limit=10.0)


def _reacher(distances: int) -> tuple[Part, ...]:
    angles = (Part("qpos", 0, 2, "cos"), Part("qpos", 0, 2, "sin"))
    return *angles, Part("qpos", 2), Part("qvel", 0, 2), Part("xpos", 0, distances, body="fingertip", minus="target")


_cheetah = Physics("half_cheetah.xml", 5, _state(1), cost=0.1, start="normal", reset_noise=0.1)
_swimmer = Physics("swimmer.xml", 4, _state(2), cost=1e-4, reset_noise=0.1)
_walker = Physics(
    "walker2d.xml", 4, _state(1, 10.0), bonus=1.0, bounds=(Bound("qpos", 1, 0.8, 2.0), Bound("qpos", 2, -1.0, 1.0))
)
_hopper = Physics(
    "hopper.xml", 4, _state(1, 10.0), bonus=1.0, state_limit=100.0,
    bounds=(Bound("qpos", 1, 0.7, INF), Bound("qpos", 2, -0.2, 0.2)),
)  # fmt: skip
_ant = Physics(
    "ant.xml", 5, _state(2), bonus=1.0, cost=0.5, point="torso", bounds=(_closed("qpos", 2, 0.2, 1.0),),
    start="normal", reset_noise=0.1,
)  # fmt: skip
_human = Physics(
    "humanoid.xml", 5, _humanoid(0, 0), weight=1.25, bonus=5.0, cost=0.1, point="mass",
    bounds=(Bound("qpos", 2, 1.0, 2.0),), reset_noise=0.01,
)  # fmt: skip
_standup = Physics(
    "humanoidstandup.xml", 5, _humanoid(0, 0), "stand", bonus=1.0, cost=0.1, contact=0.5e-6, contact_limit=10.0,
    reset_noise=0.01,
)  # fmt: skip
_pendulum = Physics(
    "inverted_pendulum.xml", 2, _state(0), weight=0.0, bonus=1.0, cost=0.0, bounds=(_closed("qpos", 1, -0.2, 0.2),),
    reset_noise=0.01,
)  # fmt: skip
_double = Physics(
    "inverted_double_pendulum.xml", 5, _double_pendulum(3), "balance", bonus=10.0,
    bounds=(Bound("site_xpos", 2, 1.0, INF),), start="normal", reset_noise=0.1,
)  # fmt: skip
_reach = Physics(
    "reacher.xml", 2, _reacher(3), "reach", cost=1.0, bodies=("fingertip", "target", "fingertip"), start="reacher",
    reward_first=True, horizon=50,
)  # fmt: skip
_push = Physics(
    "pusher_v5.xml", 5,
    (
        *(Part("qpos", 0, 7), Part("qvel", 0, 7)),
        *(Part("xpos", 0, 3, body=body) for body in ("tips_arm", "object", "goal")),
    ),
    "reach", cost=0.1, near=0.5, bodies=("object", "goal", "tips_arm"), start="pusher", horizon=100,
)  # fmt: skip

# Pusher-v4 is not here: gymnasium makes it with MuJoCo 2 alone.
PHYSICS = {
    "HalfCheetah-v4": _cheetah,
    "HalfCheetah-v5": _cheetah,
    "Swimmer-v4": _swimmer,
    "Swimmer-v5": _swimmer,
    "Walker2d-v4": _walker,
    "Walker2d-v5": replace(_walker, model="walker2d_v5.xml", bonus_when_healthy=True),
    "Hopper-v4": _hopper,
    "Hopper-v5": replace(_hopper, bonus_when_healthy=True),
    "Ant-v4": _ant,
    "Ant-v5": replace(
        _ant,
        parts=(*_state(2), Part("cfrc_ext", 6, limit=1.0)),
        contact=5e-4,
        force_limit=1.0,
        bonus_when_healthy=True,
    ),
    "Humanoid-v4": _human,
    "Humanoid-v5": replace(_human, parts=_humanoid(1, 6), contact=5e-7, contact_limit=10.0, bonus_when_healthy=True),
    "HumanoidStandup-v4": _standup,
    "HumanoidStandup-v5": replace(_standup, parts=_humanoid(1, 6)),
    "InvertedPendulum-v4": _pendulum,
    "InvertedPendulum-v5": replace(_pendulum, bonus_when_healthy=True),
    "InvertedDoublePendulum-v4": _double,
    "InvertedDoublePendulum-v5": replace(_double, parts=_double_pendulum(1), bonus_when_healthy=True),
    "Reacher-v4": _reach,
    "Reacher-v5": replace(_reach, parts=_reacher(2), reward_first=False),
    "Pusher-v5": _push,
}
