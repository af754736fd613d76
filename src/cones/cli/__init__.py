"""The command line, `cones`."""

from cones.cli.main import main

__all__ = ["main"]
