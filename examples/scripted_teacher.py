"""A teacher for `make demo-product`: an OpenAI-compatible server on this machine, whose answers stand in a YAML file.

    python examples/scripted_teacher.py examples/bike_shop_answers.yaml mrs data generate --teacher '{url}#scripted' ...

serves while the command after the file runs, and exits with its code; `{url}` is replaced in its arguments.
"""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml


def answer(script: dict, asked: dict) -> list[str]:
    """What the script has for one question of `mrs data generate`; nothing for a question that it does not know."""
    if asked["step"] == "intents":
        return [f"{intent}: {texts['about']}" for intent, texts in script.items()]
    texts = script.get(asked["intent"], {}).get(asked["language"], {})
    return texts.get("replies" if asked["step"] == "replies" else asked["register"], [])


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = json.loads(request["messages"][-1]["content"])
        content = json.dumps({asked["step"]: answer(self.server.script, asked)}, ensure_ascii=False)
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.script = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"openai:http://127.0.0.1:{server.server_port}/v1"
        code = subprocess.run([part.replace("{url}", url) for part in sys.argv[2:]], check=False).returncode
        server.shutdown()
    sys.exit(code)
