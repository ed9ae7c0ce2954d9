#!/usr/bin/env python3
"""one_answer.py JSON COMMAND...: runs the command with ENDPOINT in its environment, where every request gets the JSON;
the first FAILS of them get 503."""

import http.server
import os
import subprocess
import sys
import threading


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = sys.argv[1].encode()
        self.send_response(503 if failures else 200)
        if failures:
            failures.pop()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


failures = [None] * int(os.environ.get("FAILS", "0"))
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.call(sys.argv[2:], env={**os.environ, "ENDPOINT": f"http://127.0.0.1:{server.server_port}"}))
