# SPDX-License-Identifier: BSD-3-Clause
"""The examples' files are the same, byte for byte, natively and staged."""
import glob
import itertools
import os
import unittest

from harness import BUILD, ProcessTestCase, checkpoint, mpiexec, read_file

MODES = list(itertools.product(("direct", "caching"), (1, 2)))
PROCESSES = (1, 3, 8)


class SameBytes(ProcessTestCase):
    def compare(self, make_command):
        """Runs make_command(processes, prefix) natively, then staged in every way."""
        for processes in PROCESSES:
            native_folder = self.run_in(f"native{processes}", make_command, processes)
            for mode, servers in MODES:
                with self.subTest(processes=processes, mode=mode, servers=servers):
                    options = ["--mode", mode, "--servers", str(servers)]
                    staged_folder = self.run_in(f"{mode}{servers}-{processes}", make_command, processes, options)
                    self.assert_same_files(native_folder, staged_folder)
        self.assert_nothing_left()

    def run_in(self, name, make_command, processes, options=None):
        folder = self.path(name)
        os.mkdir(folder)
        command = make_command(processes, os.path.join(folder, "out"))
        code, out, err = self.run_command(command) if options is None else self.nessie_run(command, options)
        self.assertEqual(code, 0, out + err)
        if options is not None:
            self.assertNotIn("not staged", err)
        return folder

    def assert_same_files(self, native_folder, staged_folder):
        native = sorted(os.path.basename(path) for path in glob.glob(native_folder + "/*.nc"))
        self.assertTrue(native)
        self.assertEqual(sorted(os.path.basename(path) for path in glob.glob(staged_folder + "/*.nc")), native)
        for name in native:
            self.assertEqual(read_file(os.path.join(native_folder, name)), read_file(os.path.join(staged_folder, name)),
                             f"{name} differs")

    def test_of_a_checkpoint_writer_in_c(self):
        self.compare(lambda processes, prefix: checkpoint(processes, prefix, verify=True))

    def test_of_nonblocking_writes_to_record_variables(self):
        self.compare(lambda processes, prefix: checkpoint(processes, prefix, steps=3, records=True, nonblocking=True,
                                                          format=2, verify=True))

    def test_of_a_simulation_in_fortran_90(self):
        program = os.path.join(BUILD, "examples", "reaction_diffusion")
        self.compare(lambda processes, prefix: mpiexec(processes, program, "--grid", "14,12,10", "--steps", "4",
                                                       "--interval", "2", "--prefix", prefix))


if __name__ == "__main__":
    unittest.main()
