# SPDX-License-Identifier: BSD-3-Clause
"""CommSplitter: programs that share a job see what each sees alone. src/interpose/commsplitter/README.md."""
import os
import re
import shutil
import subprocess
import unittest

from harness import BUILD, ProcessTestCase, read_file, unsanitized

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "commsplitter")
# Of each binding: its source, and what it is compiled with.
BINDINGS = {"C": ("world.c", []), "mpif.h": ("world_mpif.f90", ["-cpp", "-fallow-argument-mismatch"]),
            "use mpi": ("world_mpif.f90", ["-cpp", "-fallow-argument-mismatch", "-DUSE_MPI"]),
            "use mpi_f08": ("world_f08.f90", [])}


class Mpi:
    """One MPI: its compilers, its launcher, and the library that was made for it."""

    def __init__(self, name, library, soname):
        self.name, self.soname = name, soname
        self.library = os.path.join(BUILD, "lib", library)

    def exists(self):
        return os.path.exists(self.library) and shutil.which(f"mpiexec.{self.name}") is not None

    def command(self, parts, env=None, preload=None):
        """mpiexec for parts of a job: (processes, words); `preload`: what each part preloads, ours if None."""
        env = {"LD_PRELOAD": self.library if preload is None else preload, **(env or {})}
        words = [f"mpiexec.{self.name}"] + (["--oversubscribe"] if self.name == "openmpi" else [])
        for number, (processes, program) in enumerate(parts):
            words += [":"] * (number > 0)
            for variable, value in env.items():
                words += ["-x", f"{variable}={value}"] if self.name == "openmpi" else ["-env", variable, value]
            words += ["-n", str(processes), *program]
        return words

    def header(self):
        flags = subprocess.run([f"mpicc.{self.name}", "-show"], check=True, capture_output=True, text=True).stdout
        folders = re.findall(r"-I(\S+)", flags)
        return subprocess.run(["gcc", "-E", "-P", "-x", "c", *(f"-I{f}" for f in folders), "-"], check=True,
                              capture_output=True, text=True, input="#include <mpi.h>\n").stdout


MPIS = [Mpi("openmpi", "libcommsplitter.so", "libmpi.so"), Mpi("mpich", "libcommsplitter_mpich.so", "libmpich.so")]


def exported(library):
    return set(subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                              text=True).stdout.split())


