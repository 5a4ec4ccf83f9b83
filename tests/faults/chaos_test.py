# SPDX-License-Identifier: BSD-3-Clause
"""Clients and servers of NSSI under load, killed, stopped and started anew at random: every call is accounted for.

What each client was about to do, how each call ended, and what each server carried out stands in journals that survive
kill -9 (chaos.hpp). When it is over:
- no call was carried out twice, unless it was declared idempotent;
- a call that ended well was carried out, and its result was right;
- a call whose error says that it was not carried out was not;
- every call of a client that was not killed has ended, by its deadline (and what chaos.hpp grants besides);
- nobody wrote into a data buffer after its call was over, each callback came once;
- servers that lived give back their memory and descriptors; nothing is left behind.

    chaos_test.py                                             a short run over each transport
    chaos_test.py --seconds 600 --seed 7 --transport tcp      one of ten minutes; all transports in turn without
                                                              --transport, another seed each time without --seed
"""
import argparse
import collections
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

from harness import BUILD, ProcessTestCase, wait_until

PEER = os.path.join(BUILD, "tests", "chaos_peer")
TRANSPORTS = ("shm", "tcp", "ofi", "faulty+shm", "faulty+tcp")
SERVERS, CLIENTS = 3, 4
OPTIONS = argparse.Namespace(seconds=8, seed=None, transport=None)
FIXED_SEED = 20

RECORD = struct.Struct("<QcBBBiIiq")
Record = collections.namedtuple("Record", "number kind op flags server code is_right late_ms at_us")
IDEMPOTENT, ONE_WAY, NOT_WAITING, HAS_DATA, DROPPED = 1, 2, 4, 8, 16
OK, NOT_FOUND, IO = 0, 6, 12
FAIL, MISSING = 10, 99
POSSIBLE = {"OK", "TIMED_OUT", "PEER_LOST", "NOT_FOUND", "BUSY", "UNAVAILABLE", "IO", "CANCELLED"}
NAMES = ("OK TIMED_OUT PEER_LOST REFUSED INVALID_ARGUMENT OUT_OF_RANGE NOT_FOUND EXISTS UNSUPPORTED NO_MEMORY BUSY "
         "BAD_MESSAGE IO CANCELLED NO_RESULT INTERNAL TOO_LARGE INTERRUPTED UNAVAILABLE").split()

# A peer that is silent or whose connection breaks is given up soon, so that there is something to do for NSSI, too.
COMMON = {"NESSIE_NNTI_RECONNECT": "600ms", "NESSIE_NNTI_PEER_TIMEOUT": "1500ms", "NESSIE_NNTI_HEARTBEAT": "200ms",
          "NESSIE_NNTI_OFI_PROVIDER": "tcp", "NESSIE_NNTI_OFI_ADDRESS": "127.0.0.1",
          "NESSIE_NNTI_TCP_ADDRESS": "127.0.0.1",
          # else libinfinipath, while libfabric is being loaded, ends a process of several threads that is told to end
          "IPATH_NO_BACKTRACE": "1", "HFI_NO_BACKTRACE": "1"}
FAULTS = {"LOSS": "0.01", "DUPLICATE": "0.005", "DELAY": "0.02:3ms", "REORDER": "0.01", "TRANSIENT": "0.01",
          "BREAK": "0.0004:150ms", "SILENT": "0.0001:400ms"}
MOST_RESIDENT_MIB, MOST_DESCRIPTORS_LEFT = 400, 12
TIME_TO_END_S = 40


