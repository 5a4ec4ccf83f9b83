# SPDX-License-Identifier: BSD-3-Clause
"""`nessie stream`: what is recorded, forwarded and received is what was written, whoever is killed meanwhile."""
import json
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

import netCDF4
import numpy

from harness import BUILD, NESSIE, ProcessTestCase, read_file, wait_until

WRITER = os.path.join(BUILD, "tests", "streams_test_writer")
MEGABYTE = 1 << 20


def read_netcdf(path):
    """Everything that is in the file: (dimensions, attributes, arrays)."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        variables = {name: (variable.dimensions, {key: variable.getncattr(key) for key in variable.ncattrs()},
                            variable[...]) for name, variable in file.variables.items()}
        return ({name: len(each) for name, each in file.dimensions.items()},
                {key: file.getncattr(key) for key in file.ncattrs()}, variables)


def steps_in(path):
    """How many of its steps are there whole."""
    try:
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            return int((file["step"][...] >= 0).sum())
    except OSError:
        return 0


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


class OtherReceiver:
    """TCP.md, written by somebody who has read nothing else."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "tcp://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.stream, self.images, self.end = None, {}, None

    @staticmethod
    def checked(data):
        assert struct.unpack(">I", data[-4:])[0] == crc32c(data[:-4])
        return data[:-4]

    def run(self):
        """Until the stream has ended."""
        with self.listener, self.listener.accept()[0] as connection, connection.makefile("rb") as file:
            begin = file.read(20)
            magic, version, _, length = struct.unpack(">4sIQI", begin)
            assert (magic, version) == (b"NSTP", 1)
            self.stream = self.checked(begin + file.read(length + 4))[20:].decode()
            while self.end is None:
                magic, checksum, number, length = struct.unpack(">4sIQQ", self.checked(file.read(28)))
                image = file.read(length)
                if magic == b"STEP":
                    assert crc32c(image) == checksum
                    self.images[number] = image
                else:
                    assert (magic, checksum, length) == (b"OVER", 0, 0)
                    self.end = number
                answer = struct.pack(">4sIQ", b"DONE", 0, number)
                connection.sendall(answer + struct.pack(">I", crc32c(answer)))


class Proxy:
    """Stands between a sender and a receiver, and cuts each connection after so many bytes; the last one it leaves."""

    def __init__(self, to, limits):
        self.to, self.limits, self.connections, self.sockets = to, list(limits), 0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "tcp://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                here = self.listener.accept()[0]
            except OSError:
                return
            there = socket.create_connection(self.to)
            self.sockets += [here, there]
            limit = self.limits[self.connections] if self.connections < len(self.limits) else None
            self.connections += 1
            threading.Thread(target=self.pump, args=(here, there, limit), daemon=True).start()
            threading.Thread(target=self.pump, args=(there, here, None), daemon=True).start()

    @staticmethod
    def pump(source, target, limit):
        passed = 0
        try:
            while True:
                data = source.recv(65536)
                passed += len(data)
                if not data or (limit is not None and passed > limit):
                    break
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        for each in [self.listener] + self.sockets:
            each.close()


