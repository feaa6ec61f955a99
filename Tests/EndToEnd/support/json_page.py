"""docs/json.md, the page about the JSON that commands print for programs."""

import pathlib
import re

PAGE = pathlib.Path(__file__).parents[3] / "docs/json.md"


def documented(command):
    """The keys in the first column of a command's table."""
    part = PAGE.read_text().split(f"\n## {command}\n")[1].split("\n## ")[0]
    rows = [line for line in part.splitlines() if line.startswith("| `.")]
    return {key for row in rows for key in re.findall(r"`\.([^`]+)`", row.split(" | ")[0])}
