# SPDX-License-Identifier: BSD-3-Clause
"""nessie.streams: what is particular to Python. What all languages share is in tests/languages."""
import contextlib
import os
import random
import shutil
import signal
import tempfile
import threading
import time
import unittest

import numpy
from support import PROGRAMS, ProcessCase, wait_until

import nessie
from nessie import streams

SERVER = os.path.join(PROGRAMS, "..", "bin", "nessie-streams")


class StreamsCase(ProcessCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="nt-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "NESSIE_LISTEN": "shm"}
        _, self.at = self.start(SERVER, "--name", "python", "--memory", "64M", env=environment)

    def writer(self, name="flow", **options):
        out = streams.Writer(name, at=self.at, **options)
        self.addCleanup(out.drop)
        return out

    def reader(self, name="flow", **options):
        steps = streams.Reader(name, at=self.at, **options)
        self.addCleanup(steps.drop)
        return steps

    def written(self, array, name="flow"):
        """A reader at the one step of a stream that has it as "T"."""
        with self.writer(name) as out:
            out.define("T", array.shape, array.dtype)
            with out.step():
                out.put("T", array)
        return next(self.reader(name))["T"]


class Arrays(StreamsCase):
    def test_any_selection_is_numpys(self):
        array = numpy.random.default_rng(1).random((5, 1, 7, 6))
        it = self.written(array)
        rng = random.Random(1)

        def key_of(extent):
            kind = rng.randrange(5)
            if kind == 0:
                return rng.randrange(-extent, extent)
            ends = [rng.choice([None, rng.randrange(-extent - 2, extent + 3)]) for _ in range(2)]
            return slice(*ends, rng.choice([None, 1, 2, 3, -1, -2]))

        for _ in range(200):
            first, last = sorted(rng.choices(range(5), k=2))   # those between them are not said
            keys = [key_of(extent) for extent in array.shape]
            keys[first:last] = [Ellipsis] if first < last or rng.randrange(2) else []
            got, wanted = it[tuple(keys)], array[tuple(keys)]
            self.assertEqual(numpy.shape(got), wanted.shape, keys)
            self.assertTrue(numpy.array_equal(got, wanted), keys)

    def test_selections_that_cannot_be_are_index_errors(self):
        it = self.written(numpy.zeros((2, 3)))
        for key in ((2,), (0, -4), (0, 0, 0), (..., ...)):
            with self.assertRaises(IndexError):
                it[key]
        with self.assertRaises((TypeError, AttributeError)):
            it["a"]

    def test_what_is_selected_is_the_callers_own(self):
        it = self.written(numpy.arange(12.0).reshape(3, 4))
        part = it[::2, 1:3]
        part[...] = -1
        self.assertTrue((it[:] == numpy.arange(12.0).reshape(3, 4)).all())
        self.assertTrue(part.flags.owndata and part.flags.writeable)

    def test_arrays_of_other_orders_and_types_are_converted(self):
        wanted = numpy.arange(12.0).reshape(3, 4)
        for number, array in enumerate((
            numpy.asfortranarray(wanted), wanted.astype(">f8"), wanted.astype("i2"), wanted[::-1][::-1],
            numpy.broadcast_to(numpy.float32(3), (3, 4)), wanted.tolist(),
        )):
            with self.subTest(number), self.writer(f"flow{number}") as out:
                out.define("T", (3, 4), "f8")
                with out.step():
                    out.put("T", array)
            self.assertTrue((next(self.reader(f"flow{number}"))["T"][:] == numpy.asarray(array)).all())

    def test_what_does_not_fit_is_refused_and_the_step_goes_on(self):
        out = self.writer()
        for dtype in ("c16", "f2", "?", "M8[s]", "O"):
            with self.assertRaises(nessie.InvalidArgument):
                out.define("U", 3, dtype)
        out.define("T", 3, "i1")
        out.begin_step()
        for wrong in ([1.5, 2, 3], [1, 2, 128], [True, False, True], ["a", "b", "c"]):
            with self.assertRaises(nessie.InvalidArgument):
                out.put("T", wrong)
        for error, act in (
            (nessie.InvalidArgument, lambda: out.put("T", [[1, 2, 3]])),
            (nessie.OutOfRange, lambda: out.put("T", [1, 2, 3], (1,))),
            (nessie.InvalidArgument, lambda: out.put("nothing", [1])),
            (nessie.InvalidArgument, lambda: out.put_lent("T", numpy.zeros(3))),
            (nessie.InvalidArgument, lambda: out.put_lent("T", numpy.zeros(6, "i1")[::2])),
        ):
            with self.assertRaises(error):
                act()
        out.put("T", [-128, 0, 127])
        out.end_step()
        self.assertEqual(list(next(self.reader())["T"][:]), [-128, 0, 127])

    def test_texts_are_characters(self):
        with self.writer() as out:
            out.define("names", (2, 5), "S1")
            out.define("title", 6, "S1", fill=" ")
            with out.step():
                out.put("names", numpy.array(["one", "three"]))
                out.put("title", "gr\u00fcn")
        step = next(self.reader())
        self.assertEqual(step["names"][:].view("S5").ravel().tolist(), [b"one", b"three"])
        self.assertEqual(step["title"][:].tobytes().decode().rstrip(), "gr\u00fcn")
        with self.assertRaises(nessie.Unsupported):
            step["title"].figures()

    def test_attributes_come_back_as_they_were(self):
        given = {"text": "K m s\u207b\u00b9", "empty": "", "number": numpy.int16(-3), "real": 2.5, "several": [1, 2, 3],
                 "small": numpy.array([1, 2], "u1")}
        with self.writer() as out:
            out.define("T", attributes=given)
            for name, value in given.items():
                out.set_attribute(name, value)
            with out.step():
                out.put("T", 1)
        step = next(self.reader())
        for got in (step.attributes, step["T"].attributes):
            self.assertEqual(got.keys(), given.keys())
            self.assertEqual((got["text"], got["empty"], got["real"]), (given["text"], "", 2.5))
            self.assertEqual((got["number"], got["number"].dtype), (-3, numpy.dtype("i2")))
            self.assertEqual((list(got["several"]), got["small"].dtype), ([1, 2, 3], numpy.dtype("u1")))

    def test_out_is_what_is_got_into(self):
        it = self.written(numpy.arange(12.0).reshape(3, 4))
        into = streams.allocate((2, 2))
        self.assertIs(it.get((1, 1), out=into), into)
        self.assertEqual(into.tolist(), [[5, 6], [9, 10]])
        part = numpy.zeros((2, 4))
        with self.assertRaises(nessie.InvalidArgument):
            it.get((1, 1), out=part[:, ::2])   # its elements do not lie one after the other
        with self.assertRaises(nessie.InvalidArgument):
            it.get(out=numpy.zeros((3, 4), "f4"))
        with self.assertRaises(nessie.InvalidArgument):
            frozen = numpy.zeros((3, 4))
            frozen.flags.writeable = False
            it.get(out=frozen)


class Steps(StreamsCase):
    def test_a_span_is_put_by_being_filled(self):
        with self.writer() as out:
            out.define("T", (4, 3), "i4")
            with out.step():
                upper, lower = out.span("T", count=(1, 3)), out.span("T", (1, 0))
                upper[...], lower[...] = 1, 2
                self.assertEqual(out.span("T", (4, 0), (0, 3)).size, 0)
            self.assertFalse(upper.flags.writeable)
        self.assertEqual(next(self.reader())["T"][:, 0].tolist(), [1, 2, 2, 2])

    def test_what_is_lent_lives_until_the_step_ends(self):
        with self.writer() as out:
            out.define("T", 1 << 16)
            with out.step():
                out.put_lent("T", numpy.full(1 << 16, 7.0))   # nobody else has it
                numpy.full(1 << 16, 8.0)
        self.assertTrue((next(self.reader())["T"][:] == 7).all())

    def test_a_loop_ends_each_step_and_stays_in_the_one_it_was_left_in(self):
        with self.writer() as out:
            out.define("T")
            for value in range(4):
                with out.step():
                    out.put("T", value)
        steps = self.reader()
        first = next(steps)
        for step in steps:
            if step.number == 2:
                break
        self.assertEqual(step["T"][()], 2)
        with self.assertRaisesRegex(nessie.InvalidArgument, "step 0 has ended"):
            first["T"][()]
        self.assertEqual([(step.number, float(step["T"][()])) for step in steps], [(3, 3)])
        self.assertIsNone(steps.begin_step())

    def test_an_exception_in_a_step_leaves_it_unseen(self):
        out = self.writer()
        out.define("T")
        with self.assertRaises(ZeroDivisionError):
            with out.step():
                out.put("T", 1)
                raise ZeroDivisionError
        self.assertEqual(out.number, 0)
        out.close()
        self.assertEqual(list(self.reader()), [])

    def test_options_are_heard(self):
        with self.writer(durability=streams.Durability.MEMORY) as out:
            out.define("T")
            for value in range(3):
                with out.step():
                    out.put("T", value)
        self.assertEqual(next(self.reader(begin=1)).number, 1)
        self.assertEqual(next(self.reader(begin=streams.From.LATEST)).number, 2)
        view = self.reader(reading=streams.Reading.VIEW, begin=streams.From.LATEST)
        self.assertEqual([step.number for step in view], [2])
        with self.writer(append=True) as out:
            self.assertEqual(out.number, 3)
        awaiting = self.writer("other", await_readers=1)
        awaiting.define("T")
        with self.assertRaises(nessie.TimedOut):
            awaiting.begin_step(timeout=0.05)
        self.reader("other")
        self.assertEqual(awaiting.begin_step(), 0)

    def test_a_subscription_resumes(self):
        out = self.writer()
        out.define("T")
        with self.reader(subscription="archive") as steps:
            for value in range(2):
                with out.step():
                    out.put("T", value)
            next(steps), next(steps)   # the second one is not ended
        with self.reader(subscription="archive") as steps:
            self.assertEqual(next(steps).number, 1)
            (info,) = streams.list_streams(self.at)
            (group,) = info.readers
            self.assertEqual((group.subscription, group.connected, group.reading), ("archive", 1, streams.Reading.EVERY))
            steps.unsubscribe()
        (info,) = streams.list_streams(self.at)
        self.assertEqual((info.readers, info.steps, info.state, info.durability), ([], 2, streams.State.OPEN, 1))
        self.assertEqual(info.variables["T"], streams.Variable("T", numpy.dtype("f8"), ()))

    def test_the_shared_space_waits_for_what_comes(self):
        with streams.Space(at=self.at) as mine, streams.Space(at=self.at) as theirs:
            with self.assertRaises(nessie.NotFound):
                mine.newest("edges")
            putting = threading.Timer(0.05, lambda: theirs.put("edges", 2, numpy.arange(3, dtype="i4"), (3,)))
            putting.start()
            mine.put("edges", 2, numpy.arange(3, dtype="i4"))
            self.assertEqual(mine.get("edges", 2, 6, "i4").tolist(), [0, 1, 2, 0, 1, 2])
            putting.join()
            self.assertEqual(mine.newest("edges"), 2)
            with self.assertRaises(nessie.Exists):
                mine.put("edges", 2, numpy.int32([5]))
            with self.assertRaises(nessie.TimedOut):
                mine.get("edges", 3, 6, "i4", timeout=0.05)
            mine.put("scalar", 0, 2.5)
            self.assertEqual(mine.get("scalar", 0), 2.5)


class Waits(StreamsCase):
    @contextlib.contextmanager
    def interrupted(self):
        """The body is interrupted as by Ctrl-C, and that soon."""
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            yield
        timer.join()

    def test_every_wait_can_be_interrupted_and_taken_up_again(self):
        with self.interrupted():
            self.reader("none", timeout=None)
        with self.interrupted():
            streams.Writer("flow", at="file:/nowhere/at/all.contact", timeout=None)
        out = self.writer()
        out.define("T")
        steps = self.reader()
        with self.interrupted():
            steps.begin_step(timeout=None)
        with out.step():
            out.put("T", 1)
        self.assertEqual(next(steps)["T"][()], 1)
        with streams.Space(at=self.at) as space, self.interrupted():
            space.get("nothing", 0, timeout=None)
        awaiting = self.writer("other", await_readers=1, timeout=None)
        with self.interrupted():
            awaiting.begin_step()

    def test_other_threads_run_meanwhile_but_not_with_the_same_reader(self):
        out = self.writer()
        out.define("T")
        steps = self.reader()
        got = []
        waiting = threading.Thread(target=lambda: got.append(float(next(steps)["T"][()])))
        waiting.start()

        def is_refused():
            try:
                steps.begin_step(timeout=0)
            except nessie.InvalidArgument as error:
                return "another thread" in error.message
            except nessie.TimedOut:
                return False
        wait_until(is_refused, "the other thread to wait")
        with out.step():
            out.put("T", 6)
        waiting.join()
        self.assertEqual(got, [6])

    def test_deadlines_are_kept(self):
        out = self.writer()
        steps = self.reader()
        for wait in (lambda: steps.begin_step(0), lambda: steps.begin_step(0.05), lambda: self.reader("none", timeout=0.05)):
            began = time.monotonic()
            with self.assertRaises(nessie.TimedOut):
                wait()
            self.assertLess(time.monotonic() - began, 30)   # not for ever
        out.close()

    def test_no_server_is_told(self):
        with self.assertRaises((nessie.TimedOut, nessie.NotFound, nessie.PeerLost)):
            streams.Writer("flow", at="file:/nowhere/at/all.contact", timeout=0.05)

    def test_what_is_closed_says_so(self):
        out, steps, space = self.writer(), self.reader(), streams.Space(at=self.at)
        for each in (out, steps, space):
            each.close()
            each.close()
            self.assertTrue(each.is_closed)
        for use in (out.begin_step, lambda: out.number, lambda: out.define("T"), steps.begin_step, steps.end_step,
                    lambda: space.newest("x")):
            with self.assertRaisesRegex(nessie.InvalidArgument, "closed"):
                use()

    def test_a_forked_child_leaves_its_parents_streams_alone(self):
        out = self.writer()
        out.define("T")
        steps = self.reader()
        memory = streams.allocate(4)
        child = os.fork()
        if child == 0:
            refused = 0
            for use in (steps.begin_step, out.begin_step, out.close):
                try:
                    use()
                except nessie.InvalidArgument:
                    refused += 1
            out.drop()
            del out, steps, memory
            os._exit(refused)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 3)
        with out.step():
            out.put("T", 5)
        self.assertEqual(next(steps)["T"][()], 5)


if __name__ == "__main__":
    unittest.main()