def read_journal(path):
    if not os.path.exists(path):   # its process has only just begun, or did not come so far
        return []
    with open(path, "rb") as file:
        data = file.read()
    return [Record(*fields) for fields in RECORD.iter_unpack(data)]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Peer:
    """A place that one process after the other takes: server or client number so-and-so."""

    def __init__(self, chaos, place):
        self.chaos, self.place = chaos, place
        self.process = None
        self.state = "dead"          # or: running, stopped, ending
        self.next_at = 0             # when a stopped one goes on, and a dead one is started
        self.journals = []

    def launch(self, words, env):
        number = self.chaos.next_id()
        name = self.chaos.case.path(f"{self.role}-{self.place}-{number}")
        self.journals.append(name)
        self.error_file = name + ".err"
        with open(self.error_file, "w") as err:
            self.process = subprocess.Popen(
                [PEER, *words(name, number)], env={**self.chaos.env, **env}, stdout=err, stderr=err,
                stdin=subprocess.DEVNULL)
        self.chaos.count(f"{self.role}s started")
        self.state = "running"

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.chaos.count(f"{self.role}s killed")
        self.die()

    def stop_for(self, seconds):
        self.signal(signal.SIGSTOP)
        self.chaos.count(f"{self.role}s stopped")
        self.state, self.next_at = "stopped", time.monotonic() + seconds

    def go_on(self):
        self.signal(signal.SIGCONT)
        self.state = "running"

    def end(self):
        """One that has not begun its journal does not hear what it is told yet."""
        if not os.path.exists(self.journals[-1]):
            return self.kill()
        self.signal(signal.SIGTERM)
        self.chaos.count(f"{self.role}s told to end")
        self.state, self.next_at = "ending", time.monotonic() + TIME_TO_END_S
        return None

    def die(self):
        self.state = "dead"
        self.next_at = time.monotonic() + self.chaos.random.choice((0, 0, 0.2, 0.8, 2))

    def advance(self):
        """What is due; and whether it has ended by itself, which it must not."""
        now = time.monotonic()
        if self.state == "stopped" and now >= self.next_at:
            self.go_on()
        if self.state == "dead" and now >= self.next_at:
            self.start()
        if self.state in ("running", "ending") and self.process.poll() is not None:
            if self.state == "running" or self.process.returncode != 0:
                self.chaos.complain(f"{self.role} {self.place} ended with {self.process.returncode}: {self.last_words()}")
            self.die()
        if self.state == "ending" and now >= self.next_at:
            self.hangs()

    def hangs(self):
        self.signal(signal.SIGUSR1)
        time.sleep(2)    # for it to show its stacks
        self.chaos.complain(f"{self.role} {self.place} does not end: {self.last_words()}")
        self.kill()

    def last_words(self):
        with open(self.error_file) as file:
            return file.read()[-6000:]


class Server(Peer):
    role = "server"

    def __init__(self, chaos, place):
        super().__init__(chaos, place)
        self.url_file = chaos.case.path(f"url-{place}")
        self.port = str(free_port())
        self.most_resident_mib = 0

    def start(self):
        if os.path.exists(self.url_file):
            os.unlink(self.url_file)
        self.launch(lambda name, number: ["serve", self.chaos.transport, name, self.url_file],
                    {"NESSIE_NNTI_OFI_PORT": self.port})
        self.descriptors_at_first = None

    def descriptors(self):
        return len(self.open_files())

    def open_files(self):
        """Those of blocks of memory apart, which are kept, up to a size, to be used again."""
        folder = f"/proc/{self.process.pid}/fd"
        found = []
        for name in os.listdir(folder):
            try:
                found.append(os.readlink(os.path.join(folder, name)))
            except FileNotFoundError:
                continue   # closed meanwhile
        return [name for name in found if "memfd:" not in name]

    def sample(self):
        if self.state != "running" or not os.path.exists(self.url_file):
            return
        with open(f"/proc/{self.process.pid}/statm") as file:
            resident_mib = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20
        self.most_resident_mib = max(self.most_resident_mib, resident_mib)
        if self.descriptors_at_first is None:
            self.descriptors_at_first = self.descriptors()


class Client(Peer):
    role = "client"

    def start(self):
        reconnect = self.chaos.random.choice(("300ms", "1s", "1s", "3s", "0"))
        urls = [server.url_file for server in self.chaos.servers]
        self.launch(lambda name, number: ["call", self.chaos.transport, name, str(number), *urls],
                    {"NESSIE_NSSI_RECONNECT": reconnect})


