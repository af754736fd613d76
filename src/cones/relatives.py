"""Relatives of CoNES that its paper discusses, composed of the same components.

| method | estimate | step |
| --- | --- | --- |
| `ARS` | best directions | over the losses' standard deviation; fixed covariance |
| `TRES` | clipped surrogate, several epochs per population | the plain gradient by Adam; fixed covariance |
| `MORE` | quadratic model | KL ball and a bound on the entropy, linear in the moments |
| `TRCMA` | weighted candidates and an evolution path | maximum likelihood in three KL(old || new) balls |

Each takes the shared settings (`cones.composition.Settings`) and `step`. What a method adds are settings of its
components: `cones.MORE(x0, step="more,radius=0.5")`, `cones.ARS(x0, estimator="best_directions,share=0.5")`.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from cones.beliefs import Belief
from cones.component import component_from
from cones.composition import Settings, Text, compose, given_of, show_settings
from cones.defaults import path_popsize
from cones.errors import InputError
from cones.estimators.quadratic import LARGEST_DIMENSION
from cones.optimizers import Adam, Direct
from cones.steps import StepRule
from cones.strategy import Strategy

__all__ = ["ARS", "MORE", "TRCMA", "TRES"]

Start = ArrayLike | Belief


@show_settings
def ARS(
    x0: Start, sigma0: ArrayLike | None = None, *, step: Text | StepRule = "ars", **settings: Unpack[Settings]
) -> Strategy:
    """Augmented random search: pairs of candidates, the best of them, steps over the losses' standard deviation.

    The covariance stays: `sigma0` is the paper's nu, 0.03 there. Defaults: 8 pairs, all of them count, and a step size
    of 0.02. `estimator="best_directions,share=0.5"` keeps the better half, `step="ars,step_size=0.1"` changes the step.

    Args:
        x0, sigma0: initial mean and standard deviation, as for `cones.CoNES`.
        step: the step rule.
        **settings: see `cones.methods.Settings`.

    Example:
        >>> import cones
        >>> cones.minimize(lambda x: (x**2).sum(), [1.0] * 4, method="ars", sigma0=0.1, rng=0, ftarget=0.01).success
        True

    Reference: Mania, Guy & Recht, Simple Random Search of Static Linear Policies is Competitive for Reinforcement
    Learning, NeurIPS 2018.
    """
    ours = {"popsize": 16, "estimator": "best_directions", "shaping": "standardised", "optimizer": Direct()}
    return _relative("ARS", x0, sigma0, step, ours, settings)


@show_settings
def TRES(
    x0: Start, sigma0: ArrayLike | None = None, *, step: Text | StepRule = "plain", **settings: Unpack[Settings]
) -> Strategy:
    """Trust region evolution strategies: several epochs of Adam on the clipped surrogate of each population.

    The covariance stays, and the belief is diagonal. Defaults: 100 candidates, ten epochs with a learning rate of 0.01
    and a clip of 0.2 (`estimator="clipped,epochs=10,clip=0.2"`). One epoch is `cones.ES` with a fixed covariance.

    Args:
        x0, sigma0: initial mean and standard deviation, as for `cones.CoNES`.
        step: the step rule; "natural" and "convex,radius=R" work, too.
        **settings: see `cones.methods.Settings`.

    Example:
        >>> import cones
        >>> cones.minimize(lambda x: (x**2).sum(), [1.0] * 4, method="tres", sigma0=0.1, rng=0, ftarget=0.01).success
        True

    Reference: Liu et al., Trust Region Evolution Strategies, AAAI 2019.
    """
    ours = {"estimator": "clipped", "optimizer": Adam(0.01, 0.0)}
    return _relative("TRES", x0, sigma0, step, ours, settings)


@show_settings
def MORE(
    x0: Start, sigma0: ArrayLike | None = None, *, step: Text | StepRule = "more", **settings: Unpack[Settings]
) -> Strategy:
    """Model-based relative entropy stochastic search: a quadratic model, a KL ball and a bound on the entropy.

    A full covariance, up to 64 dimensions. Defaults: KL <= 1, and each iteration keeps 99% of the entropy above -75
    nats: `step="more,radius=1.0,rate=0.99,least_entropy=-75"`. The model is that of `estimator="quadratic"`.

    Args:
        x0, sigma0: initial mean and standard deviation, as for `cones.CoNES`.
        step: the step rule.
        **settings: see `cones.methods.Settings`.

    Example:
        >>> import cones
        >>> cones.minimize(lambda x: (x**2).sum(), [1.0] * 4, method="more", rng=0, ftarget=1e-6).success
        True

    Reference: Abdolmaleki et al., Model-Based Relative Entropy Stochastic Search, NeurIPS 2015.
    """
    size = _size(x0)
    if size > LARGEST_DIMENSION and settings.get("estimator") in (None, "quadratic"):
        raise InputError(f"x0: expected at most {LARGEST_DIMENSION} coordinates for MORE's quadratic model, got {size}")
    return _relative("MORE", x0, sigma0, step, {**_as_cma(x0), "estimator": "quadratic"}, settings)


@show_settings
def TRCMA(
    x0: Start, sigma0: ArrayLike | None = None, *, step: Text | StepRule = "tr_cma", **settings: Unpack[Settings]
) -> Strategy:
    """Trust-region CMA-ES: weighted maximum likelihood with KL bounds for mean, scale and shape.

    A full covariance, and the popsize and weights of CMA-ES. `step="tr_cma,mean=2,shape=0.5"` changes the bounds.

    Args:
        x0, sigma0: initial mean and standard deviation, as for `cones.CoNES`.
        step: the step rule.
        **settings: see `cones.methods.Settings`.

    Example:
        >>> import cones
        >>> cones.minimize(lambda x: (x**2).sum(), [1.0] * 4, method="trcma", rng=0, ftarget=1e-6).success
        True

    Reference: Abdolmaleki et al., Deriving and Improving CMA-ES with Information Geometric Trust Regions, GECCO 2017.
    """
    return _relative("TRCMA", x0, sigma0, step, {**_as_cma(x0), "estimator": "recombination"}, settings)


def _relative(
    method: str, x0: Start, sigma0: ArrayLike | None, step: Any, ours: dict[str, Any], settings: Settings
) -> Strategy:
    rule: StepRule = component_from("step", step)
    return compose(method, x0, sigma0, rule, ("step",), **{**ours, **given_of(settings)})


def _as_cma(x0: Start) -> dict[str, Any]:
    """A full covariance with the popsize and the weights of CMA-ES."""
    ours = {
        "popsize": path_popsize(_size(x0)),
        "antithetic": False,
        "shaping": "recombination_weights",
        "optimizer": Direct(),
    }
    return ours if isinstance(x0, Belief) else {"belief": "full", **ours}


def _size(x0: Start) -> int:
    return x0.dim if isinstance(x0, Belief) else max(int(np.size(x0)), 1)
