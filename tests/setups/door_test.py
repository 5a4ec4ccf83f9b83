# SPDX-License-Identifier: BSD-3-Clause
"""How programs wait for a file that a server has a part of, at a server that the test plays: its board, and its door."""
import mmap
import os
import socket
import struct
import subprocess
import threading

import setups
from harness import BUILD, wait_until

PRELOAD = f"{os.environ.get('NESSIE_TEST_PRELOAD', '')}:{os.path.join(BUILD, 'lib', 'libnessie_pnetcdf.so')}"
HEAD = struct.Struct("=QIIIIQQQII104s")   # board.h
PLACE = struct.Struct("=QQ")
PLACES, WRITES_BYTES = 4096, 8 * 4096 + 2 * (1 << 18) // 8 + (1 << 17) // 8
MAGIC = 0x3844524253534e45
OWN_NETWORK = os.stat("/proc/self/ns/net").st_ino
PATIENCE_MS = 1000
GIVEN_UP = "gave no sign of life"


class PlayedServer:
    """Its board shows `files` until they are taken away; `kept` of them outlive it."""

    def __init__(self, folder, files, patience_ms=PATIENCE_MS, network=OWN_NETWORK, backlog=16, kept=0):
        self.name = f"nessie-door-{os.path.basename(folder)}-{os.getpid()}"
        self.listen(backlog)
        self.environment = {"LD_PRELOAD": PRELOAD, "NESSIE_BOARDS": f"1 {folder}"}
        head = HEAD.pack(MAGIC, len(files), len(files), 0, 0, 0, network, patience_ms, 0, kept, self.name.encode())
        places = b"".join(PLACE.pack(status.st_dev, status.st_ino) for status in map(os.stat, files))
        with open(os.path.join(folder, "board.0.writes"), "wb") as counts:
            counts.write(bytes(WRITES_BYTES))
        with open(os.path.join(folder, "board.0"), "w+b") as board:
            board.write((head + places).ljust(HEAD.size + PLACES * PLACE.size, b"\0"))
            board.flush()
            self.board = mmap.mmap(board.fileno(), 0)

    def listen(self, backlog=16):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind("\0" + self.name)
        self.listener.listen(backlog)
        self.listener.settimeout(60)

    def follow(self):
        """Takes the place of one that has died."""
        self.name += "-again"
        self.listen()
        struct.pack_into("=104s", self.board, HEAD.size - 104, self.name.encode())

    def show_life(self):
        alive, = struct.unpack_from("=I", self.board, 20)
        struct.pack_into("=I", self.board, 20, alive + 1)

    def take_away_all(self):
        struct.pack_into("=I", self.board, 8, 0)

    def close(self):
        self.listener.close()
        self.board.close()


