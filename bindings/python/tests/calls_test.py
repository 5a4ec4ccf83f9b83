# SPDX-License-Identifier: BSD-3-Clause
"""Calls between processes: a client in Python with services in C++ and in Python, and the other way round."""
import signal
import subprocess
import threading
import unittest

import numpy
import stub_test
from atlas import FIRST
from support import ProcessCase, program, wait_until

import nessie
from nessie import nssi

PEER = program("nessie_python_atlas_peer")
SIZE = 16 << 20


class ClientCase(ProcessCase):
    def setUp(self):
        self.server, url = self.start_server()
        self.runtime = nssi.Runtime.open(transports=["shm"], listen=False)
        self.addCleanup(self.runtime.close)
        self.peer = self.runtime.connect(url)
        self.atlas = FIRST.Client(self.runtime, self.peer)


class EveryService:
    """What holds for a service in any language."""

    def test_carries_arguments_and_results_of_every_kind(self):
        atlas, point = self.atlas, stub_test.point
        self.assertIsNone(atlas.NOTHING())
        self.assertEqual(atlas.ADD(40, 2), 42)
        self.assertEqual(atlas.SHORT(-7), -7)
        self.assertEqual(atlas.GREET("Ada"), "hello Ada")
        self.assertEqual(atlas.MIRROR(point(3, 4)), point(-3, -4))
        self.assertEqual(atlas.WALK(point(1, 1), 3), [point(1, 1), point(2, 1), point(3, 1)])
        self.assertEqual(atlas.FIND(stub_test.color.RED).where, point(1, 2))
        self.assertIsNone(atlas.FIND(stub_test.color.GREEN).where)
        for size in (0, 1, 511, 4096, 100_000, 1 << 22):
            data = bytes(i % 251 for i in range(size % 5000)) + bytes(size - size % 5000)
            self.assertEqual(atlas.ECHO(data), data)

    def test_moves_an_array_of_numpy_both_ways(self):
        array = numpy.zeros(SIZE, "uint8")
        buffer = self.runtime.register(array, nssi.Rights.READ_WRITE)
        self.atlas.FILL(3, buffer)
        self.assertTrue((array == 3).all())
        self.assertEqual(self.atlas.SUM(buffer), 3 * SIZE)
        self.atlas.NEGATE(buffer)
        self.assertTrue((array == 0xFC).all())

    def test_moves_allocated_memory_both_ways(self):
        buffer = self.runtime.allocate(SIZE)
        array = numpy.frombuffer(buffer, "uint64")
        array[:] = 0x0101010101010101
        self.assertEqual(self.atlas.SUM(buffer), SIZE)
        self.atlas.FILL(2, buffer)
        self.assertTrue((array == 0x0202020202020202).all())

    def test_several_calls_at_once_have_each_its_result(self):
        futures = [self.atlas.ADD_async(i, i) for i in range(200)]
        self.assertEqual([future.result() for future in futures], [2 * i for i in range(200)])

    def test_threads_call_at_once(self):
        sums = {}

        def call(i):
            sums[i] = [self.atlas.ADD(i, j) for j in range(50)]

        threads = [threading.Thread(target=call, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sums, {i: [i + j for j in range(50)] for i in range(6)})

    def test_errors_of_handlers_arrive_as_they_were(self):
        with self.assertRaises(nessie.Io) as caught:
            self.atlas.REFUSE(28)
        error = caught.exception
        self.assertEqual((error.code, error.scope, error.cause), (nessie.Code.IO, nessie.Scope.SERVICE, 28))
        self.assertEqual(error.message, "No space left on device: free some")
        with self.assertRaises(nessie.Internal):
            self.atlas.WALK(stub_test.point(), 9)

    def test_what_cannot_be_is_said_before_or_after_it_is_sent(self):
        service = self.atlas.service
        for error, call in (
            (nessie.InvalidArgument, lambda: self.atlas.FIND(7)),
            (nessie.InvalidArgument, lambda: self.atlas.ADD("1", 2)),
            (nessie.InvalidArgument, lambda: self.atlas.SUM(None)),
            (nessie.InvalidArgument, lambda: self.atlas.FILL(1, self.runtime.register(b"ro", nssi.Rights.REMOTE_READ))),
            (nessie.BadMessage, lambda: self.runtime.call_and_wait(service, FIRST.ADD, b"12345")),
            (nessie.NotFound, lambda: self.runtime.call_and_wait(service, 99)),
            (nessie.NotFound, lambda: FIRST.Client(self.runtime, self.peer, 5).ADD(1, 2)),
            (nessie.TimedOut, lambda: self.atlas.ADD(1, 2, timeout=0)),
            (nessie.InvalidArgument, lambda: self.runtime.call_and_wait(service, FIRST.NOTHING, "text")),
        ):
            with self.assertRaises(error):
                call()
        self.assertEqual(self.atlas.ADD(1, 1), 2)

    def test_a_killed_service_is_a_typed_error(self):
        self.assertEqual(self.atlas.ADD(1, 1), 2)
        futures = [self.atlas.ADD_async(1, 1) for _ in range(3)]
        self.server.kill()
        with self.assertRaises(nessie.PeerLost) as caught:
            for _ in range(100_000):
                self.atlas.ADD(1, 1)
        self.assertIsInstance(caught.exception, ConnectionError)
        for future in futures:
            try:
                self.assertEqual(future.result(), 2)
            except nessie.PeerLost:
                pass


class WithCpp(EveryService, ClientCase):
    def start_server(self):
        return self.start(PEER, "serve")

    def test_a_wait_that_times_out_can_be_repeated(self):
        future = self.atlas.BURN_async(timeout=1.0)
        self.assertFalse(future.test())
        with self.assertRaisesRegex(nessie.TimedOut, "goes on"):
            future.wait(0.01)
        with self.assertRaises(nessie.TimedOut):
            future.result()
        self.assertTrue(future.test())

    def test_a_dropped_call_gives_its_buffer_back(self):
        array = numpy.zeros(SIZE, "uint8")
        buffer = self.runtime.register(array, nssi.Rights.REMOTE_READ)
        service = self.atlas.service
        future = self.runtime.call(service, FIRST.BURN, data=buffer)
        with self.assertRaises(nessie.Busy):
            buffer.unregister()
        del future
        buffer.unregister()
        self.assertFalse(buffer.is_valid)
        with self.assertRaises(nessie.InvalidArgument):
            self.atlas.SUM(buffer)

    def test_closing_ends_calls_that_other_threads_wait_for(self):
        made, ended = [], []

        def call(what):
            try:
                while True:
                    what()
                    made.append(what)
            except nessie.Error as error:
                ended.append(error)

        threads = [
            threading.Thread(target=call, args=(what,)) for what in (self.atlas.BURN, lambda: self.atlas.ADD(1, 1))
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(made) > 20, "calls")
        self.runtime.close()
        for thread in threads:
            thread.join()
        self.assertEqual([type(error) for error in ended], [nessie.Cancelled] * 2)

    def test_a_future_outlives_its_runtime(self):
        done, pending = self.atlas.GREET_async("Ada"), self.atlas.BURN_async()
        done.wait()
        self.runtime.close()
        self.assertEqual(done.result(), "hello Ada")
        with self.assertRaises(nessie.Cancelled):
            pending.result()
        with self.assertRaises(nessie.Cancelled):
            self.atlas.NOTHING()

    def test_ctrl_c_interrupts_a_wait(self):
        main = threading.get_ident()
        timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            timer.start()
            self.atlas.BURN()
        timer.join()
        self.assertEqual(self.atlas.ADD(1, 1), 2)


class WithPython(EveryService, ClientCase):
    def start_server(self):
        return self.start_python("atlas.py")

    def test_ctrl_c_ends_the_service(self):
        self.assertEqual(self.atlas.ADD(1, 1), 2)
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.stdout.readline(), "interrupted\n")
        self.assertEqual(self.server.wait(60), 3)


class OfCpp(ProcessCase):
    def test_a_client_in_cpp_finds_a_service_in_python_as_it_should_be(self):
        _, url = self.start_python("atlas.py", stderr=subprocess.DEVNULL)
        done = subprocess.run([PEER, "call", url], capture_output=True, text=True, timeout=100)
        self.assertEqual((done.stdout, done.returncode), ("done\n", 0))


if __name__ == "__main__":
    unittest.main()
