"""What promtool has to say of a page: `promtool check metrics`, the linter of names and help."""

import subprocess

from .binaries import Binaries


def complaints(binaries: Binaries, page: str) -> str:
    """Give all that it writes, and its status where that is not 0: "" of a page without fault."""
    command = [str(binaries.promtool), "check", "metrics"]
    done = subprocess.run(command, input=page, capture_output=True, text=True, check=False)
    status = f"exit {done.returncode}\n" if done.returncode else ""
    return f"{status}{done.stdout}{done.stderr}"
