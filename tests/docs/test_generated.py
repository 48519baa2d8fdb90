"""The reference pages that code defines are the committed ones."""

import subprocess
import sys

from processes import ROOT


def test_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
