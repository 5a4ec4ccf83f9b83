# SPDX-License-Identifier: BSD-3-Clause
"""Calls in asyncio's event loops."""
import asyncio
import os
import threading
import unittest

import numpy
from fields import FIELDS, axis
from support import ProcessCase

import nessie
from nessie import nssi

ONE = FIELDS.ONE
MINUTE_MS = 60_000


def cpu_seconds():
    times = os.times()
    return times.user + times.system


class Loop(ProcessCase):
    def setUp(self):
        self.server, url = self.start_peer("cxx")
        self.runtime = nssi.Runtime.open(transports=["shm"], listen=False)
        self.addCleanup(self.runtime.close)
        self.fields = ONE.Client(self.runtime, self.runtime.connect(url))

    def test_many_calls_are_awaited_at_once(self):
        async def main():
            sums = await asyncio.gather(*(self.fields.ADD_async(i, i) for i in range(2000)))
            self.assertEqual(sums, [2 * i for i in range(2000)])
            self.assertEqual(await self.fields.GREET_async("Ada", ""), "hello Ada, ")

        asyncio.run(main())
        asyncio.run(main())  # another loop

    def test_errors_are_raised_where_they_are_awaited(self):
        async def main():
            with self.assertRaises(nessie.Io):
                await self.fields.REFUSE_async(5)
            results = await asyncio.gather(
                self.fields.ADD_async(1, 2), self.fields.REFUSE_async(28), return_exceptions=True
            )
            self.assertEqual(results[0], 3)
            self.assertEqual(results[1].cause, 28)

        asyncio.run(main())

    def test_the_loop_goes_on_while_a_call_is_in_progress_and_sleeps(self):
        async def main():
            burning = asyncio.ensure_future(self.wrap(self.fields.REST_async(MINUTE_MS, timeout=1)))
            turns, before = 0, cpu_seconds()
            while not burning.done():
                turns += 1
                await asyncio.sleep(0.01)
            self.assertIsInstance(burning.exception(), nessie.TimedOut)
            self.assertGreater(turns, 3)
            self.assertLess(cpu_seconds() - before, 0.7)   # of a second: nobody polls

        asyncio.run(main())

    @staticmethod
    async def wrap(future):
        return await future

    def test_a_deadline_ends_an_awaited_call(self):
        async def main():
            with self.assertRaisesRegex(nessie.TimedOut, "may have acted"):
                await self.fields.REST_async(MINUTE_MS, timeout=0.2)

        asyncio.run(main())

    def test_a_cancelled_task_cancels_its_call_and_its_buffer_is_free_then(self):
        array = numpy.zeros(1 << 20, "uint8")
        buffer = self.runtime.register(array, nssi.Rights.REMOTE_READ)

        async def main():
            future = self.runtime.call(self.fields.service, ONE.REST, MINUTE_MS.to_bytes(4, "big"), data=buffer)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.wrap(future), 0.1)
            with self.assertRaises(nessie.Cancelled):
                future.result()
            self.assertEqual(await self.fields.ADD_async(1, 2), 3)

        asyncio.run(main())

    def test_bulk_data_moves_while_the_loop_goes_on(self):
        arrays = [numpy.full(1 << 17, i, "float64") for i in range(4)]
        buffers = [self.runtime.register(array, nssi.Rights.READ_WRITE) for array in arrays]

        async def main():
            measured = await asyncio.gather(*(self.fields.MEASURE_async(buffer) for buffer in buffers))
            self.assertEqual([each.sum for each in measured], [i << 17 for i in range(4)])
            await asyncio.gather(*(self.fields.RAMP_async(axis.ALONG_X, buffer) for buffer in buffers))

        asyncio.run(main())
        self.assertTrue(all((array == numpy.arange(1, len(array) + 1)).all() for array in arrays))

    def test_a_killed_service_ends_what_is_awaited(self):
        async def main():
            tasks = [asyncio.ensure_future(self.wrap(self.fields.REST_async(MINUTE_MS))) for _ in range(5)]
            await self.fields.ADD_async(1, 1)
            self.server.kill()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                self.assertIsInstance(result, nessie.PeerLost)

        asyncio.run(main())

    def test_closing_ends_what_is_awaited(self):
        async def main():
            task = asyncio.ensure_future(self.wrap(self.fields.REST_async(MINUTE_MS)))
            await self.fields.ADD_async(1, 1)
            self.runtime.close()
            with self.assertRaises(nessie.Cancelled):
                await task

        asyncio.run(main())

    def test_threads_wait_beside_the_loop(self):
        async def main():
            loop = asyncio.get_running_loop()
            waits = [loop.run_in_executor(None, self.fields.ADD, i, i) for i in range(20)]
            awaited = [self.wrap(self.fields.ADD_async(i, i)) for i in range(20)]
            self.assertEqual(await asyncio.gather(*waits, *awaited), [2 * i for i in range(20)] * 2)

        asyncio.run(main())

    def test_a_call_is_awaited_once_at_a_time(self):
        async def main():
            future = self.fields.REST_async(MINUTE_MS, timeout=0.5)
            first = asyncio.ensure_future(self.wrap(future))
            await asyncio.sleep(0)
            with self.assertRaises(nessie.InvalidArgument):
                await future
            with self.assertRaises(nessie.TimedOut):
                await first

        asyncio.run(main())

    def test_a_process_that_serves_in_its_main_thread_awaits_in_another(self):
        results = []

        async def main():
            results.extend(await asyncio.gather(*(self.fields.ADD_async(i, 1) for i in range(50))))

        def other():
            asyncio.run(main())
            self.runtime.stop()

        thread = threading.Thread(target=other)
        thread.start()
        self.runtime.run()
        thread.join()
        self.assertEqual(results, [i + 1 for i in range(50)])


if __name__ == "__main__":
    unittest.main()
