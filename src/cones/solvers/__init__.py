"""Solvers of the step problem."""

from cones.solvers.step_problem import SOLVERS, FrameStep, Step, StepStatus, solve_frame, solve_step

__all__ = ["SOLVERS", "FrameStep", "Step", "StepStatus", "solve_frame", "solve_step"]
