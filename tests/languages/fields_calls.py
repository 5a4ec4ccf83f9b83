# SPDX-License-Identifier: BSD-3-Clause
"""What a client in Python can do with a service of fields.x, whatever language that is in."""
import fields
import numpy

import nessie
from nessie import nssi

ONE, TWO = fields.FIELDS.ONE, fields.FIELDS.TWO


def check_all(runtime, peer):
    """Calls everything; prints what is not as it should be, and returns how often."""
    checks = Checks(runtime, peer)
    for name in dir(checks):
        if name.startswith("check_"):
            getattr(checks, name)()
    return checks.faults


class Checks:
    def __init__(self, runtime, peer):
        self.runtime, self.peer, self.faults = runtime, peer, 0
        self.service = ONE.Client(runtime, peer)

    def expect(self, is_so, what):
        if not is_so:
            self.faults += 1
            print(f"{what}: not so", flush=True)

    def expect_equal(self, wanted, call, *arguments, **options):
        got = call(*arguments, **options)
        self.expect(got == wanted, f"{call.__name__} gives {wanted!r:.200}, but {got!r:.200}")

    def expect_error(self, kind, call, *arguments, **options):
        """The error, if it is of that kind."""
        try:
            got = call(*arguments, **options)
        except kind as error:
            return error
        except nessie.Error as error:
            self.expect(False, f"{call.__name__} raises {kind.__name__}, but {error!r}")
        else:
            self.expect(False, f"{call.__name__} raises {kind.__name__}, but gives {got!r:.200}")
        return None

    # --- values of every kind -----------------------------------------------------------------------------------------

    def check_numbers(self):
        self.expect_equal(None, self.service.NOTHING)
        self.expect_equal(4_999_999_997, self.service.ADD, -3, 5_000_000_000)
        self.expect_equal(None, self.service.HALF, None)
        self.expect_equal(21, self.service.HALF, 42)
        blended = self.service.BLEND(numpy.array([1.0, 2, 3, 4]), 0.5)
        self.expect(blended.tolist() == [0.5, 1, 1.5, 2], "four weights")

    def check_texts(self):
        self.expect_equal("hello world, flame 7", self.service.GREET, "world", "flame 7")
        self.expect_equal("hello , ", self.service.GREET, "", "")
        axis = fields.axis
        self.expect_equal(["zzz", "zzz", "x"], self.service.PICK, ["x", "yy", "zzz"],
                          [axis.ALONG_Z, axis.ALONG_Z, axis.ALONG_X])
        for size_bytes in (0, 1, 3, 4096, 300_001):  # the last is more than a message holds
            octets = bytes((i * 131 + (i >> 8) * 7) % 256 for i in range(size_bytes))
            self.expect_equal(octets, self.service.ECHO, octets)

    def check_structs(self):
        stamp = fields.stamp("s", 7, True, fields.axis.ALONG_Y)
        self.expect_equal(fields.found(True, stamp), self.service.FIND, stamp, True)
        self.expect_equal(fields.found(False, None), self.service.FIND, stamp, False)
        history = [fields.moments(i, -i, i) for i in range(1000)]
        self.expect_equal([fields.moments(i, 0.5 - i, i + 0.5) for i in range(1000)], self.service.SHIFT, history, 0.5)
        self.expect_equal([], self.service.SHIFT, [], 0.5)

    def check_lists(self):
        stop, tree = fields.stop, fields.tree
        self.expect_equal(stop("home", stop("there", stop("here", None))), self.service.REVERSE,
                          stop("here", stop("there", stop("home", None))))
        self.expect_equal(None, self.service.REVERSE, None)
        self.expect_equal(tree(0, [tree(2, [tree(3, [])]), tree(1, [])]), self.service.MIRROR,
                          tree(0, [tree(1, []), tree(2, [tree(3, [])])]))

    # --- bulk data ----------------------------------------------------------------------------------------------------

    def check_bulk(self):
        field = numpy.zeros((100, 1000))
        self.move_all_ways(self.runtime.register(field, nssi.Rights.READ_WRITE), field.reshape(-1))
        buffer = self.runtime.allocate(80)
        self.move_all_ways(buffer, numpy.frombuffer(buffer, "float64"))

    def move_all_ways(self, buffer, field):
        ramp = numpy.arange(1.0, len(field) + 1)
        self.service.RAMP(fields.axis.ALONG_Z, buffer)
        self.expect((field == 3 * ramp).all(), "a ramp")
        self.service.SCALE(0.5, buffer)
        self.expect((field == 1.5 * ramp).all(), "half of it")
        self.expect_equal(fields.moments(float(field.sum()), 1.5, 1.5 * len(field)), self.service.MEASURE, buffer)

    def check_bulk_that_is_not_lent(self):
        self.expect_error(nessie.InvalidArgument, self.service.MEASURE, None)
        buffer = self.runtime.allocate(80, nssi.Rights.REMOTE_WRITE)
        self.expect_error(nessie.InvalidArgument, self.service.MEASURE, buffer)
        buffer = self.runtime.register(b"read only", nssi.Rights.REMOTE_READ)
        self.expect_error(nessie.InvalidArgument, self.service.RAMP, fields.axis.ALONG_X, buffer)

    # --- errors, time, versions ---------------------------------------------------------------------------------------

    def check_errors(self):
        error = self.expect_error(nessie.Io, self.service.REFUSE, 28)
        if error is not None:
            self.expect((error.code, error.scope, error.cause, error.message) ==
                        (nessie.Code.IO, nessie.Scope.SERVICE, 28, "No space left on device: free some"), "its parts")
        self.expect_error(nessie.Internal, self.service.REPEAT, "four", 6)
        self.expect_equal("four" * 5, self.service.REPEAT, "four", 5)
        self.expect_error(nessie.InvalidArgument, self.service.REPEAT, "more than twenty characters", 1)
        self.expect_error(nessie.InvalidArgument, self.service.PICK, ["x"], [7])
        self.expect_error(nessie.InvalidArgument, self.service.ADD, "1", 2)
        self.expect_error(nessie.InvalidArgument, self.runtime.call_and_wait, self.service.service, ONE.NOTHING, "text")
        for size_bytes in (0, 1, 5, 13, 1000):
            self.expect_error(nessie.BadMessage, self.runtime.call_and_wait, self.service.service, ONE.ADD,
                              b"\1" * size_bytes)

    def check_deadlines(self):
        self.expect_error(nessie.TimedOut, self.service.REST, 60_000, timeout=0.02)
        self.expect_error(nessie.TimedOut, self.service.ADD, 1, 2, timeout=0)
        self.expect_equal(50, self.service.REST, 50)
        call = self.service.REST_async(60_000)
        self.expect_error(nessie.TimedOut, call.wait, 0)
        self.expect(not call.test(), "a call that goes on")

    def check_many(self):
        rests = [self.service.REST_async(i % 7) for i in range(50)]
        sums = [self.service.ADD_async(i, 1) for i in range(50)]
        self.expect([call.result() for call in sums] == [i + 1 for i in range(50)], "fifty sums")
        self.expect([call.result() for call in rests] == [i % 7 for i in range(50)], "fifty rests")

    def check_versions(self):
        call, program = self.runtime.call_and_wait, fields.FIELDS.PROGRAM
        self.expect_equal(6, TWO.Client(self.runtime, self.peer, 5).ADD, 1, 2, 3)
        self.expect_error(nessie.NotFound, TWO.Client(self.runtime, self.peer).ADD, 1, 2, 3)
        self.expect_error(nessie.Unsupported, call, nssi.Service(self.peer, program, 9, 0), ONE.NOTHING)
        self.expect_error(nessie.NotFound, call, self.service.service, 999)