class Door(setups.SetupCase):
    def setUp(self):
        super().setUp()
        self.files = [self.path(f"file{i}") for i in range(4)]
        for name in self.files:
            with open(name, "w") as file:
                file.write("whole")

    def play(self, **options):
        server = PlayedServer(self.make("boards"), self.files, **options)
        self.addCleanup(server.close)
        return server

    def look(self, server, command=None, **env):
        """Starts a command that asks for the size of a file."""
        return self.job(command or ["stat", "-c", "%s", self.files[0]], env={**server.environment, **env})

    def assert_ends(self, job, complaints, says=GIVEN_UP, sizes="5\n"):
        code, out, err = job.finish()
        self.assertEqual((code, out), (0, sizes), err)
        self.assertEqual(err.count(says), complaints, err)

    def test_who_is_answered_goes_on(self):
        server = self.play()
        job = self.look(server)
        visitor, _ = server.listener.accept()
        status = os.stat(self.files[0])
        self.assertEqual(visitor.recv(64), PLACE.pack(status.st_dev, status.st_ino))
        visitor.send(b"+")
        self.assert_ends(job, 0)

    def test_who_is_sent_away_comes_again(self):
        server = self.play()
        job = self.look(server)
        for _ in range(3):
            server.listener.accept()[0].close()
        visitor, _ = server.listener.accept()
        visitor.send(b"+")
        self.assert_ends(job, 0)

    def test_a_silent_server_is_given_up(self):
        """Once in a process, whatever other files there are."""
        server = self.play()
        self.assert_ends(self.look(server, ["stat", "-c", "%s", *self.files]), 1, sizes="5\n" * len(self.files))

    def test_signals_do_not_prolong_the_waiting(self):
        server = self.play()
        program = ("import os, signal, sys; signal.signal(signal.SIGALRM, lambda *_: None); "
                   "signal.setitimer(signal.ITIMER_REAL, .05, .05); print(os.stat(sys.argv[1]).st_size)")
        self.assert_ends(self.look(server, ["/usr/bin/python3", "-S", "-c", program, self.files[0]]), 1)

    def test_a_server_whose_queue_is_full_is_given_up_or_waited_for(self):
        server = self.play(backlog=0)
        first = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        first.connect("\0" + server.name)
        self.assert_ends(self.look(server), 1)
        job = self.look(server)
        server.listener.accept()[0].close()
        visitor, _ = server.listener.accept()
        visitor.send(b"+")
        self.assert_ends(job, 0)
        first.close()

    def test_as_long_as_a_server_works_it_is_waited_for(self):
        """And a file that has left the board is whole, though nobody answers."""
        server = self.play()
        job = self.look(server)
        visitor, _ = server.listener.accept()
        tired = threading.Event()

        def work():
            while not tired.wait(PATIENCE_MS / 10 / 1000):
                server.show_life()
        worker = threading.Thread(target=work)
        worker.start()
        with self.assertRaises(subprocess.TimeoutExpired):
            job.process.wait(timeout=3 * PATIENCE_MS / 1000)
        server.take_away_all()
        self.assert_ends(job, 0)
        tired.set()
        worker.join()
        visitor.close()

    def test_a_server_that_has_ended_is_not_waited_for(self):
        server = self.play(patience_ms=3600 * 1000)
        server.listener.close()
        self.assert_ends(self.look(server), 0)

    def test_a_server_that_another_one_follows_is_waited_for(self):
        server = self.play(patience_ms=60 * 1000, kept=1)
        job = self.look(server)
        server.listener.accept()[0].close()
        server.listener.close()
        with self.assertRaises(subprocess.TimeoutExpired):
            job.process.wait(timeout=0.3)
        server.follow()
        visitor, _ = server.listener.accept()
        visitor.send(b"+")
        self.assert_ends(job, 0)

    def test_a_server_that_none_follows_is_given_up(self):
        server = self.play(kept=1)
        server.listener.close()
        self.assert_ends(self.look(server), 1)

    def test_from_another_network_the_board_is_watched(self):
        server = self.play(patience_ms=3600 * 1000, network=1)
        server.listener.close()
        job = self.look(server)
        wait_until(lambda: len(job.descendants("stat")) == 1, "the program to run")
        with self.assertRaises(subprocess.TimeoutExpired):
            job.process.wait(timeout=0.3)
        server.take_away_all()
        self.assert_ends(job, 0)

    def test_from_another_network_a_file_that_stays_is_given_up(self):
        server = self.play(network=1)
        server.listener.close()
        self.assert_ends(self.look(server), 1, says="cannot be reached from here")

    def test_patience_is_the_servers_timeout_in_whatever_unit(self):
        for text, expected in (("2min", 120000), ("5", 5000), ("500ms", PATIENCE_MS)):   # several signs of life at least
            with self.subTest(timeout=text):
                board = 'cat "${NESSIE_BOARDS#1 }/board.0" | od -An -tu8 -j40 -N8'
                outcome = self.staged("caching", ["sh", "-c", board], env={"NESSIE_STAGING_TIMEOUT": text})
                self.assertEqual(int(outcome.out), expected, outcome.err)


if __name__ == "__main__":
    setups.main()
