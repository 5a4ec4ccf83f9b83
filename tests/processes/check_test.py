# SPDX-License-Identifier: BSD-3-Clause
"""nessie check: what it says of programs, and that a run does what it says."""
import json
import os
import shutil
import signal
import unittest

from harness import BUILD, NESSIE, ProcessTestCase, read_file, unsanitized

SETUPS = os.path.join(BUILD, "tests", "setups")
LOOKED_UP = """#!/usr/bin/env python3
import ctypes, sys
ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
print(ctypes.CDLL("libpnetcdf.so.0d").ncmpi_create)
"""
CAPABILITY = bytes([1, 0, 0, 2, 0, 4] + [0] * 14)   # to serve at the ports of the system
# What exit code and what verdict go together.
CODES = {"staged": 0, "part": 1, "not": 1}


def program(name):
    return os.path.join(SETUPS, name)


class CheckTestCase(ProcessTestCase):
    def check(self, *words, **options):
        code, out, err = self.run_command([NESSIE, "check", "--json", *words], **options)
        self.assertIn(code, (0, 1), err)
        report = json.loads(out)
        self.assertEqual(code, CODES[report["verdict"]])
        report["found"] = "\n".join(finding["what"] for finding in report["findings"])
        return report

    def refused(self, *words):
        code, out, err = self.run_command([NESSIE, "check", *words])
        self.assertEqual((code, out), (2, ""), err)
        return err

    def write(self, name, content, mode=0o755):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(self.path(name), mode)
        return self.path(name)


