# SPDX-License-Identifier: BSD-3-Clause
"""Threads, ends and signals of a client in Python, with services in C++ and in Python. tests/languages has the rest."""
import signal
import subprocess
import threading
import unittest

import numpy
from fields import FIELDS
from support import ProcessCase, wait_until

import nessie
from nessie import nssi

ONE = FIELDS.ONE
MINUTE_MS = 60_000
SIZE = 16 << 20


class ClientCase(ProcessCase):
    def setUp(self):
        self.server, url = self.start_peer(self.LANGUAGE, stderr=subprocess.DEVNULL)
        self.runtime = nssi.Runtime.open(transports=["shm"], listen=False)
        self.addCleanup(self.runtime.close)
        self.fields = ONE.Client(self.runtime, self.runtime.connect(url))


class EveryService:
    """What holds for a service in any language."""

    def test_threads_call_at_once(self):
        sums = {}

        def call(i):
            sums[i] = [self.fields.ADD(i, j) for j in range(50)]

        threads = [threading.Thread(target=call, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sums, {i: [i + j for j in range(50)] for i in range(6)})

    def test_a_killed_service_is_a_typed_error(self):
        self.assertEqual(self.fields.ADD(1, 1), 2)
        futures = [self.fields.ADD_async(1, 1) for _ in range(3)]
        self.server.kill()
        with self.assertRaises(nessie.PeerLost) as caught:
            for _ in range(100_000):
                self.fields.ADD(1, 1)
        self.assertIsInstance(caught.exception, ConnectionError)
        for future in futures:
            try:
                self.assertEqual(future.result(), 2)
            except nessie.PeerLost:
                pass


class WithCpp(EveryService, ClientCase):
    LANGUAGE = "cxx"

    def test_a_wait_that_times_out_can_be_repeated(self):
        future = self.fields.REST_async(MINUTE_MS, timeout=1.0)
        self.assertFalse(future.test())
        with self.assertRaisesRegex(nessie.TimedOut, "goes on"):
            future.wait(0.01)
        with self.assertRaises(nessie.TimedOut):
            future.result()
        self.assertTrue(future.test())

    def test_a_dropped_call_gives_its_buffer_back(self):
        array = numpy.zeros(SIZE, "uint8")
        buffer = self.runtime.register(array, nssi.Rights.REMOTE_READ)
        future = self.runtime.call(self.fields.service, ONE.REST, MINUTE_MS.to_bytes(4, "big"), data=buffer)
        with self.assertRaises(nessie.Busy):
            buffer.unregister()
        del future
        buffer.unregister()
        self.assertFalse(buffer.is_valid)
        with self.assertRaises(nessie.InvalidArgument):
            self.fields.MEASURE(buffer)

    def test_closing_ends_calls_that_other_threads_wait_for(self):
        made, ended = [], []

        def call(what):
            try:
                while True:
                    what()
                    made.append(what)
            except nessie.Error as error:
                ended.append(error)

        calls = (lambda: self.fields.REST(MINUTE_MS), lambda: self.fields.ADD(1, 1))
        threads = [threading.Thread(target=call, args=(what,)) for what in calls]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(made) > 20, "calls")
        self.runtime.close()
        for thread in threads:
            thread.join()
        self.assertEqual([type(error) for error in ended], [nessie.Cancelled] * 2)

    def test_a_future_outlives_its_runtime(self):
        done, pending = self.fields.GREET_async("Ada", ""), self.fields.REST_async(MINUTE_MS)
        done.wait()
        self.runtime.close()
        self.assertEqual(done.result(), "hello Ada, ")
        with self.assertRaises(nessie.Cancelled):
            pending.result()
        with self.assertRaises(nessie.Cancelled):
            self.fields.NOTHING()

    def test_ctrl_c_interrupts_a_wait(self):
        main = threading.get_ident()
        timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            timer.start()
            self.fields.REST(MINUTE_MS)
        timer.join()
        self.assertEqual(self.fields.ADD(1, 1), 2)


class WithPython(EveryService, ClientCase):
    LANGUAGE = "python"

    def test_ctrl_c_ends_the_service(self):
        self.assertEqual(self.fields.ADD(1, 1), 2)
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.wait(60), -signal.SIGINT)


if __name__ == "__main__":
    unittest.main()
