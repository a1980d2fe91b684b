"""Text files for tests, and patterns for messages about them."""

import gzip
import re


def write(path, content, compress=False):
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if compress else content)
    return path


def names(*paths):
    """A pattern that matches messages that contain all of these paths."""
    return "".join(rf"(?=.*{re.escape(str(path))})" for path in paths)
