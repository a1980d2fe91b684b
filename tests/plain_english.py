"""Finds phrases that read as riddles, in code, help texts and pages: `python tests/plain_english.py`.

Each has a plainer form that it names. Fixed texts of other projects and the change log are left out.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PHRASES = {
    r"\bso many\b": "this many, or the number itself",
    r"(there|this|that|it) is none\b": "is not one, or has none",
    r"\balso not\b": "not ... either",
    r"\bwhat it was made from\b": "its source",
    r"\bgoes on\b": "continues",
    r"(one|continues?|ends?|stands?) behind\b": "after",
}


def main():
    """Prints each place. The exit status is 1 if there is one, else 0."""
    names = subprocess.run(["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    places = []
    for name in names.stdout.split():
        if name in ("CHANGELOG.md", "tests/plain_english.py") or "phrasebook" in name:
            continue
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            places += [
                f"{name}:{number}: {m[0]!r}: say {better}" for p, better in PHRASES.items() if (m := re.search(p, line))
            ]
    print("\n".join(places))
    return int(bool(places))


if __name__ == "__main__":
    sys.exit(main())
