# SPDX-License-Identifier: BSD-3-Clause
"""cmake --install: what is installed runs, and others can build on it, by CMake and by pkg-config, in C++, C and Fortran."""
import os
import unittest

from harness import BUILD, ProcessTestCase

CONSUMER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "consumer")
STREAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/streams")


class Installed(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.prefix = self.path("prefix")
        self.do("cmake", "--install", BUILD, "--prefix", self.prefix)

    def do(self, *command, **environment):
        code, out, err = self.run_command(list(command), env=environment)
        self.assertEqual(code, 0, out + err)
        return out

    def folder_of(self, name):
        for folder, _, files in os.walk(self.prefix):
            if name in files:
                return folder
        self.fail(f"{name} was not installed")

    def test_runs_a_program(self):
        nessie = os.path.join(self.prefix, "bin", "nessie")
        self.assertIn("nessie", self.do(nessie, "version"))
        self.assertEqual(self.do(nessie, "--version"), self.do(nessie, "version"))
        self.assertIn(self.prefix, self.do(nessie, "run", "--", "printenv", "LD_PRELOAD"))
        self.assert_nothing_left()

    def test_serves_a_cmake_project(self):
        self.do("cmake", "-S", CONSUMER, "-B", self.path("build"), f"-DCMAKE_PREFIX_PATH={self.prefix}",
                "-DCMAKE_BUILD_TYPE=Release")
        self.do("cmake", "--build", self.path("build"))
        transports = self.do(self.path("build/transports"))
        self.assertIn("shm available", transports)
        self.assertIn("mpi available", transports, "loaded from where it was installed")
        for program in ("greeting", "greeting_in_both", "greeter", "greeter_in_fortran"):
            self.assertIn("hello 42", self.do(self.path("build/" + program)))
        self.assertIn("16 bytes, the same", self.do(self.path("build/greeting_in_c")))
        self.assertIn("24 bytes", self.do(self.path("build/farewell")))
        self.assertIn("found shm://", self.do(self.path("build/found"), "file:" + self.path("contact")))
        part = ["-n", "1", self.path("build/shares_a_job")]
        self.assertEqual(self.do("mpiexec", *part, ":", *part), "1 in C\n1 in C\n")

    def test_serves_pkg_config(self):
        programs = {"nessie-nnti": "transports.c"}
        if os.path.exists(os.path.join(BUILD, "nessie-trios.pc")):   # NESSIE_TRIOS
            programs |= {"nessie-trios": "trios.c", "nessie-trios-nssi": "trios_nssi.c"}
        for package, source in programs.items():
            folder = self.folder_of(package + ".pc")
            flags = self.do("pkg-config", "--cflags", "--libs", package, PKG_CONFIG_PATH=folder).split()
            self.do("cc", os.path.join(CONSUMER, source), "-o", self.path(package), *flags)
            self.assertIn("shm://", self.do(self.path(package)))

    def test_has_discovery_for_c_without_cmake(self):
        flags = self.do("pkg-config", "--cflags", "--libs", "nessie-discovery",
                        PKG_CONFIG_PATH=self.folder_of("nessie-discovery.pc")).split()
        self.do("cc", os.path.join(CONSUMER, "found.c"), "-o", self.path("found"), *flags)
        self.assertIn("found shm://", self.do(self.path("found"), "file:" + self.path("contact")))
        self.assertFalse(os.path.exists(self.path("contact")), "closing withdraws")

    def test_loads_the_transport_mpi(self):
        library = os.path.join(self.folder_of("libnessie_transport_mpi.so"), "libnessie_transport_mpi.so")
        nessie = os.path.join(self.prefix, "bin", "nessie")
        self.assertRegex(self.do(nessie, "info", "--no-test", NESSIE_NNTI_MPI_LIBRARY=library), r"\n  mpi +available")
        self.assertRegex(self.do(nessie, "info", "--no-test", NESSIE_NNTI_MPI_LIBRARY="/none.so"), r"\n  mpi +not .*/none.so")

    def test_compiles_interfaces_to_c_without_cmake(self):
        self.do(os.path.join(self.prefix, "bin", "nessie"), "idl", "--language", "c", "--out", self.path("."),
                os.path.join(CONSUMER, "greeting.x"))
        flags = self.do("pkg-config", "--cflags", "--libs", "nessie-xdr-c",
                        PKG_CONFIG_PATH=self.folder_of("nessie-xdr-c.pc")).split()
        self.do("cc", os.path.join(CONSUMER, "greeting.c"), self.path("greeting_xdr.c"), "-I", self.path("."), "-o",
                self.path("greeting"), *flags)
        self.assertIn("16 bytes, the same", self.do(self.path("greeting")))

    def test_makes_stubs_in_c_without_cmake(self):
        self.do(os.path.join(self.prefix, "bin", "nessie"), "idl", "--language", "c", "--out", self.path("."),
                os.path.join(CONSUMER, "greeting.x"))
        flags = self.do("pkg-config", "--cflags", "--libs", "nessie-nssi-stub",
                        PKG_CONFIG_PATH=self.folder_of("nessie-nssi-stub.pc")).split()
        sources = [os.path.join(CONSUMER, "greeter.c"), self.path("greeting_xdr.c"), self.path("greeting_rpc.c")]
        self.do("cc", *sources, "-I", self.path("."), "-o", self.path("greeter"), *flags)
        self.assertIn("hello 42", self.do(self.path("greeter")))

    def compile_to_fortran(self):
        self.do(os.path.join(self.prefix, "bin", "nessie"), "idl", "--language", "fortran", "--out", self.path("."),
                os.path.join(CONSUMER, "greeting.x"))
        return [self.path("greeting.f90"), os.path.join(CONSUMER, "greeter.f90")]

    def fortran_flags(self, what):
        return self.do("pkg-config", what, "nessie-fortran",
                       PKG_CONFIG_PATH=self.folder_of("nessie-fortran.pc")).split()

    def test_serves_fortran_without_cmake(self):
        sources = self.compile_to_fortran()
        self.do("gfortran", "-J", self.path("."), *self.fortran_flags("--cflags"), *sources, "-o", self.path("greeter"),
                *self.fortran_flags("--libs"))
        self.assertIn("hello 42", self.do(self.path("greeter")))

    def test_serves_a_fortran_compiler_that_cannot_read_its_modules(self):
        modules = self.folder_of("nssi.mod")
        for name in os.listdir(modules):
            os.remove(os.path.join(modules, name))
        folder = self.folder_of("nssi.f90")
        sources = [os.path.join(folder, name) for name in ("nessie.f90", "nessie_xdr.F90", "nssi_c.f90", "nssi.f90",
                                                               "nessie_streams_c.f90", "nessie_streams.F90")]
        self.do("gfortran", "-J", self.path("."), *sources, *self.compile_to_fortran(), "-o", self.path("greeter"),
                *self.fortran_flags("--libs"))
        self.assertIn("hello 42", self.do(self.path("greeter")))

    def flags_of(self, package):
        return self.do("pkg-config", "--cflags", "--libs", package, PKG_CONFIG_PATH=self.folder_of(package + ".pc")).split()

    def exchange(self, writer, reader):
        """A writer and a reader of examples/streams, at a server that is installed."""
        server = self.job([os.path.join(self.prefix, "bin", "nessie-streams")])
        server.process.stdout.readline()   # its URL: it is there
        self.do(self.path(writer))
        self.assertIn("step 2: the mean of the box is 211.215 K, the maximum of all 247.63 K", self.do(self.path(reader)))
        server.process.terminate()
        self.assertEqual(server.finish()[0], 0)

    def test_has_streams_without_cmake(self):
        compilers = {"c": ["cc"], "cpp": ["c++", "-std=c++20"], "f90": ["gfortran", "-J", self.path(".")]}
        packages = {"c": "nessie-streams", "cpp": "nessie-streams", "f90": "nessie-fortran"}
        for writer, reader in (("c", "cpp"), ("f90", "c"), ("cpp", "f90")):
            for role, language in (("writer", writer), ("reader", reader)):
                self.do(*compilers[language], os.path.join(STREAMS, f"{role}.{language}"), "-o", self.path(role),
                        *self.flags_of(packages[language]))
            self.exchange("writer", "reader")

    def test_has_streams_for_cmake_projects(self):
        self.do("cmake", "-S", STREAMS, "-B", self.path("build"), f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.do("cmake", "--build", self.path("build"))
        self.exchange("build/streams_writer_f90", "build/streams_reader_cpp")

    def test_splits_jobs_of_programs_that_are_linked_to_it(self):
        flags = self.do("pkg-config", "--libs", "nessie-commsplitter",
                        PKG_CONFIG_PATH=self.folder_of("nessie-commsplitter.pc")).split()
        for compiler, source in (("mpicc", "shares_a_job.c"), ("mpif90", "shares_a_job.f90")):
            self.do(compiler, os.path.join(CONSUMER, source), "-o", self.path(source + ".out"), *flags)
        out = self.do("mpiexec", "--oversubscribe", "-n", "1", self.path("shares_a_job.c.out"), ":", "-n", "2",
                      self.path("shares_a_job.f90.out"))
        self.assertEqual(sorted(out.splitlines()), ["1 in C", "2 in Fortran"])

    def test_names_the_library_for_link_order(self):
        flags = self.do("pkg-config", "--libs", "nessie-pnetcdf", PKG_CONFIG_PATH=self.folder_of("nessie-pnetcdf.pc"))
        self.assertIn("-lnessie_pnetcdf", flags)


if __name__ == "__main__":
    unittest.main()
