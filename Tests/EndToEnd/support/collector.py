"""A receiver of the reports of `enableReport`."""

import http.server
import json
import threading

import pytest


class Collector:
    """Receives reports at `reportUrl`."""

    def __init__(self, status=200, port=0, address="127.0.0.8"):
        self.address = address
        self.bodies = []
        self.heads = []
        outer = self

        class Take(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                outer.heads.append(f"{self.command} {self.path}\n{self.headers}")
                outer.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer((address, port), Take)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def port(self):
        return self._server.server_port

    @property
    def url(self):
        return f"http://{self.address}:{self.port}/reports"

    @property
    def reports(self):
        return [json.loads(line) for body in list(self.bodies) for line in body.splitlines() if line.strip()]

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector():
    started = []

    def start(**options):
        started.append(Collector(**options))
        return started[-1]
    yield start
    for one in started:
        one.stop()  # duplicates do not matter


def in_the_log(running):
    """The JSON objects in the log's lines, with any text before them."""
    found = []
    for line in running.log().splitlines():
        start = line.find("{")
        if start >= 0 and '"req_dn"' in line:
            found.append(json.loads(line[start:]))
    return found
