"""PyTorch: the parameters of a module as a vector, and training a module without gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cones.extras import require_extra
from cones.result import Result
from cones.run.minimize import minimize
from cones.types import Matrix, Vector

try:
    import torch
except ImportError:
    require_extra("torch", "torch", "cones.integrations.torch")
    raise

__all__ = ["minimize_module", "parameters_from_vector", "parameters_to_vector"]

# Arguments of `minimize` that are refused, and the reason.
NOT_FOR_HERE = {
    "args": "bind them in loss",
    "vectorized": "use vmap=True",
    "workers": "the module's device evaluates a population",
    "timeout": "this process evaluates a population",
    "retries": "this process evaluates a population",
    "checkpoint": "the order of batches cannot be stored; save module.state_dict() in the callback",
}


def parameters_to_vector(module: torch.nn.Module) -> Vector:
    """The trainable parameters of a module as one vector of float64, in the order of `module.parameters()`.

    It leaves out buffers and parameters with `requires_grad=False`. It contains a shared parameter once.

    Example:
        >>> parameters_to_vector(torch.nn.Linear(3, 2)).shape
        (8,)
    """
    pieces = [parameter.detach().cpu().double().numpy().ravel() for parameter in _trainable(module).values()]
    return np.concatenate(pieces)


def parameters_from_vector(module: torch.nn.Module, vector: ArrayLike) -> None:
    """Copy a vector into the trainable parameters of a module, each with its own shape, dtype and device.

    Example:
        >>> layer = torch.nn.Linear(1, 1)
        >>> parameters_from_vector(layer, [2.0, 1.0])
        >>> layer(torch.tensor([3.0])).item()
        7.0
    """
    parameters = _trainable(module)
    flat = np.asarray(vector, dtype=np.float64)
    size = sum(parameter.numel() for parameter in parameters.values())
    if flat.shape != (size,):
        raise ValueError(f"vector: expected shape ({size},), the trainable parameters of the module, got {flat.shape}")
    with torch.no_grad():
        for parameter, piece in _pieces(parameters, torch.tensor(flat)):
            parameter.copy_(piece)


def minimize_module(
    module: torch.nn.Module,
    loss: Callable[..., Any],
    batches: Iterable[Any] | None = None,
    *,
    vmap: bool = False,
    callback: Callable[..., Any] | None = None,
    **settings: Any,
) -> Result:
    """Train a module without gradients. The loss need not be differentiable.

    All candidates of an iteration see the same batch; the next iteration sees the next batch. Every candidate starts
    with the same buffers (such as running means), which are restored in the end. Training mode stays as you set it:
    dropout adds noise, and `module.eval()` switches it off.

    Args:
        module: the search is over its trainable parameters. They end at `result.mean`, the mean of the belief: the best
            candidate was best on its own batch only.
        loss: `loss(module, batch)`, a number or a tensor with one element; `loss(module)` without batches.
        batches: an iterable of batches, such as a `DataLoader`. It starts again when it ends.
        vmap: evaluate the whole population by `torch.func.vmap`. The loss must be vectorisable (tensors in, tensor out;
            no `.item()`). This is several times faster for small modules, and not for large ones.
        callback: as for `cones.minimize`.
        **settings: as for `cones.minimize`, such as sigma0, popsize, maxiter, maxtime, rng, method, disp. With batches
            `noisy` is True by default.

    Returns:
        The result of `cones.minimize`. An exception leaves the parameters as they were.

    Example:
        >>> x = torch.linspace(-1.0, 1.0, 20).reshape(-1, 1)
        >>> layer = torch.nn.Linear(1, 1)
        >>> def loss(layer):
        ...     return ((layer(x) - (3.0 * x + 1.0)) ** 2).mean()
        >>> result = minimize_module(layer, loss, vmap=True, rng=0, ftarget=1e-4)
        >>> result.stop, round(float(result.x[0])), round(float(result.x[1]))
        ('ftarget', 3, 1)
    """
    for name in NOT_FOR_HERE:
        if name in settings:
            raise TypeError(f"minimize_module() takes no argument {name!r}: {NOT_FOR_HERE[name]}")
    population = _Population(module, loss, batches, vmap)
    vector = start = parameters_to_vector(module)
    try:
        if batches is not None:
            settings.setdefault("noisy", True)
        result = minimize(population, start, vectorized=True, callback=population.before(callback), **settings)
        vector = result.mean
        return result
    finally:
        parameters_from_vector(module, vector)


class _Population:
    """The losses of rows of parameters on the batch of the iteration."""

    def __init__(
        self, module: torch.nn.Module, loss: Callable[..., Any], batches: Iterable[Any] | None, at_once: bool
    ) -> None:
        self._module, self._loss = module, loss
        self._batches = iter([()]) if batches is None else _without_end(batches)
        self._batch = next(self._batches)
        self._only = batches is None
        self._losses = self._at_once if at_once else self._one_by_one
        self._buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]

    def __call__(self, X: Matrix) -> Vector:
        with torch.no_grad():
            return self._losses(X)

    def before(self, callback: Callable[..., Any] | None) -> Callable[..., Any]:
        """A callback that advances to the next batch and then calls `callback`."""
        if callback is None:
            return lambda intermediate_result: self._next_batch()
        if not callable(callback):
            raise TypeError(f"callback: expected a callable, got {type(callback).__name__}")

        @functools.wraps(callback)  # also its signature, which tells `minimize` how to call it
        def follow(*args: Any, **kwargs: Any) -> None:
            self._next_batch()
            callback(*args, **kwargs)

        return follow

    def _next_batch(self) -> None:
        if not self._only:
            self._batch = next(self._batches)

    def _one_by_one(self, X: Matrix) -> Vector:
        losses = np.empty(len(X))
        for index, row in enumerate(X):
            parameters_from_vector(self._module, row)
            try:
                losses[index] = _number(self._loss(self._module, *self._batch))
            finally:
                self._restore_buffers()
        return losses

    def _restore_buffers(self) -> None:
        for buffer, kept in self._buffers:
            buffer.copy_(kept)

    def _at_once(self, X: Matrix) -> Vector:
        parameters = _trainable(self._module)
        bound = _Bound(self._module, self._loss)
        rows = torch.from_numpy(np.array(X))
        stacked = {
            f"module.{name}": piece.to(parameter.device, parameter.dtype)
            for name, (parameter, piece) in zip(parameters, _pieces(parameters, rows), strict=True)
        }
        run = torch.func.vmap(
            lambda candidate: torch.func.functional_call(bound, candidate, self._batch), randomness="same"
        )
        try:
            losses = run(stacked)
        finally:
            self._restore_buffers()
        if losses.numel() != len(X):
            raise ValueError(f"loss: expected one number per candidate, got shape {tuple(losses.shape[1:])}")
        return np.asarray(losses.reshape(-1).cpu().double().numpy())


class _Bound(torch.nn.Module):  # type: ignore[misc]
    """A loss as a module, so that `functional_call` can replace its parameters."""

    def __init__(self, module: torch.nn.Module, loss: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self.loss = module, loss

    def forward(self, *batch: Any) -> Any:
        return self.loss(self.module, *batch)


def _trainable(module: torch.nn.Module) -> dict[str, Any]:
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module: expected a torch.nn.Module, got {type(module).__name__}")
    parameters = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    if not parameters:
        raise ValueError("module: expected parameters with requires_grad=True, got none")
    for name, parameter in parameters.items():
        if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            raise ValueError(f"module: {name} is not initialised; run the module on a batch first")
        if not parameter.is_floating_point():
            raise TypeError(f"module: expected real parameters, but {name} is {parameter.dtype}")
    return parameters


def _pieces(parameters: dict[str, Any], flat: Any) -> Iterator[tuple[Any, Any]]:
    """Each parameter with its piece of the last axis of `flat`, in the parameter's shape."""
    sizes = [parameter.numel() for parameter in parameters.values()]
    for parameter, piece in zip(parameters.values(), flat.split(sizes, dim=-1), strict=True):
        yield parameter, piece.reshape((*flat.shape[:-1], *parameter.shape))


def _without_end(batches: Iterable[Any]) -> Iterator[tuple[Any]]:
    """Batches as tuples of arguments, starting again when they end."""
    while True:
        empty = True
        for batch in batches:
            empty = False
            yield (batch,)
        if empty:
            raise ValueError(
                "batches: expected an iterable with at least one batch that can start again, such as a DataLoader"
            )


def _number(value: Any) -> float:
    if isinstance(value, torch.Tensor) and value.numel() != 1:
        raise ValueError(f"loss: expected a number or a tensor with one element, got shape {tuple(value.shape)}")
    return float(value)
