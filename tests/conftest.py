import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # `import helpers`
pytest.register_assert_rewrite("conformance.variants")

# The machine may be busy: no example has a deadline. Derandomised: a run finds what any run finds.
settings.register_profile("cones", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("cones")

# A shell that runs tests in the background has SIGINT ignored; the tests of Ctrl-C, and the programs that
# they start, need it.
signal.signal(signal.SIGINT, signal.default_int_handler)
