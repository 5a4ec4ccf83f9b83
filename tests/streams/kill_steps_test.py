# SPDX-License-Identifier: BSD-3-Clause
"""A kill, and a stop, at every step: a server of streams, a writer, a reader, or one of those who hand steps on, is killed just
before each of its calls that others can see, and whoever takes its place goes on; or it is stopped there for longer than others
wait. No step that was acknowledged is lost, none is seen twice by who has ended it, none is there in part."""
import os
import random
import shutil
import signal
import socket
import time
import unittest

import netCDF4
import numpy

from counting import Counting, build_library
from harness import NESSIE, unsanitized, wait_until
from peers import Lines, StreamsTestCase

SHARD = os.environ.get("NESSIE_TEST_SWEEP")   # I/N: every Nth step from the Ith on; unset: a sample
ONE = os.environ.get("NESSIE_TEST_STEP")      # one case, as a failing one prints it
SEED = int(os.environ.get("NESSIE_TEST_SEED", "1"))
STEPS, ELEMENTS = 6, 2000                     # of the stream; more than travels in a request
PAUSE_MS = 5                                  # after each step, so that all see most of them one by one
DEADLINE_S = 40
SHORT_MS = 600                                # the deadline of those who wait for who is stopped
# Who is killed, what the streams outlive, and how many servers there are. "again": the server that takes the place of one that
# was killed.
KILLS = [("server 0", "logged", 1), ("server 0", "logged", 2), ("server 1", "logged", 2), ("server 0 again", "logged", 1),
         ("server 1 again", "logged", 2), ("server 0", "memory", 1), ("server 1", "memory", 2), ("writer", "logged", 1),
         ("writer", "memory", 1), ("reader", "logged", 1), ("reader", "memory", 1), ("record", "memory", 1),
         ("forward", "memory", 1), ("receive", "memory", 1)]
STOPS = [(f"{who} stopped", "memory", 1) for who in ("server 0", "writer", "reader")]
LIKELY = {"server": 120, "writer": 60, "reader": 60}   # steps of each, about; of others more
PROGRAMS = {"server": "nessie-streams", "writer": "streams_peer", "reader": "streams_peer"}


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


