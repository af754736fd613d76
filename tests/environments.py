"""Environments that the tests register. Workers import this module by the id `environments:Name-v0`."""

from __future__ import annotations

import os
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple


class Point(gymnasium.Env):
    """A point on a line, pushed by an action in [-1, 1]; it should come to 0. Ten steps, no limit of its own."""

    def __init__(self, mode: str = "box") -> None:
        self.mode = mode
        low, high = (-1.0, 1.0)
        self.observation_space: Any = Box(-np.inf, np.inf, (1, 2), np.float32)
        self.action_space: Any = Box(low, high, (1,), np.float32)
        if mode == "choices":
            self.observation_space, self.action_space = Discrete(5, start=-2), Discrete(3, start=-1)
        if mode == "dict":
            self.observation_space = Dict(
                {"x": Box(-np.inf, np.inf, (1,)), "at": Tuple((Discrete(5, start=-2), MultiBinary(2)))}
            )
            self.action_space = Dict({"push": MultiDiscrete([3, 2], start=[-1, 0]), "bits": MultiBinary(2)})
        if mode == "text":
            self.observation_space = Text(5)
        if mode == "image":
            self.observation_space = Box(0, 255, (8, 8, 3), np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x, self.steps = float(self.np_random.uniform(-2.0, 2.0)), 0
        return self._seen(), {}

    def _seen(self) -> Any:
        if self.mode == "choices":
            return int(np.clip(round(self.x), -2, 2))
        if self.mode == "dict":
            at = int(np.clip(round(self.x), -2, 2))
            return {"x": np.array([self.x], dtype=np.float32), "at": (at, np.array([self.x > 0, 1], dtype=np.int8))}
        if self.mode == "blind":
            return np.array([[self.x, np.nan if self.steps == 3 else 1.0]], dtype=np.float32)
        if self.mode == "grow":
            return np.ones((1, 2 + (self.steps == 3)), dtype=np.float32)
        return np.array([[self.x, 1.0]], dtype=np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        if self.mode == "crash" and self.x > 1.0:
            raise ZeroDivisionError("boom")
        if self.mode == "hang" and self.x > 0.0:
            time.sleep(600.0)
        if self.mode == "death":
            os._exit(1)
        self.x += float(np.asarray(action["push"] if self.mode == "dict" else action).ravel()[0])
        self.steps += 1
        reward = float("nan") if self.mode == "nan" else -abs(self.x)
        return self._seen(), reward, self.steps == 10, False, {}


for _mode in ("box", "choices", "dict", "text", "image", "blind", "grow", "crash", "death", "hang", "nan"):
    if (_id := f"Point{_mode.title()}-v0") not in gymnasium.registry:  # doctests import this module by another name
        gymnasium.register(id=_id, entry_point=Point, kwargs={"mode": _mode})