class Streams(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.servers = []
        self.env["NESSIE_STREAMS_AT"] = self.serve("here")

    def serve(self, name):
        """A server; returns its place."""
        contact = self.path(name + ".contact")
        job = self.job([NESSIE, "stream", "serve", "--name", name, "--memory", "256M", "--announce", "file:" + contact])
        wait_until(lambda: os.path.exists(contact) or job.process.poll() is not None, "the contact file")
        self.servers.append(job)
        return "file:" + contact

    def tearDown(self):
        for job in self.jobs:
            if job not in self.servers and job.process.poll() is None:
                job.process.kill()   # the test has failed
        for job in self.servers:
            job.process.send_signal(signal.SIGTERM)
            code, _, err = job.finish()
            self.assertEqual((code, err), (0, ""))
        self.assert_nothing_left()

    def stream(self, *words, **options):
        return self.job([NESSIE, "stream", *words], **options)

    def told(self, job, code=0):
        """What a command that ends with that code has printed."""
        got, out, err = job.finish()
        self.assertEqual(got, code, err)
        return out, err

    def write(self, name, steps, *words):
        """Starts a writer, and returns when the servers know it."""
        job = self.job([WRITER, name, str(steps), "--steered", *words], stdin=subprocess.PIPE)
        self.assertEqual(job.process.stdout.readline(), "open\n", )
        return job

    def step(self, writer, count=1):
        for _ in range(count):
            writer.process.stdin.write("\n")
            writer.process.stdin.flush()
            self.assertRegex(writer.process.stdout.readline(), r"^step \d+\n$")

    def end(self, writer):
        writer.process.stdin.close()
        writer.process.stdin = None
        self.told(writer)

    def wait_for_readers(self, name, count):
        """Until the servers know so many."""
        def readers():
            code, out, _ = self.run_command([NESSIE, "stream", "info", name, "--json"])
            return code == 0 and sum(each["connected"] for each in json.loads(out)["readers"]) >= count
        wait_until(readers, f"{count} readers of {name}")

    def assert_holds(self, path, steps, grow=False):
        """That the file has what writer_main.cpp has written."""
        dimensions, _, variables = read_netcdf(path)
        self.assertEqual(list(variables["step"][2]), list(range(steps)))
        self.assertEqual(dimensions["step"], steps)
        for step in range(steps):
            numpy.testing.assert_array_equal(variables["T"][2][step], (100 * step + numpy.arange(24)).reshape(4, 6))
            count = step + 1 if grow else 5
            numpy.testing.assert_array_equal(variables["p"][2][step][:count], 10 * step + numpy.arange(count))
            self.assertTrue((variables["p"][2][step][count:] == -9).all())
            if grow:
                self.assertEqual(list(variables["p_shape"][2][step]), [count])
            self.assertEqual(variables["time"][2][step], step / 2)
            if "big" in variables:
                self.assertEqual(variables["big"][2][step][0], step)
                self.assertEqual(variables["big"][2][step][-1], (step + variables["big"][2].shape[1] - 1) % 256)
        last = max([0] + [step for step in range(steps) if step % 7 == 6])
        numpy.testing.assert_array_equal(variables["x"][2], last + numpy.arange(6))
        self.assertEqual(variables["T"][:2], (("step", "y", "x"), {"units": "K", "dimensions": "y x"}))

    def assert_same(self, path, other):
        """That two files have the same in them."""
        mine, theirs = read_netcdf(path), read_netcdf(other)
        self.assertEqual(mine[:2], theirs[:2])
        self.assertEqual(list(mine[2]), list(theirs[2]))
        for name, (dimensions, attributes, values) in mine[2].items():
            self.assertEqual((dimensions, str(attributes)), (theirs[2][name][0], str(theirs[2][name][1])))
            numpy.testing.assert_array_equal(values, theirs[2][name][2])


class Record(Streams):
    def test_has_what_was_written(self):
        writer = self.write("flow", 9)
        record = self.stream("record", "flow", "-o", "flow.nc", "--json")
        self.wait_for_readers("flow", 1)
        self.step(writer, 9)
        self.end(writer)
        told = json.loads(self.told(record)[0])
        self.assertEqual((told["steps"], told["missing"], told["ended"]), (9, 0, True))
        self.assert_holds(self.path("flow.nc"), 9)
        attributes = read_netcdf(self.path("flow.nc"))[1]
        self.assertEqual((attributes["title"], attributes["nessie_stream"]), ("a flow", "flow"))
        listed = subprocess.run(["ncdump", "-k", self.path("flow.nc")], capture_output=True, text=True, check=True)
        self.assertEqual(listed.stdout.strip(), "cdf5")
        subprocess.run(["ncvalidator", "-q", self.path("flow.nc")], check=True)

    def test_has_room_for_arrays_that_grow(self):
        writer = self.write("flow", 30, "--grow")
        record = self.stream("record", "flow", "-o", "flow.nc")
        self.wait_for_readers("flow", 1)
        self.step(writer, 30)
        self.end(writer)
        self.told(record)
        self.assert_holds(self.path("flow.nc"), 30, grow=True)

    def test_that_is_killed_in_the_middle_goes_on_as_if_it_had_not_been(self):
        """At moments that differ from run to run: the numbers in the file say what is there."""
        writer = self.write("flow", 20, "--bytes", str(16 * MEGABYTE))
        undisturbed = self.stream("record", "flow", "-o", "undisturbed.nc")
        command = ["record", "flow", "-o", "flow.nc", "--append", "--as", "archive"]
        record = self.stream(*command)
        self.wait_for_readers("flow", 2)
        for round_ in range(4):
            self.step(writer, 3)
            wait_until(lambda: steps_in(self.path("flow.nc")) >= 2 * round_ + 1, "steps in the file")
            time.sleep(random.random() * 0.05)   # somewhere in a step, not at its end
            record.process.kill()
            record.process.wait()
            self.step(writer)
            record = self.stream(*command)
        self.step(writer, 4)
        self.end(writer)
        self.told(record)
        self.told(undisturbed)
        self.assert_holds(self.path("flow.nc"), 20)
        self.assert_same(self.path("flow.nc"), self.path("undisturbed.nc"))

    def test_ends_when_it_is_asked_to_and_resumes_by_its_name(self):
        writer = self.write("flow", 6)
        command = ["record", "flow", "-o", "flow.nc", "--append", "--as", "archive"]
        record = self.stream(*command)
        self.wait_for_readers("flow", 1)
        self.step(writer, 2)
        wait_until(lambda: steps_in(self.path("flow.nc")) == 2, "two steps in the file")
        record.process.send_signal(signal.SIGINT)
        self.told(record)
        self.step(writer, 4)
        self.end(writer)
        self.told(self.stream(*command))
        self.assert_holds(self.path("flow.nc"), 6)
        self.told(self.stream("forget", "flow", "--as", "archive"))
        out, _ = self.told(self.stream("info", "flow", "--json"))
        self.assertEqual(json.loads(out)["readers"], [])

    def test_takes_only_the_variables_that_are_wanted(self):
        writer = self.write("flow", 2)
        self.step(writer, 2)
        self.told(self.stream("record", "flow", "-o", "flow.nc", "--variables", "T,x", "--steps", "2"))
        self.assertEqual(set(read_netcdf(self.path("flow.nc"))[2]), {"step", "T", "x"})
        _, err = self.told(self.stream("record", "flow", "-o", "other.nc", "--variables", "U", "--steps", "1"), 1)
        self.assertIn("step 0 has no variable 'U'", err)
        _, err = self.told(self.stream("record", "flow", "-o", "flow.nc"), 1)
        self.assertIn("flow.nc is there already", err)
        self.end(writer)

    def test_tells_another_run_of_the_same_stream_from_this_one(self):
        for run, code in (("first", 0), ("second", 1)):
            writer = self.write("flow", 2)
            self.step(writer, 2)
            _, err = self.told(self.stream("record", "flow", "-o", "flow.nc", "--append", "--steps", "2"), code)
            self.assertEqual("of another run" in err, code == 1, run)
            self.end(writer)


class Forward(Streams):
    def test_between_servers_is_the_same_stream_whoever_is_killed(self):
        there = self.serve("there")
        writer = self.write("flow", 16, "--bytes", str(4 * MEGABYTE))
        command = ["forward", "flow", "--to", there, "--as", "copy", "--append", "--subscription", "link"]
        forward = self.stream(*command)
        self.wait_for_readers("flow", 1)
        self.step(writer)
        record = self.stream("record", "copy", "-o", "copy.nc", "--at", there, "--as", "archive")
        for _ in range(3):
            self.step(writer, 3)
            time.sleep(random.random() * 0.1)
            forward.process.kill()
            forward.process.wait()
            self.step(writer)
            forward = self.stream(*command)
        self.step(writer, 3)
        self.end(writer)
        self.told(forward)
        self.told(record)
        self.assert_holds(self.path("copy.nc"), 16)
        out, _ = self.told(self.stream("info", "copy", "--at", there, "--json"))
        self.assertEqual((json.loads(out)["steps"], json.loads(out)["state"]), (16, "ended"))

    def test_of_a_stream_whose_first_steps_are_gone_says_so(self):
        there = self.serve("there")
        writer = self.write("flow", 8, "--bytes", str(40 * MEGABYTE))   # more than is kept for late readers
        self.step(writer, 3)
        forward = self.stream("forward", "flow", "--to", there, "--append", "--subscription", "link", "--steps", "2")
        self.wait_for_readers("flow", 1)
        self.step(writer, 2)
        self.told(forward)
        again = self.stream("forward", "flow", "--to", there, "--append", "--subscription", "link")
        self.step(writer, 3)
        self.end(writer)
        self.told(again)
        out, _ = self.told(self.stream("info", "flow", "--at", there, "--json"))
        shift = [each["value"] for each in json.loads(out)["attributes"] if each["name"] == "nessie_shift"]
        self.assertGreater(shift[0], 0)
        self.assertEqual(json.loads(out)["steps"] + shift[0], 8)

    def test_keeps_to_a_rate(self):
        there = self.serve("there")
        writer = self.write("flow", 3, "--bytes", str(2 * MEGABYTE))
        self.step(writer, 3)
        begin = time.monotonic()
        self.told(self.stream("forward", "flow", "--to", there, "--rate", "4M", "--steps", "3"))
        self.assertGreater(time.monotonic() - begin, 1)
        self.end(writer)


class ServersOwn(Streams):
    def test_record_and_forward_by_themselves_also_after_the_server_was_killed(self):
        there = self.serve("there")
        contact, folder = self.path("own.contact"), self.path("log")
        rules = f"record:flow={self.path('flow.nc')} forward:fl*={there}"
        command = [os.path.join(BUILD, "bin", "nessie-streams"), "--announce", "file:" + contact, "--set", "streams.log=" + folder,
                   "--set", "streams.sinks=" + rules]
        self.env.update(NESSIE_STREAMS_AT="file:" + contact, NESSIE_STREAMS_DURABILITY="logged")

        def start():
            job = self.job(command)
            line = f"\npid = {job.process.pid}\n".encode()
            wait_until(lambda: os.path.exists(contact) and line in read_file(contact), "the contact file")
            return job
        server = start()
        writer = self.write("flow", 6)
        self.step(writer, 3)
        server.process.kill()
        server.process.wait()
        self.servers.append(start())
        self.step(writer, 3)
        self.end(writer)
        wait_until(lambda: steps_in(self.path("flow.nc")) == 6, "six steps in the file")
        self.assert_holds(self.path("flow.nc"), 6)
        self.told(self.stream("record", "flow", "-o", "copy.nc", "--at", there))
        self.assert_holds(self.path("copy.nc"), 6)


class Receive(Streams):
    def receiver(self, *words):
        """(job, address) of one that listens."""
        job = self.stream("receive", *words)
        address = job.process.stdout.readline().strip()
        self.assertRegex(address, r"^tcp://127\.0\.0\.1:\d+$")
        return job, address

    def test_takes_what_is_sent_in_one_file_or_each_in_its_own(self):
        os.mkdir(self.path("steps"))
        writer = self.write("flow", 3, "--grow")
        receivers = [self.receiver(*words) for words in (["-o", "flow.nc"], ["--into", "steps"])]
        forwards = [self.stream("forward", "flow", "--to", address) for _, address in receivers]
        self.wait_for_readers("flow", 2)
        self.step(writer, 3)
        self.end(writer)
        for forward, (job, _) in zip(forwards, receivers):
            self.told(forward)
            self.assertIn("3 steps received; the stream has ended", self.told(job)[1])
        self.assert_holds(self.path("flow.nc"), 3, grow=True)
        names = ["flow.%012d.nc" % step for step in range(3)]
        self.assertEqual(sorted(os.listdir(self.path("steps"))), names)
        for step, name in enumerate(names):
            variables = read_netcdf(os.path.join(self.path("steps"), name))[2]
            self.assertEqual(list(variables["step"][2]), [step])
            self.assertEqual(variables["time"][2][0], step / 2)

    def test_that_is_killed_and_comes_back_has_no_step_twice_and_none_less(self):
        writer = self.write("flow", 16, "--bytes", str(8 * MEGABYTE))
        job, address = self.receiver("-o", "flow.nc")
        port = address.rsplit(":", 1)[1]
        command = ["forward", "flow", "--to", address, "--subscription", "link"]
        forward = self.stream(*command)
        self.wait_for_readers("flow", 1)
        for round_ in range(3):
            self.step(writer, 3)
            wait_until(lambda: steps_in(self.path("flow.nc")) >= 2 * round_ + 1, "steps in the file")
            time.sleep(random.random() * 0.05)
            victim = forward if round_ == 1 else job
            victim.process.kill()
            victim.process.wait()
            self.step(writer)
            if round_ == 1:
                forward = self.stream(*command)
            else:
                job, _ = self.receiver("-o", "flow.nc", "--append", "--listen", "127.0.0.1:" + port)
        self.step(writer, 4)
        self.end(writer)
        self.told(forward)
        self.told(job)
        self.assert_holds(self.path("flow.nc"), 16)

    def test_can_be_done_by_any_program(self):
        other = OtherReceiver()
        writer = self.write("flow", 3)
        forward = self.stream("forward", "flow", "--to", other.address)
        self.wait_for_readers("flow", 1)
        self.step(writer, 3)
        self.end(writer)
        other.run()
        self.told(forward)
        self.assertEqual((other.stream, sorted(other.images), other.end), ("flow", [0, 1, 2], 3))
        for step, image in other.images.items():
            with netCDF4.Dataset("step", memory=image) as file:
                self.assertEqual((list(file["step"][:]), file["time"][0]), ([step], step / 2))
                numpy.testing.assert_array_equal(file["T"][0], (100 * step + numpy.arange(24)).reshape(4, 6))

    def test_over_a_link_that_is_cut_again_and_again(self):
        writer = self.write("flow", 8, "--bytes", str(2 * MEGABYTE))
        job, address = self.receiver("-o", "flow.nc")
        host, port = address[len("tcp://"):].split(":")
        proxy = Proxy((host, int(port)), [0, 10, 5000, MEGABYTE, 3 * MEGABYTE, 5 * MEGABYTE])
        self.addCleanup(proxy.close)
        forward = self.stream("forward", "flow", "--to", proxy.address)
        self.wait_for_readers("flow", 1)
        self.step(writer, 8)
        self.end(writer)
        self.told(forward)
        self.told(job)
        self.assertEqual(proxy.connections, 7)
        self.assert_holds(self.path("flow.nc"), 8)


class Look(Streams):
    def test_lists_shows_and_tails(self):
        self.assertEqual(self.told(self.stream("list"))[0], "")
        writer = self.write("flow", 3)
        self.step(writer, 2)
        out, _ = self.told(self.stream("list"))
        self.assertRegex(out, r"^flow  open, 2 steps, 1 of 1 writers, 0 readers, .* in memory\n$")
        info = json.loads(self.told(self.stream("info", "flow", "--json"))[0])
        self.assertIn({"name": "T", "type": "double", "shape": [4, 6], "constant": False}, info["variables"])
        tail = self.stream("tail", "flow", "--from", "oldest", "--every", "--steps", "3", "--json", "--values")
        self.step(writer)
        steps = [json.loads(line) for line in self.told(tail)[0].splitlines()]
        self.assertEqual([each["step"] for each in steps], [0, 1, 2])
        by_name = {each["name"]: each for each in steps[1]["variables"]}
        self.assertEqual((by_name["T"]["minimum"], by_name["T"]["maximum"], by_name["T"]["mean"]), (100, 123, 111.5))
        self.assertEqual(by_name["p"]["values"], [10, 11, 12, 13, 14])
        self.assertNotIn("x", by_name)   # a constant, which was shown
        out, _ = self.told(self.stream("tail", "flow", "--box", "T[1:3,-1]", "--values", "--steps", "1"))
        self.assertIn("[[211]\n [217]]", out)
        self.end(writer)

    def test_says_what_is_wrong(self):
        writer = self.write("flow", 1)
        self.step(writer)
        for words, code, what in ((["info", "flaw"], 1, "did you mean 'flow'?"),
                                  (["tail", "flow", "--box", "T[a]"], 2, "T[a]\n  ^ here an element"),
                                  (["tail", "flow", "--box", "T[9]", "--steps", "1"], 1, "element 9 is out of bounds"),
                                  (["tail", "flow", "--from", "yesterday"], 2, "oldest, latest, next"),
                                  (["forward", "flow", "--to", "tcp://x:y"], 2, "HOST:PORT"),
                                  (["record", "none", "-o", "x.nc", "--timeout", "1"], 1, "none"),
                                  (["receive"], 2, "-o FILE or --into FOLDER"),
                                  (["receive", "--into", "nowhere"], 1, "there is no folder nowhere"),
                                  (["tial"], 2, "did you mean 'tail'?")):
            with self.subTest(words):
                _, err = self.told(self.stream(*words), code)
                self.assertIn(what, err)
        self.end(writer)


if __name__ == "__main__":
    unittest.main()
