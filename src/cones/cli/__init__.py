"""`cones` on the command line: the only place where the names of things become things."""

from cones.cli.main import main

__all__ = ["main"]
