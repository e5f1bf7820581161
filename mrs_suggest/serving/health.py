"""The health check of the container, `python -m mrs_suggest.serving.health`: 0 if the server accepts requests.

The port is that of the container's first process, `mrs serve ... --port PORT`.
"""

import argparse
import sys
import urllib.request
from pathlib import Path

SECONDS = 4  # less than the timeout of the check in the image


def port_of(process: str) -> int:
    """The `--port` of a process, by its command line."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--port", type=int, default=8000)
    known, _ = parser.parse_known_args(Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8").split("\0"))
    return int(known.port)


def main(process: str = "1") -> int:
    """0 if the server is ready, otherwise 1."""
    url = f"http://127.0.0.1:{port_of(process)}/health/ready"
    try:
        urllib.request.urlopen(url, timeout=SECONDS).close()
    except OSError as error:
        sys.stderr.write(f"{url}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
