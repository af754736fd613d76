"""Train a policy on an environment of your own.

    pip install ".[rl]"
    python examples/gymnasium_environment.py

On the command line: cones train gymnasium_environment:Parking-v0, in the folder of this file.
"""

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from cones import rl


class Parking(gymnasium.Env):
    """A car on a line is to come to rest at 0; the action pushes it left or right."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)  # position and speed
    action_space = Box(-1.0, 1.0, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.speed, self.steps = self.np_random.uniform(-2.0, 2.0), 0.0, 0
        return self.seen(), {}

    def step(self, action):
        self.speed += 0.2 * float(action[0])
        self.position += 0.2 * self.speed
        self.steps += 1
        reward = -abs(self.position) - 0.1 * abs(self.speed)
        return self.seen(), reward, False, self.steps == 50, {}

    def seen(self):
        return np.array([self.position, self.speed])


# By the name of this module, so that the processes that run the environments find it, too.
gymnasium.register("Parking-v0", "gymnasium_environment:Parking")


def main() -> None:
    trained = rl.train("gymnasium_environment:Parking-v0", timesteps=60_000, popsize=20, hidden=[], rng=0, threads=2)
    rewards = trained.history["population_reward"]
    print(f"reward of the population at first {rewards[0]:.1f}, of the mean policy at last {trained.reward:.1f}")
    returns = rl.evaluate(trained.policy, episodes=20, threads=2).returns
    print(f"twenty new episodes: {returns.mean():.1f} ± {returns.std():.1f}")


if __name__ == "__main__":
    main()