class Steps(StreamsTestCase):
    def setUp(self):
        super().setUp()
        self.library = self.path("libsteps.so")
        build_library(self.library)

    # --- who is there -------------------------------------------------------------------------------------------------

    def counted(self, role):
        """The environment of the one process that is counted; of all others, none."""
        if role != self.role or self.is_started:
            return None
        self.is_started = True
        return {"LD_PRELOAD": self.library, "NESSIE_STEPS_FILES": self.counting.path}

    def serve(self, index):
        """A server that is there, though it be killed before that."""
        while True:
            env = self.counted(f"server {index}")
            if env is None and self.killed_servers and self.killed_servers[-1] == index:
                env = self.counted(f"server {index} again")
            server = Lines(self, self.server_command(index=index, servers=self.count, log=self.durability == "logged"), env)
            def is_there():
                self.let_go_on(server)   # nobody needs it yet
                return server.has(r"\w+://") or server.process.poll() is not None
            if wait_until(is_there, "a server", DEADLINE_S) is True:
                self.assertEqual(server.end(), -signal.SIGKILL, server.lines)
                continue
            return server

    def writer(self, rank, deadline_ms=DEADLINE_S * 1000):
        options = ["--pause", PAUSE_MS, "--append", "--rank", rank, "--size", self.count, "--elements", ELEMENTS, "--deadline", deadline_ms]
        if self.durability == "logged":
            options.append("--logged")
        return self.write(STEPS, *options, env=self.counted("writer"))

    def reader(self, deadline_ms=DEADLINE_S * 1000):
        return self.read("--as", "all", "--deadline", deadline_ms, env=self.counted("reader"))

    def tool(self, role, *words):
        """`nessie stream`, and once more when it was killed; what it has said."""
        for _ in range(2):
            job = Lines(self, [NESSIE, "stream", role, *words], self.counted(role))
            code = job.end(DEADLINE_S)
            if code != -signal.SIGKILL:
                break
        self.assertEqual(code, 0, job.lines)
        return job

    # --- a stream while somebody is killed ----------------------------------------------------------------------------

    def run_stream(self):
        """Writers and a reader, until the reader has seen the end; whoever was killed, or lost a server, is started anew."""
        self.killed_servers, self.begun, self.seen = [], [], []
        servers = [self.serve(index) for index in range(self.count)]
        writers = [self.writer(rank) for rank in range(self.count)]
        reader = self.reader()
        end = time.monotonic() + DEADLINE_S
        while reader is not None or any(writers):
            self.assertLess(time.monotonic(), end, self.told(writers, reader))
            if self.role.endswith("again") and reader and reader.has("step 1 ") and not self.killed_servers:
                servers[int(self.role.split()[1])].kill()
            for index, server in enumerate(servers):
                if server.process.poll() is not None:
                    self.assertEqual(server.end(), -signal.SIGKILL, server.lines)
                    self.killed_servers.append(index)
                    servers[index] = self.serve(index)
            writers = self.go_on(writers)
            reader = self.read_on(reader)
            if reader and not any(writers) and self.waits_in_vain(reader):
                reader.kill()
                self.seen.append(reader)
                reader = None
            time.sleep(0.005)
        self.check_seen()
        self.end(*reversed(servers))

    def waits_in_vain(self, reader):
        """The stream went with its server when all was written, and nobody will make it again."""
        if self.durability == "logged" or not reader.has("lost: "):
            return False
        before = len(reader.lines)
        time.sleep(2)   # of a stream that is there it would read more
        return reader.process.poll() is None and len(reader.lines) == before and "lost: " in reader.lines[-1]

    def end(self, *servers):
        """Also one that is killed as it ends."""
        for server in servers:
            server.process.terminate()
            wait_until(lambda: self.let_go_on(server) or server.process.poll() is not None, "the end of a server", DEADLINE_S)
            self.assertIn(server.end(), (0, -signal.SIGKILL) if self.role.startswith("server") else (0,), server.lines)

    def go_on(self, writers):
        """All of them anew, when one was killed, or has heard that a server was."""
        if not any(writers) or any(writer.process.poll() is None for writer in writers):
            if any(writer and writer.process.poll() not in (None, 0) for writer in writers):
                for writer in writers:
                    writer.process.kill()   # the others cannot go on without it
            return writers
        codes = [writer.end() for writer in writers]
        self.begun.append(writers)
        if codes == [0] * len(codes):
            return [None] * len(writers)
        for writer in writers:
            self.assertIn(writer.process.returncode, (0, 1, -signal.SIGKILL), writer.lines)
            if writer.process.returncode == 1:
                self.assertTrue(writer.has("error: (PEER_LOST|EXISTS|BUSY|TIMED_OUT|UNAVAILABLE)"), writer.lines)
        return [self.writer(rank) for rank in range(len(writers))]

    def read_on(self, reader):
        if reader is None or reader.process.poll() is None:
            return reader
        code = reader.end()
        self.seen.append(reader)
        self.assertIn(code, (0, 1, -signal.SIGKILL), reader.lines)
        if code == 0:
            return None
        if code == 1:
            self.assertTrue(reader.has("error: (PEER_LOST|BUSY|TIMED_OUT|UNAVAILABLE|NOT_FOUND)"), reader.lines)
        return self.reader()

    @staticmethod
    def told(writers, reader):
        return "\n".join(line for each in [*writers, reader] if each for line in ["--", *each.lines[-12:]])

    def check_seen(self):
        """In order, and all; anew from the beginning only where the servers' memory was lost, and that was said."""
        is_lost = self.durability == "memory" and self.killed_servers
        runs = []
        for reader in self.seen:
            for number in reader.numbers("step"):
                if runs and number == runs[-1][-1] + 1:
                    runs[-1].append(number)
                elif not runs or runs[-1][-1] != number or reader.numbers("step")[0] != number:   # it had not ended that one
                    runs.append([number])
        lines = [reader.lines for reader in self.seen]
        if not is_lost:
            self.assertEqual(runs, [list(range(STEPS))], lines)
        self.assertTrue(runs == [list(range(STEPS))] or any(reader.has("lost: ") for reader in self.seen), lines)
        for before, after in zip(self.begun, self.begun[1:]):
            whole = min((writer.numbers("ended") or [-1])[-1] for writer in before)
            begins = [number for writer in after for number in writer.numbers("begins with")]
            if not is_lost and begins:
                self.assertGreater(begins[0], whole, "what was acknowledged by all is there")

    def run_stopped(self):
        """The one that is counted stops; the others' calls end by their deadlines, and all go on when it does."""
        self.killed_servers, self.begun, self.seen = [], [], []
        server = self.serve(0)
        writer = self.writer(0, SHORT_MS if self.role == "server 0" else DEADLINE_S * 1000)
        reader = self.reader(SHORT_MS if self.role != "reader" else DEADLINE_S * 1000)
        counted = {"server 0": server, "writer": writer, "reader": reader}[self.role]
        others = [each for each in (writer, reader) if each is not counted]
        wait_until(lambda: self.is_stopped(counted) or counted.process.poll() is not None
                   or all(each.process.poll() is not None for each in others), "the stop", DEADLINE_S)
        if self.is_stopped(counted):
            for each in others:
                self.assertIn(each.end(SHORT_MS / 1000 + 10), (0, 1), each.lines)   # no call outlives its deadline
        if counted.process.poll() is None:
            counted.go_on()
        writers = [writer]
        end = time.monotonic() + DEADLINE_S
        while reader is not None or any(writers):
            self.assertLess(time.monotonic(), end, self.told(writers, reader))
            writers, reader = self.go_on(writers), self.read_on(reader)
            time.sleep(0.005)
        self.check_seen()
        self.end(server)

    def let_go_on(self, lines):
        if self.is_stopped(lines):
            lines.go_on()

    @staticmethod
    def is_stopped(lines):
        try:
            with open(f"/proc/{lines.process.pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] == "T"
        except OSError:
            return False

    # --- those who hand steps on --------------------------------------------------------------------------------------

    def run_tool(self):
        self.killed_servers = []
        server = self.serve(0)
        self.assertEqual(self.writer(0).end(), 0)
        getattr(self, f"run_{self.role}")()
        self.end(server)

    def run_record(self):
        self.tool("record", "s", "-o", self.path("s.nc"), "--append", "--as", "archive")
        self.check_file()

    def run_forward(self):
        self.tool("forward", "s", "--to", self.place(), "--as", "copy", "--append", "--subscription", "link")
        reader = self.read("--as", "there", name="copy")
        self.assertEqual(reader.end(), 0, reader.lines)
        self.assert_saw(reader, range(STEPS))

    def run_receive(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = "127.0.0.1:%d" % free.getsockname()[1]
        sender = Lines(self, [NESSIE, "stream", "forward", "s", "--to", f"tcp://{address}"])
        command = [NESSIE, "stream", "receive", "-o", self.path("s.nc"), "--append", "--listen", address]
        receiver = Lines(self, command, self.counted("receive"))
        begun = 1
        while wait_until(lambda: sender.process.poll() is not None or receiver.process.poll() not in (None, 0), "the end", DEADLINE_S):
            if sender.process.poll() is not None:
                break
            self.assertEqual((receiver.end(), begun), (-signal.SIGKILL, 1), receiver.lines)
            receiver, begun = Lines(self, command), 2
        self.assertEqual(sender.end(), 0, sender.lines)
        try:
            self.assertIn(receiver.end(DEADLINE_S if begun == 1 else 3), (0, -signal.SIGKILL), receiver.lines)
        except AssertionError:
            self.assertEqual((begun, receiver.process.poll()), (2, None), receiver.lines)   # it has come when all was over
            receiver.kill()
        self.check_file()

    def place(self):
        folder = os.path.join(self.runtime, "nessie", "streams")
        return f"file:{folder}/default.contact"

    def check_file(self):
        with netCDF4.Dataset(self.path("s.nc")) as file:
            file.set_auto_mask(False)
            self.assertEqual(list(file["step"][:]), list(range(STEPS)))
            for step in range(STEPS):
                numpy.testing.assert_array_equal(file["x"][step], step * 1e9 + numpy.arange(ELEMENTS))

    # --- many ---------------------------------------------------------------------------------------------------------

    def run_one(self, setup, step):
        """Returns how many steps there were, and whether somebody was killed, or stopped."""
        role, self.durability, self.count = setup
        stops = role.endswith("stopped")
        self.role, self.is_started = role.removesuffix(" stopped"), False
        kind = self.role.split()[0]
        for name in os.listdir(self.folder):
            if name.startswith(("log", "s.nc")):
                remove(self.path(name))
        self.counting = Counting(self.path("counting"), [PROGRAMS.get(kind, "nessie")], step, stops)
        case = f"{role}, {self.durability}, {self.count}, {step}"
        try:
            if stops:
                self.run_stopped()
            elif kind in PROGRAMS:
                self.run_stream()
            else:
                self.run_tool()
        except AssertionError as error:
            self.kill_marked()
            before = self.counting.call(step) if 0 < step <= self.counting.steps() else "-"
            said = f"NESSIE_TEST_STEP='{case}' repeats it: before step {step}, {before}: {error}"
            print(said, flush=True)   # the others may take long
            raise AssertionError(said) from None
        return self.counting.steps(), 0 < step <= self.counting.steps()

    def run_many(self, setup, choose):
        killed = 0
        steps, _ = self.run_one(setup, 0)
        for step in choose(steps):
            with self.subTest(f"{setup}, {step}"):
                killed += self.run_one(setup, step)[1]
        print(f"{setup}: {steps} steps, {killed} killed or stopped", flush=True)
        return killed

    @unsanitized("its own library must come first")
    @unittest.skipIf(SHARD or ONE, "runs in ./dev test")
    def test_of_some_steps(self):
        chance, hit = random.Random(SEED), 0
        for setup in KILLS + STOPS:
            likely = LIKELY.get(setup[0].split()[0], 150)
            with self.subTest(setup):
                hit += self.run_one(setup, chance.randint(1, likely))[1]
        self.assertGreater(hit, len(KILLS + STOPS) // 2)

    @unittest.skipUnless(SHARD, "runs in ./dev test-all")
    def test_of_every_step(self):
        shard, shards = map(int, SHARD.split("/"))
        hit = 0
        for setup in KILLS + STOPS:
            with self.subTest(setup):
                hit += self.run_many(setup, lambda steps: range(1 + shard, steps + 1, shards))
        self.assertGreater(hit, len(KILLS))

    @unittest.skipUnless(ONE, "NESSIE_TEST_STEP says which")
    def test_of_one_step(self):
        role, durability, servers, step = ONE.split(", ")
        self.assertTrue(self.run_one((role, durability, int(servers)), int(step))[1])


if __name__ == "__main__":
    unittest.main()
