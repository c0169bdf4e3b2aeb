"""kill -9 of `berth up` under load, again and again: every acknowledged write is there after the start, deleted objects stay
deleted, and every watch goes on without a gap or is told 410."""
import http.client
import json
import os
import random
import signal
import sys
import threading

from server import Server

MAPS = "/api/v1/namespaces/default/configmaps"
WRITERS, WATCHERS = 4, 3


class Failure(Exception):
    pass


def connect(server):
    return http.client.HTTPSConnection("127.0.0.1", server.port, timeout=20, context=server.tls)


class Writer(threading.Thread):
    """Creates, changes and deletes; knows what was acknowledged. A request without an answer may or may not have happened."""

    def __init__(self, server, number, round_number, known, enough):
        super().__init__()
        self.server, self.number, self.round = server, number, round_number
        self.known, self.unsure, self.enough, self.done = known, {}, enough, 0

    def ask(self, connection, method, path, body=None):
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def run(self):
        connection = connect(self.server)
        dice = random.Random(self.number * 1000 + self.round)
        try:
            while True:
                self.step(connection, dice)
                self.done += 1
                if self.done == 40:
                    self.enough.release()
        except (OSError, http.client.HTTPException):
            connection.close()

    def step(self, connection, dice):
        if self.known and dice.random() < 0.4:
            name = dice.choice(sorted(self.known))
            if dice.random() < 0.3:
                self.unsure[name] = (self.known[name], None)
                code = self.ask(connection, "DELETE", MAPS + "/" + name)
                value, wanted = None, 200
            else:
                value = str(dice.random())
                self.unsure[name] = (self.known[name], value)
                code = self.ask(connection, "PUT", MAPS + "/" + name, {"metadata": {"name": name}, "data": {"v": value}})
                wanted = 200
        else:
            name, value = "w%d-%d-%d" % (self.number, self.round, self.done), str(dice.random())
            self.unsure[name] = (None, value)
            code = self.ask(connection, "POST", MAPS, {"metadata": {"name": name}, "data": {"v": value}})
            wanted = 201
        if code != wanted:
            raise Failure("%s: %d" % (name, code))
        del self.unsure[name]
        if value is None:
            del self.known[name]
        else:
            self.known[name] = value


class Watcher(threading.Thread):
    """Keeps a copy of the objects by its events alone; resumes where it was, over kills."""

    def __init__(self, server):
        super().__init__()
        self.server, self.copy, self.revision, self.opened, self.gone = server, {}, None, 0, 0
        self.changed = threading.Condition()
        self.stopped = False
        self.trouble = None

    def list(self, connection):
        connection.request("GET", MAPS)
        document = json.loads(connection.getresponse().read())
        self.copy = {item["metadata"]["name"]: item["data"]["v"] for item in document["items"] if "v" in item["data"]}
        self.revision = int(document["metadata"]["resourceVersion"])

    def run(self):
        while not self.stopped:
            try:
                self.follow(connect(self.server))
            except (OSError, http.client.HTTPException, ValueError):
                self.server.up.wait(20)  # the line was cut: the server is gone, or comes back
            except Failure as failure:
                self.trouble = failure
                return

    def follow(self, connection):
        if self.revision is None:
            self.list(connection)
        connection.request("GET", MAPS + "?watch=1&resourceVersion=%d" % self.revision)
        answer = connection.getresponse()
        if answer.status == 410:
            self.gone += 1
            self.revision = None
            return
        if answer.status != 200:
            raise Failure("the watch was answered with %d" % answer.status)
        self.opened += 1
        for line in answer:
            event = json.loads(line)
            if event["object"].get("metadata", {}).get("name") == "kube-root-ca.crt":
                continue
            if event["type"] == "ERROR":
                if event["object"]["code"] != 410:
                    raise Failure("the watch ended with %s" % event)
                self.gone += 1
                self.revision = None
                return
            self.take(event)

    def take(self, event):
        item = event["object"]
        name, revision = item["metadata"]["name"], int(item["metadata"]["resourceVersion"])
        with self.changed:
            if revision <= self.revision:
                raise Failure("revision %d after %d" % (revision, self.revision))
            if (event["type"] == "ADDED") == (name in self.copy):
                raise Failure("%s of %s does not follow from what was told before" % (event["type"], name))
            self.revision = revision
            if event["type"] == "DELETED":
                del self.copy[name]
            else:
                self.copy[name] = item["data"]["v"]
            self.changed.notify_all()

    def wait_until(self, revision):
        with self.changed:
            if not self.changed.wait_for(lambda: self.trouble or (self.revision or 0) >= revision, 30):
                raise Failure("a watch stays behind: at %s, the server is at %d" % (self.revision, revision))


def settle(known, unsure, stored):
    """Compares what was acknowledged with what is stored; takes over what an unanswered request may have done."""
    for name, outcomes in unsure.items():
        if stored.get(name) not in outcomes:
            raise Failure("%s is %r: it was one of %r" % (name, stored.get(name), outcomes))
        known.pop(name, None)
        if name in stored:
            known[name] = stored[name]
    for name, value in known.items():
        if stored.get(name) != value:
            raise Failure("lost: %s was acknowledged as %s and is %s" % (name, value, stored.get(name)))


def mine(stored, number):
    return {name: value for name, value in stored.items() if name.startswith("w%d-" % number)}


def one_round(server, round_number, known, watchers, dice):
    enough = threading.Semaphore(0)
    writers = [Writer(server, n, round_number, known[n], enough) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    for _ in writers:
        if not enough.acquire(timeout=60):
            raise Failure("the writers do not get on")
    threading.Event().wait(dice.random() * 0.2)  # any moment will do
    server.up.clear()
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    for writer in writers:
        writer.join(30)
    server.start("--listen", "127.0.0.1:%d" % server.port, "--nodes", "2")
    server.up.set()
    _, document = server.ask("GET", MAPS)
    stored = {item["metadata"]["name"]: item["data"]["v"] for item in document["items"] if "v" in item["data"]}
    for writer in writers:
        settle(writer.known, writer.unsure, stored)
        if mine(stored, writer.number) != writer.known:
            raise Failure("there is something that nobody wrote, or that was deleted")
    # A write after the start, so that every watch has something to see.
    _, mark = server.ask("POST", MAPS, {"metadata": {"name": "mark-%d" % round_number}, "data": {"v": "0"}})
    for watcher in watchers:
        watcher.wait_until(int(mark["metadata"]["resourceVersion"]))
        if watcher.trouble:
            raise watcher.trouble
        if any(mine(watcher.copy, writer.number) != writer.known for writer in writers):
            raise Failure("a watch told something else than what is stored")
    return sum(writer.done for writer in writers)


def main():
    berth, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    signal.alarm(600 + 5 * rounds)
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print("seed", seed, flush=True)
    dice = random.Random(seed)
    server = Server(berth, "--nodes", "2", command="up")
    server.up = threading.Event()
    server.up.set()
    known = [{} for _ in range(WRITERS)]
    watchers = [Watcher(server) for _ in range(WATCHERS)]
    for watcher in watchers:
        watcher.start()
    written = 0
    try:
        for number in range(rounds):
            written += one_round(server, number, known, watchers, dice)
        print("%d kills, %d acknowledged writes, %d objects left, watches opened %d times, 410 %d times"
              % (rounds, written, sum(map(len, known)), sum(w.opened for w in watchers), sum(w.gone for w in watchers)))
    finally:
        for watcher in watchers:
            watcher.stopped = True
        code = server.stop()
        for watcher in watchers:
            watcher.join(30)
    return code


sys.exit(main())