class Files(CheckTestCase):
    """What files say, without a run."""

    def test_a_program_that_calls_pnetcdf_would_be_staged(self):
        report = self.check(program("writer"))
        self.assertEqual((report["verdict"], report["sentence"]), ("staged", "would be staged"))
        self.assertEqual(report["calls"], ["PnetCDF"])
        self.assertIn("libpnetcdf", report["pnetcdf"])
        self.assertIn("libmpi", report["mpi"])
        self.assertFalse(os.path.exists(self.path("out.nc")))
        self.assert_nothing_left()

    def test_it_is_found_behind_its_launcher(self):
        for words in (["--", "mpiexec", "-n", "2", program("writer"), "--json"], ["mpiexec", "-n", "2", program("writer")]):
            self.assertEqual(self.check(*words)["program"], program("writer"))
        report = self.check("--", "mpiexec", "-x", "LD_PRELOAD=tool.so", "-n", "2", program("writer"))
        self.assertIn("LD_PRELOAD is replaced by what starts the program ('-x LD_PRELOAD=tool.so')", report["sentence"])

    def test_a_launcher_with_a_program_that_is_not_there_is_refused(self):
        self.assertIn("mpiexec: no word behind it is a program",
                      self.refused("--", "mpiexec", "-n", "2", self.path("absent")))

    def test_a_static_program_would_not(self):
        report = self.check(program("count_bytes"))
        self.assertEqual(report["sentence"], "would not be staged: it is linked statically: nothing can be preloaded into it")
        self.assertIn("-lnessie_pnetcdf", report["findings"][0]["do"])

    @unittest.skipUnless(os.path.exists(program("inside")), "there is no static PnetCDF")
    def test_a_pnetcdf_inside_the_program_is_out_of_reach(self):
        self.assertIn("not be staged: it has PnetCDF inside", self.check(program("inside"))["sentence"])
        shutil.copy(program("inside"), self.path("stripped"))
        self.run_command(["strip", self.path("stripped")])
        self.assertIn("not be staged: it has PnetCDF inside", self.check(self.path("stripped"))["sentence"])

    def test_a_program_without_pnetcdf_would_not(self):
        self.assertEqual(self.check("/bin/true")["sentence"], "would not be staged: it does not call PnetCDF")

    @unsanitized("its run time comes first")
    def test_what_is_preloaded_counts(self):
        tool = self.check(program("writer"), env={"LD_PRELOAD": program("libtool.so")})
        self.assertEqual(tool["verdict"], "staged", tool["found"])
        self.assertEqual(self.check("/bin/true", env={"LD_PRELOAD": program("libtool.so")})["verdict"], "not")
        itself = self.check(program("writer"), env={"LD_PRELOAD": os.path.basename(tool["pnetcdf"])})
        self.assertIn("PnetCDF itself", itself["sentence"])

    def test_what_does_not_start_is_named(self):
        lost = self.write("lost", read_file(program("writer")).replace(b"libpnetcdf.so.", b"libparaioo.so."))
        self.assertRegex(self.check(lost)["sentence"], r"it does not start: libparaioo\.so\.\S+ is not found")

    def test_libraries_are_found_beside_what_a_link_leads_to(self):
        os.symlink(program("other_pnetcdf"), self.path("link"))
        self.assertIn(f"the program uses {program('libpnetcdf.so.99')}", self.check(self.path("link"))["sentence"])

    @unittest.skipUnless(os.geteuid() == 0, "only root gives files away")
    def test_rights_count_where_they_are_others(self):
        copy = self.write("copy", read_file(program("writer")))
        os.chmod(copy, 0o4755)
        report = self.check(copy)
        self.assertEqual(report["verdict"], "staged")
        self.assertIn("it has the setuid bit, which gives you no more rights", report["found"])
        for mode, name in ((0o4755, "setuid"), (0o2755, "setgid")):
            os.chown(copy, 65534, 65534)
            os.chmod(copy, mode)
            self.assertIn(f"not be staged: it has the {name} bit", self.check(copy)["sentence"])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root gives capabilities")
    def test_capabilities_count_for_who_has_none(self):
        copy = self.write("copy", read_file(program("writer")))
        os.chmod(self.folder, 0o755)
        os.setxattr(copy, "security.capability", CAPABILITY)
        self.assertEqual(self.check(copy)["verdict"], "staged")
        code, out, err = self.run_command(["setpriv", "--reuid", "65534", "--clear-groups", NESSIE, "check", copy])
        self.assertEqual(code, 1, err)
        self.assertIn("would not be staged: it has capabilities", out)

    def test_scripts_are_their_interpreters(self):
        report = self.check(self.write("job.sh", "#!/bin/sh\nmpiexec ./sim\n"))
        self.assertEqual((report["verdict"], report["program"]), ("part", self.path("job.sh")))
        self.assertIn("check the programs that it starts", [finding["do"] for finding in report["findings"]])
        report = self.check(self.write("analysis.py", LOOKED_UP))
        self.assertEqual(report["verdict"], "part")
        self.assertIn("Python loads PnetCDF late", report["found"])

    def test_what_is_no_program_is_bad_input(self):
        self.assertIn("there is no such file", self.refused("./absent"))
        self.assertIn("no such program in PATH", self.refused("absent-program"))
        self.assertIn("cannot be executed", self.refused(self.write("plain", "text", 0o644)))
        self.assertIn("cannot be executed", self.refused(self.folder))
        self.assertIn("neither a program nor a script", self.refused(self.write("zeros", b"\0" * 64)))
        self.assertIn("damaged, or cut off", self.refused(self.write("half", read_file(program("writer"))[:5000])))
        self.assertIn("say which program", self.refused())
        self.refused("--run", "soon", program("writer"))

    def test_for_people_it_says_the_same(self):
        code, out, err = self.run_command([NESSIE, "check", program("own_mpi")])
        self.assertEqual((code, err), (1, ""))
        self.assertTrue(out.startswith(f"{program('own_mpi')}: would not be staged: the program brings its own MPI"), out)
        self.assertIn("    what to do: ", out)


