# SPDX-License-Identifier: BSD-3-Clause
"""What `nessie stream record` makes of the files of unmodified programs: the same files."""
import glob
import os
import shutil
import signal
import subprocess
import unittest

import netCDF4
import numpy

from harness import NESSIE, SANITIZER, ProcessTestCase, mpiexec, read_file, wait_until

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stream_run", "stream_program.c")
KINDS = ("collective", "one_variable_then_the_next", "wait_all", "vard", "independent", "independent_throughout",
         "fixed_of_one_rank", "appended", "redefined", "fixed")


def everything_in(path):
    """All that a file has, as text: names, dimensions, types, attributes and values, in their order."""
    kind = subprocess.run(["ncdump", "-k", path], check=True, capture_output=True, text=True).stdout
    text = subprocess.run(["ncdump", "-n", "file", "-p", "9,17", path], check=True, capture_output=True, text=True).stdout
    return kind + text


class StreamRecord(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.program = self.path("stream_program")
        subprocess.run(["mpicc.openmpi", "-O1", *SANITIZER, "-o", self.program, SOURCE, "-lpnetcdf"], check=True)

    def contacts(self):
        return glob.glob(os.path.join(self.runtime, "nessie", "streams", "*.contact"))

    def native(self, kind, name, records):
        os.makedirs(self.path("native"), exist_ok=True)
        path = os.path.join(self.path("native"), name)
        code, out, err = self.run_command(mpiexec(2, self.program, kind, path, str(records)))
        self.assertEqual(code, 0, out + err)
        return path

    def start_run(self, kind, name, records, *options):
        """Its run goes on until the test says that it is enough."""
        command = " ".join(mpiexec(2, self.program, kind, name, str(records)))
        script = (f"{command} || exit 1; touch written; while ! test -e enough; do sleep 0.05; done")
        return self.start_nessie_run(["sh", "-c", script], options)

    def end_run(self, run):
        open(self.path("enough"), "w").close()
        code, out, err = run.finish()
        self.assertEqual(code, 0, out + err)

    def start_record(self, name, *options):
        wait_until(self.contacts, "nessie-streams")
        return self.job([NESSIE, "stream", "record", name, "-o", self.path("recorded.nc"), *options])

    def record(self, name, *options):
        code, out, err = self.start_record(name, *options).finish()
        self.assertEqual(code, 0, out + err)

    def remove(self, *names):
        for name in names:
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))

    def remove_record(self):
        self.remove("recorded.nc", "recorded.nc.steps")

    def remove_outputs(self):
        self.remove_record()
        self.remove("out.nc", "enough", "written")

    def test_is_the_file_that_the_program_writes(self):
        for kind in KINDS:
            with self.subTest(kind):
                native = self.native(kind, "out.nc", 4)
                run = self.start_run(kind, "out.nc", 4, "--stream")
                self.record("out.nc")
                self.end_run(run)
                self.assertEqual(everything_in(self.path("out.nc")), everything_in(native))
                self.assertEqual(everything_in(self.path("recorded.nc")), everything_in(native))
                self.remove_outputs()

    def test_with_two_servers_it_is_the_same_file(self):
        native = self.native("wait_all", "out.nc", 6)
        run = self.start_run("wait_all", "out.nc", 6, "--stream", "--servers", "2")
        self.record("out.nc")
        self.end_run(run)
        self.assertEqual(everything_in(self.path("recorded.nc")), everything_in(native))

    def test_who_comes_late_has_all_of_it(self):
        run = self.start_run("collective", "out.nc", 5, "--stream")
        wait_until(lambda: os.path.exists(self.path("written")), "the end of the program")
        self.record("out.nc")
        self.end_run(run)
        self.assertEqual(everything_in(self.path("recorded.nc")), everything_in(self.path("out.nc")))

    def test_a_file_that_is_made_anew_is_another_one_and_that_is_said(self):
        open(self.path("anew"), "w").close()
        last = self.native("anew", "out.nc", 3)
        first = self.native("collective", "first.nc", 3)
        os.remove(self.path("anew"))
        run = self.start_run("anew", "out.nc", 3, "--stream")
        recording = self.start_record("out.nc")
        wait_until(lambda: self.lines() == 4, "the first file")
        open(self.path("anew"), "w").close()
        code, out, err = recording.finish()
        self.assertEqual(code, 0, out + err)
        self.assertIn("made out.nc anew", err)
        self.assertEqual(everything_in(self.path("recorded.nc")), everything_in(first))
        self.remove_record()
        self.record("out.nc")
        self.end_run(run)
        self.assertEqual(everything_in(self.path("recorded.nc")), everything_in(last))

    def test_goes_on_after_a_kill_without_a_gap_and_with_no_step_twice(self):
        run = self.start_run("collective", "out.nc", 200, "--stream")
        for _ in range(3):
            job = self.start_record("out.nc", "--as", "archive", "--append")
            before = self.lines()
            wait_until(lambda: self.lines() >= min(before + 10, 201) or job.process.poll() is not None, "steps that are recorded")
            job.process.send_signal(signal.SIGKILL)
            job.process.communicate()
        self.record("out.nc", "--as", "archive", "--append")
        self.end_run(run)
        self.assertEqual(everything_in(self.path("recorded.nc")), everything_in(self.path("out.nc")))
        numbers = [int(line.split()[0]) for line in read_file(self.path("recorded.nc.steps")).decode().splitlines()[1:]]
        self.assertEqual(numbers, list(range(len(numbers))))

    def lines(self):
        try:
            return read_file(self.path("recorded.nc.steps")).count(b"\n")
        except OSError:
            return 0

    def record_numbered(self, kind, count=3):
        run = self.start_run(kind, "out.%d.nc", count, "--stream=out.*.nc")
        recording = self.start_record("out.*.nc")
        wait_until(lambda: os.path.exists(self.path("written")), "the end of the program")
        wait_until(lambda: self.lines() > 1, "the first step that is recorded")   # who comes later may be too late
        self.end_run(run)                 # numbered files end with their run
        code, out, err = recording.finish()
        self.assertEqual(code, 0, out + err)
        files = [netCDF4.Dataset(self.path(f"out.{number}.nc")) for number in range(count)]
        one = netCDF4.Dataset(self.path("recorded.nc"))
        for each in [one, *files]:
            each.set_auto_mask(False)
            self.addCleanup(each.close)
        return one, files

    def test_numbered_files_with_records_are_one_behind_the_other(self):
        one, files = self.record_numbered("collective")
        self.assertEqual(list(one.dimensions), list(files[0].dimensions))
        self.assertEqual(list(one.variables), list(files[0].variables))
        self.assertEqual(len(one.dimensions["time"]), 1 + 2 + 3)
        for name in ("T", "p"):
            numpy.testing.assert_array_equal(one[name][...], numpy.concatenate([each[name][...] for each in files]))
        numpy.testing.assert_array_equal(one["grid"][...], files[2]["grid"][...])

    def test_numbered_files_without_records_are_a_record_each(self):
        one, files = self.record_numbered("fixed")
        self.assertEqual(list(one.dimensions), ["step", *files[0].dimensions])
        self.assertTrue(one.dimensions["step"].isunlimited())
        for name in files[0].variables:
            self.assertEqual(one[name].dimensions, ("step", *files[0][name].dimensions))
            self.assertEqual(one[name].ncattrs(), files[0][name].ncattrs())
            numpy.testing.assert_array_equal(one[name][...], numpy.stack([each[name][...] for each in files]))

    def test_many_small_files_are_all_there(self):
        one, files = self.record_numbered("fixed", 40)
        numpy.testing.assert_array_equal(one["T"][...], numpy.stack([each["T"][...] for each in files]))

    @unittest.skipUnless(shutil.which("ncks"), "NCO is not installed")
    def test_nco_reads_it(self):
        run = self.start_run("collective", "out.nc", 4, "--stream")
        self.record("out.nc")
        self.end_run(run)
        subprocess.run(["ncra", "-h", "-O", "-v", "T", self.path("recorded.nc"), self.path("mean.nc")], check=True)
        with netCDF4.Dataset(self.path("mean.nc")) as mean, netCDF4.Dataset(self.path("out.nc")) as out:
            numpy.testing.assert_allclose(mean["T"][0], out["T"][...].mean(axis=0))
        subprocess.run(["ncks", "-h", "-O", "-d", "time,2", self.path("recorded.nc"), self.path("one.nc")], check=True)
        with netCDF4.Dataset(self.path("one.nc")) as one, netCDF4.Dataset(self.path("out.nc")) as out:
            numpy.testing.assert_array_equal(one["p"][0], out["p"][2])


if __name__ == "__main__":
    unittest.main()
