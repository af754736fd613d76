"""Where environments come from: an id of gymnasium, or a class, a function or an environment of the user's own."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from cones.component import identifier
from cones.errors import InputError
from cones.extras import require_extra

__all__ = ["ID", "Source", "source_from"]

ID = re.compile(r"-v\d+$")  # the end of gymnasium's ids
# Keyword arguments of specifications that are not the environment's own.
OF_VECTORS = ("render_mode", "num_envs", "vectorization_mode", "vector_kwargs")
# Wrappers of vector environments that change nothing.
WATCHING = ("RecordEpisodeStatistics", "RecordVideo")


@dataclass(frozen=True)
class Source:
    """What makes environments of a task.

    Args:
        name: an id of gymnasium, "module:Name-v0" that a module registers, or "module:Class" or "module:function" of
            something that makes an environment. If there is a `maker`, any name.
        kwargs: what environments are made with; numbers, text, lists and tables, so that a file can hold them.
        maker: makes an environment, if it has no name by which it could be imported.
    """

    name: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    maker: Callable[..., Any] | None = None

    @property
    def is_plain(self) -> bool:
        """True if it is an environment of gymnasium as it is registered."""
        return self.maker is None and not self.kwargs

    def __reduce__(self) -> Any:
        """Sent to worker processes by value: lambdas, closures, and what a script defines."""
        return _received, (self.name, self.kwargs, None if self.maker is None else self._packed)

    @cached_property
    def _packed(self) -> bytes:
        import cloudpickle  # gymnasium needs it, too

        try:
            return bytes(cloudpickle.dumps(self.maker))
        except Exception as error:  # whatever pickling raises
            with suppress(Exception):  # by name, where what it uses cannot be sent
                return pickle.dumps(self.maker)
            raise InputError(
                f"task: {self.name} cannot be sent to worker processes ({type(error).__name__}: {error!s:.120}); "
                "pass a function that makes all the environment needs, or train in this process with threads=1"
            ) from None


def _received(name: str, kwargs: dict[str, Any], packed: bytes | None) -> Source:
    return Source(name, kwargs, None if packed is None else _unpacked(packed))


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> Any:
    """The same object each time, so that a worker knows the environment that it has."""
    return pickle.loads(packed)


def source_from(task: Any, env_kwargs: Mapping[str, Any] | None = None) -> Source:
    """The source for what a user has: an id, a class, a function, an environment, or a vector environment."""
    kwargs = _checked(env_kwargs)
    if isinstance(task, Source):
        return task
    if isinstance(task, str) and task:
        return Source(_with_version(task), kwargs)
    if inspect.isclass(task) or inspect.isroutine(task) or isinstance(task, partial):
        return _of_callable(task, kwargs)
    require_extra("gymnasium", "rl", "training")
    import gymnasium

    if isinstance(task, gymnasium.envs.registration.EnvSpec) and not kwargs:
        return _of_spec(task)
    if isinstance(task, gymnasium.vector.VectorEnv):
        return _of_vector(task, kwargs)
    if isinstance(task, gymnasium.Env):
        return _of_environment(task, kwargs)
    if callable(task):
        return _of_callable(task, kwargs)
    raise InputError(
        "task: expected the id of a gymnasium environment, such as Swimmer-v4, a class, a function that makes an "
        f"environment, or an environment, got {task!r:.80}"
    )


def _with_version(task: str) -> str:
    """An id without a version gets gymnasium's newest, which records and policies then name."""
    if ":" in task or ID.search(task):
        return task
    require_extra("gymnasium", "rl", "training")
    from gymnasium.envs.registration import find_highest_version

    namespace, _, name = task.rpartition("/")
    version = find_highest_version(namespace or None, name)
    return task if version is None else f"{task}-v{version}"


def _checked(kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Keyword arguments that a file can hold."""
    if kwargs is None:
        return {}
    try:
        if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
            raise TypeError("no table with names")
        stored = json.loads(json.dumps(dict(kwargs), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"env_kwargs: expected names with numbers, text, lists or tables, got {kwargs!r:.80} ({error}); for others "
            "pass a function that makes the environment"
        ) from None
    return dict(stored)


def _of_callable(maker: Any, kwargs: dict[str, Any]) -> Source:
    name = getattr(maker, "__qualname__", "") or getattr(getattr(maker, "func", maker), "__qualname__", "environment")
    module = sys.modules.get(getattr(maker, "__module__", ""), None)
    if module is not None and module.__name__ != "__main__" and getattr(module, name, None) is maker:
        return Source(identifier(maker), kwargs)
    return Source(name, kwargs, maker)


def _of_environment(environment: Any, kwargs: dict[str, Any]) -> Source:
    """Its specification if gymnasium can make it again, else copies of it."""
    if kwargs:
        raise InputError("env_kwargs: expected none beside an environment that is made already")
    spec = environment.spec
    if spec is None or any(wrapper.kwargs is None for wrapper in spec.additional_wrappers):
        return Source(type(environment.unwrapped).__qualname__, {}, _Copies(environment))
    return _of_spec(spec)


def _of_vector(environments: Any, kwargs: dict[str, Any]) -> Source:
    """The first of the environments: episodes are spread over workers, one environment each."""
    import gymnasium

    wrapped = environments
    while isinstance(wrapped, gymnasium.vector.VectorWrapper):
        if type(wrapped).__name__ not in WATCHING:
            raise InputError(
                f"task: expected a vector environment without wrappers of its own, got {type(wrapped).__name__}, "
                "which would have no effect; wrap the single environments"
            )
        wrapped = wrapped.env
    spec, makers = getattr(wrapped, "spec", None), getattr(wrapped, "env_fns", None)
    if spec is not None and not kwargs and not spec.kwargs.get("wrappers"):
        return _of_spec(spec)
    if not makers:
        raise InputError(
            f"task: expected a vector environment that consists of single ones, got {environments!r:.80}; pass a class "
            "or a function that makes a single environment"
        )
    return source_from(makers[0], kwargs)


def _of_spec(spec: Any) -> Source:
    """What gymnasium has registered itself goes by its id. Workers do not know other ids: they get all of it."""
    import gymnasium

    spec = copy.deepcopy(spec)
    spec.max_episode_steps = spec.kwargs.pop("max_episode_steps", spec.max_episode_steps)
    spec.kwargs = {name: value for name, value in spec.kwargs.items() if name not in OF_VECTORS}
    registered = gymnasium.registry.get(spec.id)
    if registered is not None and str(spec.entry_point).startswith("gymnasium."):
        own = {name: value for name, value in spec.kwargs.items() if registered.kwargs.get(name, ...) != value}
        if spec == replace(copy.deepcopy(registered), kwargs=spec.kwargs):
            return Source(spec.id, _checked(own))
    return Source(spec.id, {}, _Specified(spec))


@dataclass(frozen=True)
class _Copies:
    """Copies of an environment; each worker has one of its own."""

    environment: Any

    def __call__(self) -> Any:
        try:
            return copy.deepcopy(self.environment)
        except Exception as error:  # whatever copying raises
            raise InputError(
                f"task: expected an environment that can be copied, got {self.environment!r:.80} "
                f"({type(error).__name__}: {error!s:.80}); pass its class or a function that makes it"
            ) from None


@dataclass(frozen=True)
class _Specified:
    """Environments of a specification with wrappers or changes of its own."""

    spec: Any

    def __call__(self, **options: Any) -> Any:
        import gymnasium

        return gymnasium.make(self.spec, disable_env_checker=True, **options)
