"""The world of these tests: a container whose process 1 is systemd, with no network but loopback."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "EndToEnd/support"))
