"""Many simultaneous clients, and the time that each had to wait."""

import concurrent.futures
import contextlib
import os
import signal
import socket
import time
from dataclasses import dataclass

import dns.exception
import dns.message

from dns_client import ask
from waiting import eventually, waited_since


@dataclass
class Asked:
    """One question: the time of the question, the reply, and the seconds until it came; without a reply, None.

    `waited` leaves out the time in which the machine stood still; `took` is the time on the clock.
    """

    name: str
    kind: str
    at: float
    reply: dns.message.Message = None
    waited: float = None
    took: float = None


class Clients:
    """Each question is a client with a socket of its own, and waits for no other."""

    def __init__(self, *, patience=20.0, **options):
        self._options = options | {"timeout": patience}
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=256)
        self._questions = []

    def ask(self, name, kind="A", **options):
        """Asks now; returns a future of an `Asked`."""
        self._questions.append(self._pool.submit(self._one, name, kind, self._options | options))
        return self._questions[-1]

    def ask_steadily(self, names, every):
        """Asks one question after each interval, in real time."""
        begun = time.monotonic()
        for place, name in enumerate(names):
            time.sleep(max(0, begun + place * every - time.monotonic()))
            self.ask(name)
        time.sleep(max(0, begun + len(names) * every - time.monotonic()))

    @staticmethod
    def _one(name, kind, options):
        message = dns.message.make_query(name, kind, use_edns=0, payload=1232)
        asked = Asked(name, kind, time.monotonic())
        try:
            asked.reply = ask(name, message=message, **options)
            now = time.monotonic()
            asked.waited, asked.took = waited_since(asked.at, now), now - asked.at
        except (OSError, dns.exception.DNSException):
            pass
        return asked

    def done(self):
        """The results of all questions so far, in order."""
        return [question.result() for question in self._questions]

    def all_answered(self):
        """The results of all questions so far; every question must have a reply."""
        asked = self.done()
        lost = [f"{one.name} {one.kind}" for one in asked if one.reply is None]
        assert not lost, f"{len(lost)} of {len(asked)} questions got no answer: {lost}"
        return asked


def at_the_same_moment(running, questions, sockets=1, meanwhile=lambda: None):
    """All questions are in the daemon's sockets before it reads the first. Returns the replies in order.

    `meanwhile` is called once the daemon reads them.
    """
    messages = [dns.message.make_query(name, kind, id=place) for place, (name, kind) in enumerate(questions)]
    with contextlib.ExitStack() as stack:
        channels = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(sockets)]
        for channel in channels:
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            channel.settimeout(20)
            channel.connect((running.server, running.port))
        os.kill(running.pid, signal.SIGSTOP)
        try:
            eventually(lambda: state(running.pid) == "T", "the daemon is stopped")
            for place, message in enumerate(messages):
                channels[place % sockets].send(message.to_wire())
        finally:
            os.kill(running.pid, signal.SIGCONT)
        meanwhile()
        replies = {}
        for place in range(len(messages)):
            reply = dns.message.from_wire(channels[place % sockets].recv(4096))
            assert reply.question == messages[reply.id].question and reply.id not in replies
            replies[reply.id] = reply
    return [replies[place] for place in range(len(messages))]


def first_reply(name, port=53):
    """The first reply of a starting daemon, which is asked every millisecond."""
    message = dns.message.make_query(name, "A")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.settimeout(0.001)
        channel.connect(("127.0.0.1", port))

        def asked():
            try:
                channel.send(message.to_wire())
                return dns.message.from_wire(channel.recv(4096))
            except (ConnectionRefusedError, TimeoutError):
                return None
        return eventually(asked, "the daemon answers")


def state(pid):
    """The kernel's letter for the state of a process."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
