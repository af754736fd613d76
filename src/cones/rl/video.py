"""A video of a policy, rendered without a screen."""

from __future__ import annotations

import ctypes.util
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from cones.checks import check_integer
from cones.errors import InputError, MissingExtraError, StateError
from cones.extras import require_extra
from cones.rl.environments import made, spaces_of
from cones.rl.gymnasium_episode import played
from cones.rl.policy import Policy, check_spaces
from cones.rl.source import Source, source_from

__all__ = ["record_video"]

# Words of errors about OpenGL.
OPENGL = re.compile(
    r"\b(OpenGL|E?GL|GLX|GLFW|glfw|GLError|GLContext|OSMesa|gl[A-Z]\w+)\b|MUJOCO_GL|PYOPENGL|lib(GL|EGL|OSMesa)"
)


def record_video(
    policy: Policy, path: str | Path, steps: int = 1000, rng: int = 0, *, task: Any = None
) -> tuple[float, int]:
    """Write an episode of a policy as .mp4 or .gif. Returns its reward and the number of frames.

    Args:
        policy: of `train` or `load_policy`.
        path: the file.
        steps: the most of them.
        rng: the seed.
        task: another environment of the same spaces; by default the one that the policy was trained on. One that is
            made already needs the render mode "rgb_array".
    """
    ending = Path(path).suffix.lower()
    if ending not in (".mp4", ".gif"):
        raise InputError(f"video: expected a file that ends in .mp4 or .gif, got {path}")
    if not Path(path).absolute().parent.is_dir():
        raise InputError(f"video: no folder {Path(path).absolute().parent} to write to")
    for package in ("imageio", "imageio_ffmpeg" if ending == ".mp4" else "PIL"):
        require_extra(package, "video", "a video")
    import imageio

    check_integer("steps", steps, 1)
    check_integer("rng", rng, 0)
    _choose_gl()
    reward, count = 0.0, 0
    source = policy.source or Source(policy.task, policy.env_kwargs)
    if task is not None:
        source = source_from(task)
        check_spaces(policy, spaces_of(source), source.name)
    try:
        with made(source, render_mode="rgb_array") as environment:
            rate = float(environment.metadata.get("render_fps", 30))
            # Players are content with 50 frames a second; more are left out.
            every = max(1, round(rate / 50.0))
            options: dict[str, Any] = (
                {"fps": rate / every} if ending == ".mp4" else {"duration": 1000.0 * every / rate, "loop": 0}
            )
            with ExitStack() as stack:
                writer: Any = None
                for step, (_, gain, _) in enumerate(played(environment, policy, rng, steps)):
                    reward += gain
                    if step % every == 0:
                        picture = _picture(environment, source.name)
                        writer = writer or stack.enter_context(imageio.get_writer(path, **options))
                        writer.append_data(picture)
                        count += 1
    except (InputError, OSError):
        raise
    except Exception as error:  # OpenGL fails in as many ways as there are drivers
        if type(error).__name__ == "DependencyNotInstalled":  # what gymnasium's own tasks are drawn with
            raise MissingExtraError(f"{policy.task} could not be drawn: {error}") from None
        if not OPENGL.search(f"{type(error).__name__} {error}"):
            raise
        raise StateError(
            f"{policy.task} could not be rendered ({type(error).__name__}: {error}); install Debian's libosmesa6, or "
            "libegl1 with a driver, and set MUJOCO_GL=osmesa or MUJOCO_GL=egl"
        ) from error
    return reward, count


def _picture(environment: Any, name: str) -> Any:
    """What the environment draws, or an error that says how to make it draw."""
    try:
        drawn = environment.render()
    except NotImplementedError:
        drawn = None
    if isinstance(drawn, np.ndarray) and drawn.ndim in (2, 3):
        return drawn
    raise InputError(
        f"task: a video needs an environment whose render() returns a picture, got {type(drawn).__name__} from {name}; "
        "make it with render_mode='rgb_array', or give its class, or the function that makes it, an argument "
        "render_mode"
    )


def _choose_gl() -> None:
    """Without a screen, choose how MuJoCo draws before it is first imported."""
    if "MUJOCO_GL" not in os.environ and not os.environ.get("DISPLAY"):
        os.environ["MUJOCO_GL"] = "osmesa" if ctypes.util.find_library("OSMesa") else "egl"
        os.environ.setdefault("PYOPENGL_PLATFORM", os.environ["MUJOCO_GL"])
