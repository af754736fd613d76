import sys
from pathlib import Path

# The pictures' scripts import each other by name, as they do when they are run by themselves.
sys.path[:0] = [str(Path(__file__).parents[2] / "docs" / folder) for folder in ("theory", "_ext")]
