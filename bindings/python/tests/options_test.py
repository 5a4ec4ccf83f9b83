# SPDX-License-Identifier: BSD-3-Clause
"""How calls are made, waited for and ended: options, several at once, callbacks, and what handlers see of their callers."""
import asyncio
import pickle
import tempfile
import threading
import unittest

from fields_service import ONE, Fields
from support import Serving, wait_until

import nessie
from nessie import nssi

PROGRAM, VERSION = 0x20001235, 1
HOLD, ECHO, WHO = range(3)
SECRET = "ab" * 32


class Gate:
    """HOLD answers when it is opened."""

    def __init__(self):
        self.held, self.opened, self.callers = 0, threading.Event(), []

    def add_to(self, runtime):
        for op, function in enumerate((self.hold, self.echo, self.who)):
            runtime.add_operation(PROGRAM, VERSION, op, function, name=function.__name__)

    def hold(self, request):
        self.held += 1
        while not self.opened.wait(0.01):
            request.check()
        return b"done"

    def echo(self, request):
        return request.args

    def who(self, request):
        self.callers.append((request.role, request.caller_identity))


class Options(unittest.TestCase):
    def setUp(self):
        self.runtime = nssi.Runtime.open(transports=["shm"], listen=False)
        self.addCleanup(self.runtime.close)
        self.gate = Gate()

    def serve(self, *servers, **options):
        self.serving = Serving(self.gate, *servers, **options)
        self.addCleanup(self.serving.__exit__)
        self.addCleanup(self.gate.opened.set)
        self.peer = self.runtime.connect(self.serving.runtime.url)
        self.service = nssi.Service(self.peer, PROGRAM, VERSION)

    def held(self, **options):
        """A call that its handler holds."""
        before = self.gate.held
        future = self.runtime.call(self.service, HOLD, **options)
        wait_until(lambda: future.test() or self.gate.held == before + 1, "the handler")
        return future

    # --- options ----------------------------------------------------------------------------------------------------------

    def test_a_one_way_call_is_over_when_its_handler_begins_and_goes_on_when_it_is_dropped(self):
        self.serve()
        self.assertEqual(self.runtime.call_and_wait(self.service, HOLD, one_way=True), b"")
        self.assertEqual(self.held(one_way=True).result(), b"")
        self.runtime.call(self.service, HOLD, one_way=True)  # and dropped
        wait_until(lambda: self.runtime.call_and_wait(self.service, ECHO) == b"" and self.gate.held == 3, "the third")
        with self.assertRaises(nessie.InvalidArgument):
            self.runtime.call_and_wait(self.service, HOLD, data=self.runtime.allocate(8), one_way=True)

    def test_a_one_way_call_of_an_interface_has_no_result(self):
        self.serve(Fields())
        client = ONE.Client(self.runtime, self.peer)
        self.assertIsNone(client.ADD(1, 2, one_way=True))
        self.assertIsNone(client.ADD_async(1, 2, one_way=True, idempotent=True).result())

    def test_a_busy_service_is_waited_for_or_says_when_to_come_back(self):
        self.serve(settings={"nssi.limit.requests": 1})
        first = self.held()
        for call in (self.runtime.call_and_wait, lambda *args, **options: self.runtime.call(*args, **options).result()):
            with self.assertRaises(nessie.Busy) as caught:
                call(self.service, HOLD, when_busy=nssi.WhenBusy.FAIL)
            self.assertGreater(caught.exception.retry_after, 0)
            again = pickle.loads(pickle.dumps(caught.exception))
            self.assertEqual(again.retry_after, caught.exception.retry_after)
        waits = self.runtime.call(self.service, HOLD)
        with self.assertRaises(nessie.TimedOut) as caught:
            waits.wait(0.001)
        self.assertEqual(caught.exception.retry_after, 0)
        self.gate.opened.set()
        self.assertEqual([first.result(), waits.result()], [b"done", b"done"])
        with self.assertRaises(nessie.InvalidArgument):
            self.runtime.call(self.service, ECHO, when_busy=7)

    # --- ends -------------------------------------------------------------------------------------------------------------

    def test_a_call_that_is_cancelled_tells_so_and_gives_its_buffer_back(self):
        self.serve()
        buffer = self.runtime.allocate(64)
        future = self.held(data=buffer)
        future.cancel()
        self.assertTrue(future.test())
        for _ in range(2):
            with self.assertRaises(nessie.Cancelled):
                future.result()
        buffer.unregister()
        future.cancel()

    def test_a_call_that_is_over_is_not_cancelled(self):
        self.serve()
        future = self.runtime.call(self.service, ECHO, b"text")
        future.wait()
        future.cancel()
        self.assertEqual(future.result(), b"text")

    def test_a_call_that_another_thread_waits_for_is_cancelled(self):
        self.serve()
        future, ended = self.held(), []

        def wait():
            try:
                future.result()
            except nessie.Error as error:
                ended.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        future.cancel()
        thread.join()
        self.assertIsInstance(ended[0], nessie.Cancelled)

    def test_a_call_that_a_task_awaits_is_cancelled_and_the_task_goes_on(self):
        self.serve()

        async def main():
            future = self.runtime.call(self.service, HOLD)
            task = asyncio.ensure_future(wrap(future))
            await asyncio.sleep(0)
            future.cancel()
            with self.assertRaises(nessie.Cancelled):
                await task

        async def wrap(future):
            return await future

        asyncio.run(main())

    # --- several ----------------------------------------------------------------------------------------------------------

    def test_wait_any_finds_the_one_that_is_over(self):
        self.serve()
        futures = [self.held(), self.runtime.call(self.service, ECHO, b"x"), self.held()]
        self.assertEqual(nssi.wait_any(futures), 1)
        self.assertEqual(nssi.wait_any(futures, timeout=0), 1)
        with self.assertRaises(nessie.TimedOut):
            nssi.wait_any([futures[0], futures[2], futures[0]], timeout=0.01)
        self.gate.opened.set()
        self.assertIn(nssi.wait_any([futures[0], futures[2]]), (0, 1))
        with self.assertRaises(nessie.InvalidArgument):
            nssi.wait_any([])

    def test_wait_any_takes_calls_that_others_wait_for(self):
        self.serve()
        futures = [self.held(), self.held()]
        threads = [threading.Thread(target=each.wait) for each in futures]
        for thread in threads:
            thread.start()
        self.gate.opened.set()
        self.assertIn(nssi.wait_any(futures), (0, 1))
        for thread in threads:
            thread.join()

    def test_wait_all_returns_when_all_are_over_whatever_their_outcome(self):
        self.serve()
        futures = [self.runtime.call(self.service, op) for op in (ECHO, 99, HOLD)]
        with self.assertRaises(nessie.TimedOut):
            nssi.wait_all(futures, timeout=0.01)
        self.gate.opened.set()
        nssi.wait_all(futures)
        self.assertTrue(all(each.test() for each in futures))
        nssi.wait_all([])

    def test_multicast_asks_all_and_keeps_their_order(self):
        self.serve()
        missing = nssi.Service(self.peer, PROGRAM, VERSION, 9)
        futures = self.runtime.multicast([self.service, missing, self.service], ECHO, b"text", timeout=20)
        nssi.wait_all(futures)
        self.assertEqual([futures[0].result(), futures[2].result()], [b"text", b"text"])
        with self.assertRaises(nessie.NotFound):
            futures[1].result()

    # --- callbacks --------------------------------------------------------------------------------------------------------

    def test_a_callback_may_wait_for_the_next(self):
        self.serve()
        told = []

        def tell(future):
            told.append((future.result(), self.runtime.call_and_wait(self.service, ECHO, b"next")))

        future = self.held()
        future.add_done_callback(tell)
        self.assertEqual(told, [])
        self.gate.opened.set()
        wait_until(lambda: told, "the callback")
        future.add_done_callback(lambda _: told.append("it was over"))
        wait_until(lambda: len(told) == 2, "the other callback")
        self.assertEqual(told, [(b"done", b"next"), "it was over"])

    def test_nobody_keeps_it_and_its_callbacks_are_called_at_its_deadline_one_of_them_failing(self):
        self.serve()
        told = []

        def fail(future):
            told.append(None)
            raise RuntimeError("nobody wants to know")

        future = self.runtime.call(self.service, HOLD, timeout=0.05)
        with self.assertLogs("nessie", "ERROR"):
            future.add_done_callback(fail)
            future.add_done_callback(lambda it: told.append(it))
            del future
            wait_until(lambda: len(told) == 2, "the callbacks")
        with self.assertRaises(nessie.TimedOut):
            told[1].result()

    def test_a_call_has_callbacks_and_is_awaited(self):
        self.serve()
        told = []

        async def main():
            future = self.runtime.call(self.service, ECHO, b"text")
            future.add_done_callback(told.append)
            self.assertEqual(await future, b"text")

        asyncio.run(main())
        wait_until(lambda: told, "the callback")

    def test_closing_calls_back_what_it_cancels_and_takes_no_more(self):
        self.serve()
        told = []
        future = self.held()
        future.add_done_callback(told.append)
        self.runtime.close()
        self.assertEqual(told, [future])
        with self.assertRaises(nessie.Cancelled):
            future.add_done_callback(told.append)

    # --- services ---------------------------------------------------------------------------------------------------------

    def test_a_handler_sees_who_calls(self):
        self.serve(settings={"operator_credential": SECRET})
        settings = {"operator_credential": SECRET}
        with nssi.Runtime.open(transports=["shm"], listen=False, settings=settings) as operator:
            peer = operator.connect(self.serving.runtime.url)
            for _ in range(2):
                self.runtime.call_and_wait(self.service, WHO)
            operator.call_and_wait(nssi.Service(peer, PROGRAM, VERSION), WHO)
        (first_role, first), (_, again), (role, other) = self.gate.callers
        self.assertEqual((first_role, role), (nssi.Role.USER, nssi.Role.OPERATOR))
        self.assertEqual((len(first), again), (16, first))
        self.assertNotEqual(first, other)

    def test_another_user_cannot_connect_unless_that_was_said(self):
        with tempfile.TemporaryDirectory() as folder:
            def of(name, **more):
                return {"credential_file": f"{folder}/{name}", **more}

            def connect(url, settings):
                with nssi.Runtime.open(transports=["shm"], listen=False, settings=settings) as caller:
                    caller.connect(url)

            for one, other in ((of("mine"), of("mine")), (of("mine", credential="none"), of("yours", credential="none"))):
                with nssi.Runtime.open(transports=["shm"], settings=one) as service:
                    service.start_progress()
                    connect(service.url, other)
            with nssi.Runtime.open(transports=["shm"], settings=of("mine")) as service:
                service.start_progress()
                with self.assertRaisesRegex(nessie.Refused, "NESSIE_CREDENTIAL"):
                    connect(service.url, of("yours"))

    def serve_anew(self):
        """By a runtime of its own, which runs in the thread. Calls go there."""
        runtime = nssi.Runtime.open(transports=["shm"])
        self.addCleanup(runtime.close)
        self.addCleanup(self.gate.opened.set)
        self.gate.add_to(runtime)
        thread = threading.Thread(target=runtime.run)
        thread.start()
        self.service = nssi.Service(self.runtime.connect(runtime.url), PROGRAM, VERSION)
        return runtime, thread

    def test_a_service_that_stops_when_it_is_done_answers_what_it_has_accepted(self):
        runtime, thread = self.serve_anew()
        accepted = self.held()
        runtime.stop_when_done()

        def refusal():
            try:
                self.runtime.call_and_wait(self.service, ECHO)
            except nessie.Unavailable as error:
                return error

        wait_until(refusal, "the refusal")
        with self.assertRaises(nessie.TimedOut):
            accepted.wait(0.3)  # longer than run() goes on without a look at signals
        self.assertTrue(thread.is_alive())
        self.gate.opened.set()
        self.assertEqual(accepted.result(), b"done")
        thread.join()

    def test_a_service_that_is_not_done_in_time_stops(self):
        runtime, thread = self.serve_anew()
        self.held(one_way=True)
        runtime.stop_when_done(0.05)
        thread.join()


if __name__ == "__main__":
    unittest.main()
