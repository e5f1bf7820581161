"""Suggest your own replies over HTTP: `python examples/serve.py [FOLDER]`.

Gives the model that ships a response set of five replies, starts `mrs serve` with it on a free port, asks it, and stops
it. Needs `pip install '.[all]'`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from mrs_suggest.cli.main import main as mrs
from mrs_suggest.serving import Client

REPLIES = """reply,tags
"Yes, I will be there.",yes
"Sorry, I cannot come.",no
"Thank you, I'll look at it.",thanks
I'm running ten minutes late.,late
"In the office, second floor.",place
"""
MESSAGES = ["Are you coming to the meeting?", "I have sent you the report."]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "replies.csv").write_text(REPLIES, encoding="utf-8")
    index = ["models", "index", "everyday-retriever", "--language", "en", "--responses", str(folder / "replies.csv")]
    if code := mrs([*index, "--out", str(folder / "office"), "--overwrite"]):
        sys.exit(code)

    command = [sys.executable, "-m", "mrs_suggest.cli.main", "serve", "--model", str(folder / "office"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8") as server:
        assert server.stderr is not None
        try:
            # The log is JSON, a line for each event; `listening` has the address.
            events = (json.loads(line) for line in server.stderr if line.startswith("{"))
            url = next(event["url"] for event in events if event["event"] == "listening")
            with Client(url) as client:
                while server.poll() is None and not client.ready():  # until the model is loaded
                    time.sleep(0.1)
                for answer in client.suggest(MESSAGES, language="en"):
                    print(answer.message, answer.replies)
        finally:
            server.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/office-example"))
