import sys
from pathlib import Path

# The pictures' scripts import each other by name, as they do when they are run by themselves.
sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "theory"))
