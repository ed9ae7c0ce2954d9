#!/usr/bin/env python3
"""sleeper.py FAULT COMMAND...: runs the command with ENDPOINT in its environment, a server like vLLM's that sleeps and
wakes, and says so two looks later. At the end its state and the writes it got go to standard output.

FAULT: none, running (requests run there), asleep (at first), no-flags (404), out-of-memory (wakes fail), token TOKEN
(asked for on every request: token:TOKEN)."""

import http.server
import json
import os
import subprocess
import sys
import threading

fault = sys.argv[1]
state = {"asleep": fault == "asleep", "level": 1, "looks": 0, "next": None}
writes = []


def look():
    if state["next"] is not None:
        state["looks"] += 1
        if state["looks"] > 2:
            state["asleep"], state["next"] = state["next"], None
    return {"is_sleeping": state["asleep"]}


def move(asleep):
    state["looks"], state["next"] = 0, asleep


def page():
    running = 2 if fault == "running" else 0
    awake = int(not state["asleep"])
    return (
        f"vllm:num_requests_running {running}\nvllm:num_requests_waiting 0\n"
        f'vllm:engine_sleep_state{{sleep_state="awake"}} {awake}\n'
        f'vllm:engine_sleep_state{{sleep_state="discard_all"}} {int(not awake and state["level"] == 2)}\n'
    )


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def is_refused(self):
        wanted = fault.removeprefix("token:") if fault.startswith("token:") else None
        if wanted and self.headers["Authorization"] != f"Bearer {wanted}":
            self.answer(401)
        elif fault == "no-flags" and "sleep" in self.path:
            self.answer(404)
        elif fault == "out-of-memory" and self.path.startswith("/wake_up"):
            self.answer(500)
        else:
            return False
        return True

    def do_GET(self):
        if self.is_refused():
            return
        pages = {
            "/is_sleeping": lambda: json.dumps(look()),
            "/metrics": page,
            "/v1/models": lambda: json.dumps({"data": [{"id": "m"}]}),
        }
        self.answer(200, pages[self.path]())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        writes.append(self.path)
        if self.is_refused():
            return
        if self.path.startswith("/sleep"):
            state["level"] = 2 if "level=2" in self.path else 1
            move(True)
        elif self.path.startswith("/wake_up") and "tags=weights" not in self.path:
            move(False)
        elif self.path == "/v1/completions":
            json.loads(body)
        self.answer(200)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
code = subprocess.call(sys.argv[2:], env={**os.environ, "ENDPOINT": f"http://127.0.0.1:{server.server_port}"})
print("left asleep" if state["asleep"] else "left awake", *writes, flush=True)
sys.exit(code)
