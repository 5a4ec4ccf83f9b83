# SPDX-License-Identifier: BSD-3-Clause
"""Runtimes, buffers, handlers and errors, within one process."""
import array
import contextvars
import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest
import weakref

import numpy
from fields_service import ONE, Fields
from support import Serving, wait_until

import nessie
from nessie import _core, errors, nssi, stub

PROGRAM, VERSION = 0x20001234, 1


def service_at(peer):
    return nssi.Service(peer, PROGRAM, VERSION)


class Bare:
    """Operations without an interface: a function for each number."""

    def __init__(self, *functions, kind=nssi.HandlerKind.FIBER):
        self.functions, self.kind = functions, kind

    def add_to(self, runtime):
        for op, function in enumerate(self.functions):
            runtime.add_operation(PROGRAM, VERSION, op, function, name=function.__name__, kind=self.kind)


class RuntimeCase(unittest.TestCase):
    def setUp(self):
        self.client = nssi.Runtime.open(transports=["shm"], listen=False)
        self.addCleanup(self.client.close)

    def serve(self, *servers, **options):
        serving = Serving(*servers, **options)
        self.addCleanup(serving.__exit__)
        self.served = serving.runtime
        return self.client.connect(serving.runtime.url)


class Discovery(RuntimeCase):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.place = "file:" + os.path.join(self.folder, "a.contact")

    def test_a_service_is_found_where_it_announced_itself(self):
        serving = Serving(Fields())
        serving.runtime.announce(self.place, kind="fields")
        self.assertEqual(self.client.find(self.place, timeout=20), [serving.runtime.url])
        self.assertEqual(ONE.Client(self.client, self.client.connect_to(self.place)).ADD(1, 2), 3)
        serving.__exit__()
        self.assertEqual(os.listdir(self.folder), [], "closing withdraws")

    def test_a_service_that_is_not_there_is_waited_for(self):
        with self.assertRaises(nessie.TimedOut):
            self.client.connect_to(self.place, timeout=0.3)
        with self.assertRaises(nessie.InvalidArgument):
            self.client.connect_to("a.contact", timeout=20)
        with self.assertRaises(nessie.InvalidArgument):
            self.client.announce(self.place)

    def test_waiting_for_a_service_can_be_interrupted(self):
        before = signal.signal(signal.SIGALRM, lambda *_: 1 // 0)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        began = time.monotonic()
        with self.assertRaises(ZeroDivisionError):
            self.client.find(self.place, timeout=60)
        self.assertLess(time.monotonic() - began, 30)


class Errors(unittest.TestCase):
    def test_every_code_of_the_table_has_its_class(self):
        self.assertEqual({name: number for name, number, _ in _core.CODES}, {c.name: c.value for c in nessie.Code})
        for name, number, advice in _core.CODES[1:]:
            kind = errors.CLASSES[number]
            self.assertEqual(kind.__name__.upper(), name.replace("_", ""))
            self.assertEqual(nessie.Code(number).advice(), advice)
            self.assertTrue(issubclass(kind, nessie.Error))

    def test_a_code_that_is_not_known_is_internal_and_named(self):
        error = errors.make(99, "what", 2, 5)
        self.assertIsInstance(error, nessie.Internal)
        self.assertIn("99", str(error))

    def test_bad_arguments_are_typed(self):
        for options in ({"transports": ["pigeon"]}, {"credential": "short"}, {"settings": {"nssi.timeout": "soon"}}):
            with self.assertRaises(nessie.Error):
                nssi.Runtime.open(**options)
        with nssi.Runtime.open(transports=["shm"], listen=False) as runtime:
            with self.assertRaises(nessie.InvalidArgument):
                runtime.connect("nowhere")
            with self.assertRaises(nessie.InvalidArgument):
                runtime.connect("shm://x", timeout=float("nan"))
            with self.assertRaises(TypeError):
                runtime.connect(5)


class Buffers(RuntimeCase):
    def test_borrowed_memory_is_kept_alive_and_locked(self):
        for memory in (bytearray(100), array.array("d", [0.0] * 100), memoryview(bytearray(64))):
            buffer = self.client.register(memory, nssi.Rights.READ_WRITE)
            self.assertEqual(buffer.nbytes, memoryview(memory).nbytes)
        memory = bytearray(100)
        buffer = self.client.register(memory, nssi.Rights.READ_WRITE)
        with self.assertRaises(BufferError):
            memory.append(1)
        buffer.unregister()
        memory.append(1)
        held = numpy.zeros(10)
        gone = weakref.ref(held)
        buffer = self.client.register(held, nssi.Rights.READ_WRITE)
        del held
        gc.collect()
        self.assertIsNotNone(gone())
        del buffer
        self.assertIsNone(gone())

    def test_memory_that_must_not_be_written_is_lent_for_reading_only(self):
        frozen = numpy.zeros(10)
        frozen.flags.writeable = False
        for memory in (frozen, b"bytes"):
            with self.assertRaises(nessie.InvalidArgument):
                self.client.register(memory, nssi.Rights.READ_WRITE)
            self.assertTrue(self.client.register(memory, nssi.Rights.REMOTE_READ).is_valid)

    def test_what_is_no_memory_in_one_piece_is_refused(self):
        for memory in (numpy.zeros(10)[::2], "text", 5, None):
            with self.assertRaises(nessie.InvalidArgument):
                self.client.register(memory, nssi.Rights.REMOTE_READ)
        self.client.register(numpy.zeros((4, 4), order="F"), nssi.Rights.REMOTE_READ).unregister()
        for rights in (0, 4, 8):
            with self.assertRaises(nessie.InvalidArgument):
                self.client.register(bytearray(1), rights)

    def test_allocated_memory_stays_as_long_as_it_is_seen(self):
        buffer = self.client.allocate(4096)
        seen = numpy.frombuffer(buffer, "uint8")
        with self.assertRaises(nessie.Busy):
            buffer.unregister()
        self.client.close()
        del buffer
        seen[:] = 7
        self.assertEqual(int(seen.sum()), 7 * 4096)

    def test_memory_that_is_unregistered_is_out_of_reach(self):
        buffer = self.client.allocate(4096)
        buffer.unregister()
        buffer.unregister()
        with self.assertRaises(BufferError):
            memoryview(buffer)


class Handlers(RuntimeCase):
    def test_interleaved_handlers_pull_and_call_others_each_with_its_own_state(self):
        """Many handlers wait at once, in an exception's handling, deep in recursion, with a context of their own."""
        tag = contextvars.ContextVar("tag")
        all_here = threading.Barrier(8)
        helper = self.serve(Bare(lambda request: request.args[::-1]))

        def pull_and_ask(request):
            data = bytearray(request.data_bytes)
            request.get_data(data)
            return self.client.call_and_wait(service_at(helper), 0, bytes(data))

        def deep(request, number, depth):
            if depth:
                return deep(request, number, depth - 1)
            all_here.wait(60)
            try:
                raise ValueError(number)
            except ValueError:
                answer = pull_and_ask(request)
                is_mine = sys.exc_info()[1].args == (number,) and tag.get() == number
            return answer + bytes([is_mine])

        def handler(request):
            number = request.args[0]
            tag.set(number)
            return deep(request, number, 50 * number)

        peer = self.serve(Bare(handler))
        memory = [self.client.register(bytes([i, 99]) * 5000, nssi.Rights.REMOTE_READ) for i in range(8)]
        futures = [self.client.call(service_at(peer), 0, bytes([i]), data=memory[i]) for i in range(8)]
        for i, future in enumerate(futures):
            self.assertEqual(future.result(), bytes([99, i]) * 5000 + b"\1")

    def test_no_more_than_max_handlers_run_at_once(self):
        running, most, lock = set(), [], threading.Lock()

        def work(request):
            with lock:
                running.add(request.args)
                most.append(len(running))
            time.sleep(0.002)
            with lock:
                running.remove(request.args)

        peer = self.serve(Bare(work), max_handlers=3)
        for future in [self.client.call(service_at(peer), 0, bytes([i])) for i in range(60)]:
            future.result()
        self.assertEqual(len(most), 60)
        self.assertLessEqual(max(most), 3)

    def test_a_handler_hears_that_nobody_waits_for_it_any_more(self):
        ended = []

        def go_on(request):
            ended.append("begun")
            try:
                while True:
                    request.check()
                    time.sleep(0.001)
            except nessie.Error as error:
                ended.append(type(error))
                raise

        for expected in (nessie.Cancelled, nessie.PeerLost):
            with self.subTest(expected):
                ended.clear()
                peer = self.serve(Bare(go_on), settings={"nssi.reconnect": "50ms"})
                future = self.client.call(service_at(peer), 0)
                wait_until(lambda: ended, "the handler")
                if expected is nessie.Cancelled:
                    del future
                else:
                    self.client.disconnect(peer)
                wait_until(lambda: len(ended) == 2, "the handler's end")
                self.assertEqual(ended, ["begun", expected])

    def test_what_was_cancelled_while_it_waited_for_a_thread_does_not_begin(self):
        gate, begun = threading.Event(), []

        def work(request):
            begun.append(request.args)
            gate.wait(20)

        peer = self.serve(Bare(work), max_handlers=1)
        first = self.client.call(service_at(peer), 0, b"1")
        wait_until(lambda: begun, "the first handler")
        dropped, last = self.client.call(service_at(peer), 0, b"2"), self.client.call(service_at(peer), 0, b"3")
        del dropped
        gate.set()
        first.result()
        last.result()
        self.assertEqual(begun, [b"1", b"3"])

    def test_who_blocks_all_the_threads_he_gets_leaves_some_to_others(self):
        gate, asleep, lock = threading.Event(), [], threading.Lock()

        def block(request):
            with lock:
                asleep.append(request.caller)
            gate.wait(20)

        peer = self.serve(Bare(block, lambda request: b"here"), max_handlers=16)
        many = [self.client.call(service_at(peer), 0) for _ in range(40)]
        wait_until(lambda: len(asleep) == 14, "as many threads as one caller gets")
        with nssi.Runtime.open(transports=["shm"], listen=False) as other:
            there = service_at(other.connect(self.served.url))
            self.assertEqual(other.call_and_wait(there, 1, timeout=20), b"here")
            self.assertEqual(len(asleep), 14)
            gate.set()
            for future in many:
                future.result()

    def test_a_short_handler_runs_where_the_request_arrived_and_pulls_there(self):
        threads = set()

        def pull(request):
            threads.add(threading.current_thread().name)
            data = bytearray(request.data_bytes)
            request.get_data(data)
            return data

        peer = self.serve(Bare(pull, kind=nssi.HandlerKind.SHORT))
        buffer = self.client.register(b"some data", nssi.Rights.REMOTE_READ)
        self.assertEqual(self.client.call_and_wait(service_at(peer), 0, data=buffer), b"some data")
        self.assertEqual(len(threads), 1)
        self.assertFalse(threads & {"nessie-handler"})
        # With arguments that do not fit a message it cannot be short.
        self.assertEqual(self.client.call_and_wait(service_at(peer), 0, bytes(1 << 20), data=buffer), b"some data")

    def test_what_a_handler_may_not_do_is_a_typed_error(self):
        kept = []

        def misuse(request):
            kept.append(request)
            faults = []
            for error, act in (
                (nessie.OutOfRange, lambda: request.get_data(bytearray(11))),
                (nessie.OutOfRange, lambda: request.get_data(bytearray(1), 10)),
                (nessie.InvalidArgument, lambda: request.get_data(b"frozen")),
                (nessie.InvalidArgument, lambda: request.get_data(5)),
                (nessie.Refused, lambda: request.put_data(bytes(10))),
                (None, lambda: request.reply(b"answer")),
                (nessie.Exists, lambda: request.reply(b"another")),
                (nessie.InvalidArgument, lambda: request.get_data(bytearray(10))),
            ):
                try:
                    act()
                    faults.append(error)
                except nessie.Error as caught:
                    faults.append(None if type(caught) is error else caught)
            kept.append(faults)

        for kind in (nssi.HandlerKind.FIBER, nssi.HandlerKind.SHORT):
            with self.subTest(kind):
                kept.clear()
                peer = self.serve(Bare(misuse, kind=kind))
                buffer = self.client.register(bytes(10), nssi.Rights.REMOTE_READ)
                self.assertEqual(self.client.call_and_wait(service_at(peer), 0, data=buffer), b"answer")
                request, faults = wait_until(lambda: kept if len(kept) == 2 else None, "the handler")
                self.assertEqual(faults, [None] * 8)
                with self.assertRaises(nessie.InvalidArgument):
                    wait_until(lambda: request.args, "the handler's end")
                    request.get_data(bytearray(1))

    def test_a_handler_that_fails_says_how(self):
        with self.assertLogs("nessie", "ERROR"):
            peer = self.serve(Bare(lambda request: 1 / 0, lambda request: 5, lambda request: sys.exit(1)))
            for op, text in enumerate(("ZeroDivisionError: division by zero", "TypeError", "SystemExit")):
                with self.assertRaisesRegex(nessie.Internal, text) as caught:
                    self.client.call_and_wait(service_at(peer), op)
                self.assertEqual(caught.exception.scope, nessie.Scope.SERVICE)
            self.assertRaises(nessie.Error, self.client.call_and_wait, service_at(peer), 9)

    def test_an_exception_that_cannot_be_put_into_words_arrives_in_others(self):
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError("no words")

        class Blank(nessie.Error):
            def __init__(self):
                pass

        def raises(error):
            def handler(request):
                raise error

            return handler

        expected = (
            (ValueError("\udcff"), nessie.Internal, r"ValueError: \\udcff$"),
            (nessie.InvalidArgument("no \udcff"), nessie.InvalidArgument, r"^no \\udcff$"),
            (nessie.NotFound("ö\0\u20ac"), nessie.NotFound, "^ö\0\u20ac$"),
            (Mute(), nessie.Internal, "Mute"),
            (nessie.InvalidArgument(5), nessie.InvalidArgument, "^5$"),
            (nessie.InvalidArgument(Mute()), nessie.Internal, "InvalidArgument"),
            (nessie.Io("full", cause=1 << 40), nessie.Internal, "Io: full"),
            (nessie.Io("full", scope=None), nessie.Internal, "Io: full"),
            (nessie.Io("full", scope=9), nessie.Internal, "scope 9.*full"),
            (Blank(), nessie.Internal, "Blank"),
        )
        with self.assertLogs("nessie", "ERROR"):
            for kind in (nssi.HandlerKind.FIBER, nssi.HandlerKind.SHORT):
                peer = self.serve(Bare(*[raises(error) for error, _, _ in expected], kind=kind))
                for op, (error, kind_of_error, text) in enumerate(expected):
                    with self.subTest(repr(type(error)), op=op), self.assertRaisesRegex(kind_of_error, text) as caught:
                        self.client.call_and_wait(service_at(peer), op)
                    self.assertIs(type(caught.exception), kind_of_error)

    def test_an_errors_text_is_cut_where_a_character_begins_and_read_whatever_it_is(self):
        def long(request):
            raise nessie.Io("x" + 2000 * "\u20ac")

        def foreign(request):
            request.reply_error(nessie.Code.IO, b"caf\xe9 closed", nessie.Scope.OPERATION, 0)

        peer = self.serve(Bare(long, foreign))
        with self.assertRaises(nessie.Io) as caught:
            self.client.call_and_wait(service_at(peer), 0)
        self.assertEqual(caught.exception.message, "x" + 682 * "\u20ac")
        with self.assertRaises(nessie.Io) as caught:
            self.client.call_and_wait(service_at(peer), 1)
        self.assertEqual(caught.exception.message, "caf\ufffd closed")

    def test_an_interface_has_one_server_for_a_provider_and_all_of_its_methods(self):
        with nssi.Runtime.open(transports=["shm"]) as runtime:
            Fields().add_to(runtime)
            Fields().add_to(runtime, provider=1)
            with self.assertRaises(nessie.Exists):
                Fields().add_to(runtime)
        with self.assertRaises(TypeError):
            type("Half", (ONE.Server,), {"ADD": Fields.ADD})()

    def test_kinds_come_from_marks(self):
        self.assertEqual(Fields().kind_of(ONE.ADD), nssi.HandlerKind.SHORT)
        self.assertEqual(Fields().kind_of(ONE.REST), nssi.HandlerKind.FIBER)

    def test_closing_ends_what_handlers_wait_for(self):
        ended = []

        def pull_forever(request):
            data = bytearray(request.data_bytes)
            try:
                while True:
                    request.get_data(data)
                    started.set()
            except nessie.Error as error:
                ended.append(error)

        started = threading.Event()
        serving = Serving(Bare(pull_forever))
        peer = self.client.connect(serving.runtime.url)
        buffer = self.client.allocate(4096)
        future = self.client.call(service_at(peer), 0, data=buffer)
        while not started.wait(0.01):
            future.test()
        serving.__exit__()
        wait_until(lambda: ended, "the handler's end")
        self.assertTrue(wait_until(future.test, "the call's end"))

    def test_stop_and_close_are_known_to_everybody(self):
        with nssi.Runtime.open(transports=["shm"]) as runtime:
            runtime.stop()
            runtime.run()   # was stopped before it began
            runtime.close()
            runtime.close()
            for use in (runtime.run, runtime.stop, lambda: runtime.allocate(10), lambda: runtime.connect("shm://x")):
                with self.assertRaises(nessie.Cancelled):
                    use()


if __name__ == "__main__":
    unittest.main()
