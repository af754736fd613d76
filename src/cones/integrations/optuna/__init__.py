"""Optuna: CoNES as a sampler."""

from cones.integrations.optuna.sampler import CoNESSampler

__all__ = ["CoNESSampler"]