@unsanitized("the programs are not built with it")
class CommSplitter(ProcessTestCase):
    def each_mpi(self):
        return [mpi for mpi in MPIS if mpi.exists()]

    def compile(self, mpi, binding):
        """One of the bindings' programs, or another one by its source."""
        source, flags = BINDINGS.get(binding, (binding, []))
        compiler = ("mpicc." if source.endswith(".c") else "mpif90.") + mpi.name
        program = self.path(f"{mpi.name} {binding}".replace(" ", "_").replace(".", "_"))
        subprocess.run([compiler, *flags, "-w", os.path.join(HERE, source), "-o", program], check=True, cwd=self.folder)
        return program

    def writing_to(self, name, *words):
        """A shell that runs a program whose output goes to a file of this test's."""
        return ["sh", "-c", f'exec "$@" >> {self.path(name)}', "sh", *words]

    def outputs(self, mpi, parts, **options):
        """Runs programs as one job; returns what each printed. Parts: processes, words."""
        for number in range(len(parts)):
            open(self.path(f"out{number}"), "w", encoding="utf-8").close()
        redirected = [(n, self.writing_to(f"out{i}", *words)) for i, (n, words) in enumerate(parts)]
        code, out, err = self.run_command(mpi.command(redirected, **options))
        self.assertEqual(code, 0, out + err)
        return [read_file(self.path(f"out{i}")).decode() for i in range(len(parts))]

    def setUp(self):
        super().setUp()
        self.seen_alone = {}

    def alone(self, mpi, processes, *words):
        key = (mpi.name, processes, words)
        if key not in self.seen_alone:
            self.seen_alone[key] = self.outputs(mpi, [(processes, list(words))], preload="")[0]
        return self.seen_alone[key]

    def assert_as_alone(self, mpi, parts, **options):
        together = self.outputs(mpi, parts, **options)
        for (processes, words), out in zip(parts, together, strict=True):
            self.assertEqual(out, self.alone(mpi, processes, *words))
            self.assertIn("processes", out)

    def test_every_function_with_a_communicator_is_covered(self):
        for mpi in self.each_mpi():
            with self.subTest(mpi=mpi.name):
                ours, header = exported(mpi.library), mpi.header()
                functions = re.findall(r"\b(P?MPIX?_\w+)\s*\(([^;{}]*MPI_Comm\s+\w[^;{}]*)\)[^;{}]*;", header)
                self.assertGreater(len(functions), 200)
                self.assertEqual([name for name, _ in functions if name not in ours], [])

    def test_a_program_sees_of_its_world_what_it_sees_alone(self):
        for mpi in self.each_mpi():
            with self.subTest(mpi=mpi.name):
                for binding in BINDINGS:
                    with self.subTest(binding=binding):
                        program = self.compile(mpi, binding)
                        self.assert_as_alone(mpi, [(3, [program, self.path("one")]), (2, [program, self.path("two")])])

    def test_programs_are_told_apart_as_the_setting_says(self):
        for mpi in self.each_mpi():
            with self.subTest(mpi=mpi.name):
                program = self.compile(mpi, "C")
                other = self.path("other")
                shutil.copy(self.compile(mpi, "use mpi"), other)
                one, two = (3, [program, self.path("one")]), (2, [other])
                self.assert_as_alone(mpi, [one, two], env={"NESSIE_COMMSPLITTER": "executable"})
                self.assert_as_alone(mpi, [one, two], env={"NESSIE_COMMSPLITTER": "0-2,3-4"})
                parts = [(n, ["env", f"SIDE={side}", *words]) for side, (n, words) in enumerate([one, two])]
                self.assert_as_alone(mpi, parts, env={"NESSIE_COMMSPLITTER": "variable:SIDE"})

    def test_parts_of_one_executable_are_one_program(self):
        for mpi in self.each_mpi():
            with self.subTest(mpi=mpi.name):
                program = self.compile(mpi, "C")
                parts = [(2, [program, self.path("one")]), (2, [program, self.path("one")])]
                first, second = self.outputs(mpi, parts, env={"NESSIE_COMMSPLITTER": "executable"})
                self.assertIn("processes: 4\n", first)
                self.assertEqual(second, "")

    def test_threads_other_processes_and_newer_functions_are_as_alone(self):
        for mpi in self.each_mpi():
            with self.subTest(mpi=mpi.name):
                program = self.compile(mpi, "more.c")
                self.assert_as_alone(mpi, [(3, [program]), (2, [program])])

    def test_a_session_has_the_programs_processes(self):
        for mpi in self.each_mpi():
            if "MPI_Session_init" not in exported(mpi.library):
                continue
            with self.subTest(mpi=mpi.name):
                program = self.compile(mpi, "more.c")
                self.assert_as_alone(mpi, [(3, [program, "session"]), (2, [program, "session"])])
                self.assert_as_alone(mpi, [(2, [program]), (3, [program, "session"])])

    def test_a_program_may_look_at_the_whole_job(self):
        for mpi in self.each_mpi():
            with self.subTest(mpi=mpi.name):
                program = self.compile(mpi, "job.c")
                self.assertEqual(self.outputs(mpi, [(1, [program, "look"]), (2, [program, "look"])]),
                                 ["1 of 1, 3 of 3\nended\n", "2 of 2, 3 of 3\nended\n"])

    def run_beside_one_that_aborts(self, mpi, ends, ms, options=()):
        program = self.compile(mpi, "job.c")
        command = mpi.command([(4, [program, "abort", "3"]), (2, [program, "go-on", str(ms)])],
                              env={"NESSIE_COMMSPLITTER_ABORT": ends})
        return self.run_command(command[:1] + list(options) + command[1:])

    def test_abort_ends_the_program_or_the_job_as_the_setting_says(self):
        for mpi in self.each_mpi():
            with self.subTest(mpi=mpi.name):
                for ms in (0, 500):   # the others are in MPI_Finalize before, and after
                    code, out, err = self.run_beside_one_that_aborts(mpi, "program", ms)
                    self.assertEqual((code, out), (0 if mpi.name == "openmpi" else 3, "2 go on\n2 end\nended\n"), err)
                    self.assertIn("MPI_Abort(3) ends this program; the job's others go on", err)
                code, out, _ = self.run_beside_one_that_aborts(mpi, "job", 10000)
                self.assertEqual((code, out), (3, ""))
                code, _, err = self.run_beside_one_that_aborts(mpi, "nobody", 0)
                self.assertNotEqual(code, 0)
                self.assertIn("NESSIE_COMMSPLITTER_ABORT is neither job nor program", err)

    def test_tools_before_it_and_behind_it_see_what_the_program_does(self):
        for mpi in self.each_mpi():
            with self.subTest(mpi=mpi.name):
                program, tool = self.compile(mpi, "C"), self.path(f"tool_{mpi.name}.so")
                subprocess.run([f"mpicc.{mpi.name}", "-shared", "-fPIC", os.path.join(HERE, "tool.c"), "-o", tool], check=True)
                for preload in (f"{tool}:{mpi.library}", f"{mpi.library}:{tool}"):
                    parts = [(3, [program, self.path("one")]), (2, [program, self.path("two")])]
                    code, out, err = self.run_command(mpi.command(parts, preload=preload))
                    self.assertEqual(code, 0, err)
                    self.assertEqual(err.count("tool: 1 reductions, 1 on the world"), 2, preload + err)
                    self.assertEqual((out.count("processes: 3"), out.count("processes: 2")), (1, 1), out)

    def test_in_a_job_of_one_program_it_does_nothing(self):
        for mpi in self.each_mpi():
            with self.subTest(mpi=mpi.name):
                self.assert_as_alone(mpi, [(3, [self.compile(mpi, "C"), self.path("one")])])

    def test_a_setting_that_says_nothing_ends_the_job_with_a_sentence(self):
        for mpi in self.each_mpi():
            with self.subTest(mpi=mpi.name):
                program = self.compile(mpi, "C")
                for setting, sentence in {"programs": "is none of appnum, executable, variable:NAME, 0-3,4-7",
                                          "0-1,1-2": "lists ranks that do not ascend",
                                          "0-": "is no list of ranks, such as 0-3,4-7"}.items():
                    command = mpi.command([(1, [program]), (1, [program])], env={"NESSIE_COMMSPLITTER": setting})
                    code, _, err = self.run_command(command)
                    self.assertNotEqual(code, 0)
                    self.assertIn(f"NESSIE_COMMSPLITTER={setting} {sentence}", err)

    def test_a_program_without_it_is_not_waited_for_without_an_end(self):
        for mpi in self.each_mpi():
            with self.subTest(mpi=mpi.name):
                waits = self.path("waits.c")
                with open(waits, "w", encoding="utf-8") as file:
                    file.write("#include <mpi.h>\n#include <unistd.h>\n"
                               "int main(int n, char **v) { MPI_Init(&n, &v); sleep(30); MPI_Finalize(); }\n")
                other = self.path(f"waits_{mpi.name}")
                subprocess.run([f"mpicc.{mpi.name}", waits, "-o", other], check=True)
                command = mpi.command([(1, [self.compile(mpi, "C")]), (1, ["env", "-u", "LD_PRELOAD", other])],
                                      env={"NESSIE_COMMSPLITTER_TIMEOUT": "2s"})
                code, _, err = self.run_command(command)
                self.assertNotEqual(code, 0)
                self.assertIn("another program of this job does not answer", err)


@unsanitized("the programs are not built with it")
class ForeignMpi(ProcessTestCase):
    @unittest.skipUnless(all(mpi.exists() for mpi in MPIS), "needs two MPIs")
    def test_it_says_so_and_stays_out_of_the_way(self):
        ours, other = MPIS
        source = self.path("size.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <mpi.h>\n#include <stdio.h>\n"
                       "int main(int n, char **v) { int size, rank; MPI_Init(&n, &v);\n"
                       "MPI_Comm_size(MPI_COMM_WORLD, &size); MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
                       "if (rank == 0) printf(\"%d processes\\n\", size); MPI_Finalize(); }\n")
        for mpi, preload in ((ours, other.library), (other, ours.library)):
            program = self.path(f"size_{mpi.name}")
            subprocess.run([f"mpicc.{mpi.name}", source, "-o", program], check=True)
            code, out, err = self.run_command(mpi.command([(1, [program]), (1, [program])], preload=preload))
            self.assertEqual((code, out), (0, "2 processes\n"), err)
            self.assertIn("this program's MPI is " + mpi.soname, err)


if __name__ == "__main__":
    unittest.main()
