"""Headless Chromium, controlled through a pipe: the width, requests, errors and picture of a page."""

import base64
import json
import os
import pathlib
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field

from waiting import eventually


@dataclass
class Page:
    """The results of opening a page."""

    requests: list = field(default_factory=list)
    complaints: list = field(default_factory=list)
    width: int = 0  # of the document, in CSS pixels
    viewport: int = 0  # width of the window, in CSS pixels
    text: str = ""


class Chromium:
    def __init__(self, *options):
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-")
        to_read, to_write = os.pipe(), os.pipe()

        def pipes():  # Chromium reads commands from 3 and writes answers to 4; the pipes may have these numbers themselves
            commands, answers = os.dup2(to_read[0], 103), os.dup2(to_write[1], 104)
            os.dup2(commands, 3)
            os.dup2(answers, 4)
        self._process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
             "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={self._profile.name}", *options, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=pipes, start_new_session=True)
        os.close(to_read[0])
        os.close(to_write[1])
        self._commands, self._answers = to_read[1], to_write[0]
        self._received = b""
        self._number = 0
        self._events = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    _session = None

    def _message(self):
        while b"\0" not in self._received:
            more = os.read(self._answers, 1 << 20)
            assert more, "chromium has ended"
            self._received += more
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._events.append(answer)

    def _wait(self, method):
        while not any(event.get("method") == method for event in self._events):
            self._events.append(self._message())

    def open(self, url, width, height=800, dark=False):
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                   mobile=width < 600)
        self._call("Emulation.setEmulatedMedia",
                   features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self._events.clear()
        self._call("Page.navigate", url=url)
        self._wait("Page.loadEventFired")
        page = Page(viewport=width)
        page.width = self.value("document.documentElement.scrollWidth")
        page.text = self.value("document.body.innerText")
        for event in self._events:
            match event.get("method"):
                case "Network.requestWillBeSent":
                    page.requests.append(event["params"]["request"]["url"])
                case "Log.entryAdded":
                    page.complaints.append(event["params"]["entry"]["text"])
                case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled":
                    page.complaints.append(json.dumps(event["params"]))
        return page

    def go(self, url):
        """Begins to open a URL, and does not wait for the page."""
        os.write(self._commands, json.dumps({"id": 0, "method": "Page.navigate", "params": {"url": url},
                                             "sessionId": self._session}).encode() + b"\0")

    def picture(self):
        """The whole open page as PNG."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        return base64.b64decode(self._call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"])

    def value(self, expression):
        """The value of a JavaScript expression in the open page."""
        return self._call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def close(self):
        os.close(self._commands)
        # Chromium's helper processes live a moment longer, and would write into the profile during its removal.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)
        eventually(lambda: not _runs(self._process.pid), "chromium's processes have ended")
        os.close(self._answers)
        self._profile.cleanup()


def _runs(group):
    """Whether a process of the group runs; a zombie does not."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == group and state != "Z":
            return True
    return False