class Trials(CheckTestCase):
    """What a short run tells."""

    def test_it_ends_with_the_program(self):
        report = self.check("--run", "60", program("starter"))
        self.assertTrue(report["trial"]["ended_itself"])
        self.assertLess(report["trial"]["seconds"], 59)
        self.assert_nothing_left()

    def test_it_ends_what_does_not_end(self):
        stubborn = self.write("stubborn", "#!/bin/sh\ntrap '' TERM\nsetsid sleep 600 &\nwhile :; do sleep 600; done\n")
        report = self.check("--run", "0.5", stubborn)
        self.assertFalse(report["trial"]["ended_itself"])
        self.assert_nothing_left()

    def test_it_ends_when_it_is_interrupted(self):
        job = self.job([NESSIE, "check", "--run", "600", "sleep", "600"])
        job.wait_for("sleep")
        job.process.send_signal(signal.SIGTERM)
        code, _, err = job.finish()
        self.assertEqual(code, 2)
        self.assertIn("interrupted", err)
        self.assert_nothing_left()

    def test_the_program_is_not_heard_and_hears_nothing(self):
        script = self.write("script", "#!/bin/sh\necho heard; echo heard >&2; read line || echo end > ended\n")
        code, out, err = self.run_command([NESSIE, "check", "--run", "30", script])
        self.assertEqual(code, 1)
        self.assertNotIn("heard", out + err)
        self.assertEqual(read_file(self.path("ended")), b"end\n")

    @unsanitized("the interpreter is not instrumented")
    def test_functions_that_python_looks_up_would_be_staged(self):
        report = self.check("--run", "60", self.write("analysis.py", LOOKED_UP))
        self.assertEqual(report["verdict"], "staged", report["found"])
        self.assertIn("looks functions up in it", report["found"])
        self.assertIn(True, [library["opened_later"] for library in report["libraries"]])

    @unsanitized("RTLD_DEEPBIND does not go with one")
    def test_plugins_count_as_they_are_opened(self):
        self.assertEqual(self.check(program("plugin_host"))["verdict"], "part")
        plugin = program("libplugin.so")
        report = self.check("--run", "60", program("plugin_host"), "local", plugin)
        self.assertEqual(report["verdict"], "staged", report["found"])
        report = self.check("--run", "60", program("plugin_host"), "deepbind", plugin)
        self.assertEqual(report["verdict"], "not", report["found"])
        self.assertIn("RTLD_DEEPBIND", report["sentence"])
        for kind in ("wheel", "other_mpi"):
            report = self.check("--run", "60", program("plugin_host"), "local", program(f"{kind}/plugin.so"))
            self.assertRegex(report["sentence"], f"not be staged: the program uses .*/{kind}/libmpi")
        self.assert_nothing_left()


class Runs(CheckTestCase):
    """A run does what was said."""

    def assert_as_said(self, report, *words):
        code, _, err = self.nessie_run(list(words))
        self.assertEqual(code, 0, err)
        self.assertEqual("nessie: staged" in err, report["verdict"] == "staged", f"{report['sentence']}\n{err}")
        return err

    def test_of_programs_that_call_pnetcdf(self):
        words = [program("writer"), "out.nc"]
        self.assert_as_said(self.check(*words), *words)
        if os.path.exists(program("inside")):
            self.assert_as_said(self.check(program("inside")), program("inside"), "inside.nc")

    def test_of_programs_with_other_libraries_in_the_same_words(self):
        for name in ("own_mpi", "other_pnetcdf"):
            report = self.check(program(name))
            err = self.assert_as_said(report, program(name))
            self.assertIn(report["sentence"].removeprefix("would not be staged: "), err)

    @unsanitized("RTLD_DEEPBIND does not go with one")
    def test_of_plugins_after_a_trial(self):
        for how in ("local", "deepbind"):
            words = [program("plugin_host"), how, program("libplugin.so")]
            self.assert_as_said(self.check("--run", "60", *words), *words)

    @unittest.skipUnless(os.geteuid() == 0, "only root gives files away")
    @unsanitized("its library is not found by a program with rights of its own")
    def test_of_programs_with_rights(self):
        copy = self.write("copy", read_file(program("writer")))
        os.chmod(copy, 0o4755)
        self.assert_as_said(self.check(copy), copy, "out.nc")
        os.chown(copy, 0, 65534)
        os.chmod(copy, 0o2755)
        self.assert_as_said(self.check(copy), copy, "out.nc")
        os.chmod(copy, 0o755)
        os.setxattr(copy, "security.capability", CAPABILITY)
        self.assert_as_said(self.check(copy), copy, "out.nc")


if __name__ == "__main__":
    unittest.main()
