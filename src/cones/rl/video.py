"""A video of a policy, rendered without a screen."""

from __future__ import annotations

import ctypes.util
import os
import re
from pathlib import Path
from typing import Any

from cones.errors import InputError, StateError
from cones.extras import require_extra
from cones.rl.environments import made
from cones.rl.gymnasium_episode import played
from cones.rl.policy import Policy
from cones.rl.source import Source

__all__ = ["record_video"]

# Words of errors about OpenGL.
OPENGL = re.compile(
    r"\b(OpenGL|E?GL|GLX|GLFW|glfw|GLError|GLContext|OSMesa|gl[A-Z]\w+)\b|MUJOCO_GL|PYOPENGL|lib(GL|EGL|OSMesa)"
)


def record_video(policy: Policy, path: str | Path, steps: int = 1000, rng: int = 0) -> tuple[float, int]:
    """Write an episode of a policy as .mp4 or .gif. Returns its reward and the number of frames."""
    ending = Path(path).suffix.lower()
    if ending not in (".mp4", ".gif"):
        raise InputError(f"video: expected a file that ends in .mp4 or .gif, got {path}")
    if not Path(path).absolute().parent.is_dir():
        raise InputError(f"video: no folder {Path(path).absolute().parent} to write to")
    for package in ("imageio", "imageio_ffmpeg" if ending == ".mp4" else "PIL"):
        require_extra(package, "video", "a video")
    import imageio

    _choose_gl()
    reward, count = 0.0, 0
    source = policy.source or Source(policy.task, policy.env_kwargs)
    try:
        with made(source, render_mode="rgb_array") as environment:
            if "rgb_array" not in environment.metadata.get("render_modes", ["rgb_array"]):
                raise InputError(f"{policy.task}: it has no render mode rgb_array, which a video needs")
            rate = float(environment.metadata.get("render_fps", 30))
            # Players are content with 50 frames a second; more are left out.
            every = max(1, round(rate / 50.0))
            options: dict[str, Any] = (
                {"fps": rate / every} if ending == ".mp4" else {"duration": 1000.0 * every / rate, "loop": 0}
            )
            writer: Any
            with imageio.get_writer(path, **options) as writer:
                for step, (_, gain, _) in enumerate(played(environment, policy, rng, steps)):
                    reward += gain
                    if step % every == 0:
                        writer.append_data(environment.render())
                        count += 1
    except (InputError, OSError):
        raise
    except Exception as error:  # OpenGL fails in as many ways as there are drivers
        if not OPENGL.search(f"{type(error).__name__} {error}"):
            raise
        raise StateError(
            f"{policy.task} could not be rendered ({type(error).__name__}: {error}); install Debian's libosmesa6, or "
            "libegl1 with a driver, and set MUJOCO_GL=osmesa or MUJOCO_GL=egl"
        ) from error
    return reward, count


def _choose_gl() -> None:
    """Without a screen, choose how MuJoCo draws before it is first imported."""
    if "MUJOCO_GL" not in os.environ and not os.environ.get("DISPLAY"):
        os.environ["MUJOCO_GL"] = "osmesa" if ctypes.util.find_library("OSMesa") else "egl"
        os.environ.setdefault("PYOPENGL_PLATFORM", os.environ["MUJOCO_GL"])