class Chaos:
    def __init__(self, case, transport, seed):
        self.case, self.transport, self.random = case, transport, random.Random(f"{seed} {transport}")
        self.env = {**case.env, **COMMON}
        # AddressSanitizer keeps freed memory, 256 MiB of it unless it is told otherwise: that is no leak.
        self.env["ASAN_OPTIONS"] = ":".join(filter(None, [self.env.get("ASAN_OPTIONS"), "quarantine_size_mb=64"]))
        for name, value in FAULTS.items():
            self.env["NESSIE_NNTI_FAULTY_" + name] = value
        self.first_id = self.last_id = self.random.randrange(1, 1 << 30)
        self.counts = collections.Counter()
        self.complaints = []
        self.servers = [Server(self, place) for place in range(SERVERS)]
        self.clients = [Client(self, place) for place in range(CLIENTS)]

    def next_id(self):
        self.last_id += 1
        self.env["NESSIE_NNTI_FAULTY_SEED"] = str(self.last_id)
        return self.last_id

    def count(self, what):
        self.counts[what] += 1

    def complain(self, what):
        self.complaints.append(what)
        print("COMPLAINT:", what, file=sys.stderr, flush=True)

    @property
    def peers(self):
        return self.servers + self.clients

    # --- while it lasts -----------------------------------------------------------------------------------------------

    def run(self, seconds):
        for peer in self.peers:
            peer.start()
        end = time.monotonic() + seconds
        next_fault = time.monotonic() + 0.5
        while time.monotonic() < end and len(self.complaints) < 10:
            self.look_after_peers()
            if time.monotonic() >= next_fault:
                next_fault = time.monotonic() + self.random.uniform(0.05, 0.6)
                self.do_harm()
        self.calm_down()
        self.end()

    def look_after_peers(self):
        for peer in self.peers:
            peer.advance()
        for server in self.servers:
            server.sample()
        time.sleep(0.02)

    def do_harm(self):
        peer = self.random.choice(self.peers)
        if peer.state == "ending" and self.random.random() < 0.2:
            return peer.kill()
        if peer.state != "running":
            return None
        harm = self.random.random()
        if harm < 0.3:
            return peer.kill()
        if harm < 0.8:
            return peer.stop_for(self.random.choice((0.02, 0.1, 0.3, 0.3, 1.3, 2.5)))
        return peer.end()

    def calm_down(self):
        """Everybody is up again, and every client is served by every server."""
        self.count_until = time.monotonic()
        for peer in self.peers:
            peer.next_at = min(peer.next_at, time.monotonic()) if peer.state != "ending" else peer.next_at
        self.wait_for(lambda: all(peer.state == "running" for peer in self.peers), "all to run")
        since = time.monotonic() * 1e6
        self.wait_for(lambda: all(self.is_served(client, since) for client in self.clients),
                      "every client to be served by every server again", self.tell_who_is_not_served(since))

    def is_served(self, client, since):
        return self.served_by(client, since) == set(range(SERVERS))

    def served_by(self, client, since):
        return {record.server for record in read_journal(client.journals[-1])
                if record.kind == b"o" and record.code == OK and record.at_us >= since}

    def tell_who_is_not_served(self, since):
        def tell():
            for client in self.clients:
                client.signal(signal.SIGUSR1)
            for server in self.servers:
                server.signal(signal.SIGUSR1)
            time.sleep(3)    # for them to show their stacks
            return "\n".join(f"client {client.place} by {self.served_by(client, since)}: {client.last_words()}"
                             for client in self.clients) + "\n".join(server.last_words() for server in self.servers)
        return tell

    def wait_for(self, condition, what, explain=lambda: ""):
        end = time.monotonic() + TIME_TO_END_S
        while not condition() and len(self.complaints) < 10:
            if time.monotonic() >= end:
                return self.complain(f"waited {TIME_TO_END_S} s for {what} {explain()}")
            self.look_after_peers()

    def end(self):
        self.end_all(self.clients)
        for server in self.servers:
            self.check_resources(server)
        self.end_all(self.servers)

    def end_all(self, peers):
        for peer in peers:
            if peer.state == "stopped":
                peer.go_on()
            if peer.state == "running":
                peer.end()
        until = time.monotonic() + TIME_TO_END_S
        for peer in peers:
            if peer.state != "ending":
                continue
            try:
                code = peer.process.wait(max(until - time.monotonic(), 0.1))
                if code != 0:
                    self.complain(f"{peer.role} {peer.place} ended with {code}: {peer.last_words()}")
            except subprocess.TimeoutExpired:
                peer.hangs()
            peer.state = "over"

    def check_resources(self, server):
        if server.most_resident_mib > MOST_RESIDENT_MIB:
            self.complain(f"server {server.place} took {server.most_resident_mib} MiB")
        if server.state != "running" or server.descriptors_at_first is None:
            return
        most = server.descriptors_at_first + MOST_DESCRIPTORS_LEFT
        try:
            wait_until(lambda: server.descriptors() <= most, "", 20)
        except AssertionError:
            self.complain(f"server {server.place} had {server.descriptors_at_first} descriptors at first, and has "
                          f"without any client {server.open_files()}")

    # --- when it is over ----------------------------------------------------------------------------------------------

    def account(self):
        executed = collections.Counter()
        for server in self.servers:
            for path in server.journals:
                if os.path.exists(path):
                    executed.update(record.number for record in read_journal(path) if record.kind == b"x")
        known = set()
        for client in self.clients:
            for path in client.journals:
                if os.path.exists(path):
                    known |= self.account_for_client(path, executed)
        for number in set(executed) - known:
            self.complain(f"call {number:x} was carried out, and never made")
        self.counts["carried out"] = sum(executed.values())

    def account_for_client(self, path, executed):
        records = read_journal(path)
        made = {record.number: record for record in records if record.kind == b"i"}
        over = {}
        for record in records:
            if record.kind == b"o":
                if record.number in over:
                    self.complain(f"call {record.number:x} has two outcomes")
                over[record.number] = record
        for record in records:
            self.check_remark(record)
        ended = any(record.kind == b"e" for record in records)
        for number, record in made.items():
            self.counts["calls"] += 1
            outcome = over.get(number)
            if outcome is None and ended:
                self.complain(f"call {number:x} {record} has no outcome")
            problem = self.problem_of(record, outcome, executed[number])
            if problem:
                self.complain(f"call {number:x}: {problem}; carried out {executed[number]} times\n  {record}\n  {outcome}"
                              f"\n  {self.said_of(path, number)}")
        return set(made)

    def said_of(self, path, number):
        """What the client wrote about it."""
        with open(path + ".err") as file:
            return "".join(line for line in file if f"{number:x}" in line)

    def check_remark(self, record):
        """A server that was not heard of when the call ended may go on writing until the buffer is unregistered."""
        name = NAMES[record.code]
        if record.kind == b"T" and name in ("TIMED_OUT", "PEER_LOST", "CANCELLED"):
            self.count(f"written to after {name}")
            return
        words = {b"t": "its data buffer was written to when it was unregistered", b"h": "it hung",
                 b"T": "its data buffer was written to after it was over", b"b": "its callback did not come once"}
        if record.kind in words:
            self.complain(f"call {record.number:x} ({name}, operation {record.op}, flags {record.flags}): "
                          f"{words[record.kind]}")

    def problem_of(self, made, outcome, times):
        """None, or what is wrong with a call that was carried out so many times."""
        is_idempotent, is_one_way = made.flags & IDEMPOTENT, made.flags & ONE_WAY
        if times > 1 and not is_idempotent:
            return "carried out more than once"
        if outcome is None:
            self.counts["calls of killed clients"] += 1
            return None
        name = NAMES[outcome.code]
        self.counts["dropped" if outcome.flags & DROPPED else name] += 1
        self.counts["latest ms"] = max(self.counts["latest ms"], outcome.late_ms)
        if name not in POSSIBLE:
            return f"ended with {name}"
        if outcome.code == OK:
            if not outcome.is_right:
                return "a wrong result"
            # A one-way call is over when its handler is about to begin; its server may be killed then.
            if times == 0 and not is_one_way:
                return "ended well, and was not carried out"
            if made.op in (FAIL, MISSING):
                return "ended well, which it cannot"
            return None
        if outcome.is_right:
            self.counts["errors that say that nothing was done"] += 1
            if times != 0 and not is_idempotent:
                return f"{name} says that it was not carried out, and it was"
        if made.op == FAIL and outcome.code == IO and times == 0:
            return "has its handler's error, and was not carried out"
        return None

    def summary(self):
        order = sorted(self.counts.items())
        most = max(server.most_resident_mib for server in self.servers)
        return f"{self.transport}: " + ", ".join(f"{what} {count}" for what, count in order) + f", server MiB {most}"


