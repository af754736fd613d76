"""Optuna: CoNES as a sampler."""

try:
    from cones.integrations.optuna.sampler import CoNESSampler
except ImportError:
    from cones.extras import require_extra

    require_extra("optuna", "optuna", "cones.integrations.optuna")
    raise

__all__ = ["CoNESSampler"]
