"""Processes of a test: each has a log file, dies with the test, and is ended by its own id."""
import ctypes
import os
import re
import signal
import socket
import subprocess
import time

_libc = ctypes.CDLL(None)
_SET_DEATH_SIGNAL = 1


def _die_with_parent():
    _libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def wait_for(what, check, seconds=180):
    """The first true answer of check(); a sentence and what was last seen when it does not come in time. The time is for
    machines that are slow and busy; who waits for an event loses nothing by it."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            answer, trouble = check(), None
        except (OSError, AssertionError, subprocess.SubprocessError) as error:
            answer, trouble = None, error
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s" + (f" ({trouble})" if trouble else ""))
        time.sleep(0.05)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Process:
    def __init__(self, words, log, **more):
        self.log = str(log)
        self._file = open(log, "ab")
        self.words = [str(word) for word in words]
        environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        self.process = subprocess.Popen(self.words, stdout=self._file, stderr=subprocess.STDOUT, env=environment,
                                        stdin=more.get("stdin", subprocess.DEVNULL), preexec_fn=_die_with_parent)
        self.pid = self.process.pid

    def alive(self):
        return self.process.poll() is None

    def printed(self, pattern):
        with open(self.log, errors="replace") as log:
            return re.search(pattern, log.read(), re.MULTILINE)

    def tail(self, lines=15):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-lines:])

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self):
        with open(f"/proc/{self.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024

    def kill(self):
        """kill -9."""
        if self.alive():
            self.process.kill()
        self._end()

    def stop(self, seconds=15):
        """The exit code after SIGTERM; -9 when that was not enough."""
        if self.alive():
            if self.process.stdin:
                self.process.stdin.close()
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self._end()

    def _end(self):
        code = self.process.wait(60)
        self._file.close()
        return code