class UnderChaos(ProcessTestCase):
    def one_run(self, transport, seed, seconds):
        print(f"chaos over {transport} for {seconds} s, seed {seed}", file=sys.stderr, flush=True)
        chaos = Chaos(self, transport, seed)
        chaos.run(seconds)
        chaos.account()
        print(chaos.summary(), file=sys.stderr, flush=True)
        self.assertEqual(chaos.complaints, [], f"seed {seed}")
        self.assertGreater(chaos.counts["OK"], 0)
        self.assert_nothing_left()

    def every_call_is_accounted_for(self, transport):
        if OPTIONS.transport not in (None, transport):
            self.skipTest(f"only {OPTIONS.transport} is asked for")
        random_seed = random.SystemRandom().randrange(1 << 31)
        for seed in (FIXED_SEED, random_seed) if OPTIONS.seed is None else (OPTIONS.seed,):
            with self.subTest(seed=seed):
                self.one_run(transport, seed, OPTIONS.seconds)

    def test_over_shm(self):
        self.every_call_is_accounted_for("shm")

    def test_over_tcp(self):
        self.every_call_is_accounted_for("tcp")

    def test_over_ofi(self):
        self.every_call_is_accounted_for("ofi")

    def test_over_faulty_shm(self):
        self.every_call_is_accounted_for("faulty+shm")

    def test_over_faulty_tcp(self):
        self.every_call_is_accounted_for("faulty+tcp")


def read_options(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=OPTIONS.seconds, help="how long each run does harm")
    parser.add_argument("--seed", type=int, help="instead of a fixed one and a random one")
    parser.add_argument("--transport", choices=TRANSPORTS, help="instead of all in turn")
    return parser.parse_known_args(words, OPTIONS)[1]


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *read_options(sys.argv[1:])])
