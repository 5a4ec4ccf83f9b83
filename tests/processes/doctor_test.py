# SPDX-License-Identifier: BSD-3-Clause
"""nessie doctor: what it says of machines that lack something, each provoked for real."""
import json
import os
import resource
import shlex
import subprocess
import unittest

from harness import NESSIE, ProcessTestCase

LOOPBACK = {"NESSIE_NNTI_OFI_ADDRESS": "127.0.0.1"}


def works(*command):
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


class Doctor(ProcessTestCase):
    def doctor(self, env=None, command=(NESSIE, "doctor", "--json"), **options):
        """(exit code, the checks by name)."""
        code, out, err = self.run_command(list(command), env={**LOOPBACK, **(env or {})}, **options)
        checks = json.loads(out)["checks"]
        self.assertEqual(err, "")
        for check in checks:
            self.assertEqual(check["mend"] is None, check["verdict"] == "ok", check)
        return code, {check["name"]: check for check in checks}

    def assert_problem(self, answer, name, *words):
        code, checks = answer
        self.assertEqual(code, 1)
        self.assertEqual(checks[name]["verdict"], "problem", checks[name])
        for word in words:
            self.assertIn(word, checks[name]["sentence"] + checks[name]["mend"])

    def test_of_this_machine_has_no_problem_that_is_not_the_machines_own(self):
        code, checks = self.doctor()
        self.assertEqual(code, int(any(check["verdict"] == "problem" for check in checks.values())))
        for name in ("PnetCDF", "MPI", "mpiexec", "/proc", "installation", "settings", "temporary folder"):
            self.assertEqual(checks[name]["verdict"], "ok", checks[name])
        self.assertIn("libpnetcdf", checks["PnetCDF"]["sentence"])
        self.assertIn("libmpi", checks["MPI"]["sentence"])
        self.assert_nothing_left()

    def test_for_people_says_problems_last_and_what_to_type(self):
        code, out, err = self.run_command([NESSIE, "doctor"], env={**LOOPBACK, "TMPDIR": "/no/such"})
        self.assertEqual((code, err), (1, ""))
        lines = out.splitlines()
        problem = next(i for i, line in enumerate(lines) if line.startswith("problem  temporary folder"))
        self.assertIn("-> export TMPDIR=/tmp", lines[problem + 1])
        self.assertNotIn("\nok ", "\n".join(lines[problem:]))
        self.assertRegex(lines[-1], "[0-9]+ problem")
        self.assertTrue(lines[0].startswith("ok "), out)

    def test_of_a_low_limit_on_files_says_which(self):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

        def lower():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
        self.assert_problem(self.doctor(preexec_fn=lower), "open files", "100 at once", "ulimit -n")

    def test_of_a_path_without_mpiexec_says_so(self):
        os.mkdir(self.path("empty"))
        self.assert_problem(self.doctor(env={"PATH": self.path("empty")}), "mpiexec", "none is in PATH")

    def test_of_another_mpis_mpiexec_names_both(self):
        os.mkdir(self.path("bin"))
        built_for_openmpi = "Open MPI" in self.doctor()[1]["MPI"]["sentence"]
        other = "mpiexec.hydra" if built_for_openmpi else "orterun"
        with open(self.path("bin/" + other), "w") as script:
            script.write("#!/bin/sh\necho Version: 4.0.2\n")
        os.chmod(self.path("bin/" + other), 0o755)
        os.symlink(other, self.path("bin/mpiexec"))
        answer = self.doctor(env={"PATH": self.path("bin") + ":" + os.environ["PATH"]})
        self.assert_problem(answer, "mpiexec", "4.0.2", "MPICH", "Open MPI")

    def test_of_a_launcher_that_never_answers_goes_on(self):
        os.mkdir(self.path("bin"))
        with open(self.path("bin/mpiexec"), "w") as script:
            script.write("#!/bin/sh\nexec sleep 300\n")
        os.chmod(self.path("bin/mpiexec"), 0o755)
        _, checks = self.doctor(env={"PATH": self.path("bin") + ":" + os.environ["PATH"]})
        self.assertEqual(checks["mpiexec"]["verdict"], "warning")
        self.assert_nothing_left()

    def test_of_a_temporary_folder_that_cannot_be_written_says_which(self):
        for folder in ("/no/such/folder", "/proc"):
            self.assert_problem(self.doctor(env={"TMPDIR": folder}), "temporary folder", folder, "export TMPDIR=/tmp")

    def test_of_settings_that_cannot_be_read_says_what_is_wrong(self):
        self.assert_problem(self.doctor(env={"NESSIE_CONFIG": self.path("none.conf")}), "settings", "none.conf")

    @unittest.skipUnless(os.geteuid() == 0, "only root is refused by Open MPI")
    def test_of_root_that_open_mpi_refuses_says_what_to_export(self):
        env = {key: "" for key in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")}
        code, checks = self.doctor(env=env)
        if "Open MPI" not in checks["mpiexec"]["sentence"]:
            self.skipTest("the mpiexec here is not Open MPI's")
        self.assert_problem((code, checks), "root", "OMPI_ALLOW_RUN_AS_ROOT=1")

    @unittest.skipUnless(works("unshare", "-n", "true"), "no network name space can be made here")
    def test_of_a_loopback_that_is_down_says_how_it_comes_up(self):
        answer = self.doctor(command=("unshare", "-n", NESSIE, "doctor", "--json"))
        self.assert_problem(answer, "loopback", "127.0.0.1", "ip link set lo up")
        self.assertIn("no network to other nodes", answer[1]["transports"]["sentence"])

    @unittest.skipUnless(works("unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=1m", "none", "/dev/shm"),
                         "no mount name space can be made here")
    def test_of_a_tiny_shared_memory_says_how_it_gets_larger(self):
        for size, verdict in (("1m", "problem"), ("64m", "warning")):
            script = f"mount -t tmpfs -o size={size} none /dev/shm && exec {shlex.quote(NESSIE)} doctor --json"
            code, checks = self.doctor(command=("unshare", "-m", "sh", "-c", script))
            self.assertEqual(checks["/dev/shm"]["verdict"], verdict, checks["/dev/shm"])
            self.assertIn("--shm-size", checks["/dev/shm"]["mend"])
            self.assertEqual(code, int(any(check["verdict"] == "problem" for check in checks.values())))


if __name__ == "__main__":
    unittest.main()
