"""Reinforcement learning: policies trained by evolution strategies, on MuJoCo at the speed of the physics.

Needs the extra `rl`; importing this package alone does not.
"""

from cones.rl.api import Trained, evaluate, load_policy, replay, resume, train
from cones.rl.policy import Policy
from cones.rl.video import record_video

__all__ = ["Policy", "Trained", "evaluate", "load_policy", "record_video", "replay", "resume", "train"]
