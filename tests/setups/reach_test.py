# SPDX-License-Identifier: BSD-3-Clause
"""How functions are reached: looked up in the library itself, through plug-ins, before and behind other preloaded tools,
beside other libraries. Each program is staged whole or not at all, and that is said."""
import ctypes.util
import os
import re
import shlex
import subprocess
import unittest

import setups
from harness import BUILD, mpiexec, read_file

NESSIE_LIBRARY = os.path.join(BUILD, "lib", "libnessie_pnetcdf.so")
WRITER = setups.program("writer")

PNETCDF = "libpnetcdf.so.0d"
LOOKED_UP = r"""
import ctypes, sys
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
world = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world")))
null = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_info_null")))
ncid, dim, var, length = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.c_longlong()
def check(code): assert code == 0, code
for number, library in enumerate(sys.argv[1:]):
    nc, name = ctypes.CDLL(library), b"py%d.nc" % number
    check(nc.ncmpi_create(world, name, 0, null, ctypes.byref(ncid)))
    check(nc.ncmpi_def_dim(ncid, b"x", ctypes.c_longlong(7), ctypes.byref(dim)))
    check(nc.ncmpi_def_var(ncid, b"v", 4, 1, ctypes.byref(dim), ctypes.byref(var)))
    check(nc.ncmpi_enddef(ncid))
    check(nc.ncmpi_put_var_int_all(ncid, var, (ctypes.c_int * 7)(*range(7))))
    check(nc.ncmpi_close(ncid))
    check(nc.ncmpi_open(world, name, 0, null, ctypes.byref(ncid)))
    check(nc.ncmpi_inq_dimlen(ncid, dim, ctypes.byref(length)))
    check(nc.ncmpi_close(ncid))
    print(f"length {length.value}\n", end="")
mpi.MPI_Finalize()
"""
IS_THERE = r"""
import ctypes
try: ctypes.CDLL(None).ncmpi_create
except AttributeError as error: print(error)
"""


def looking_up(*libraries):
    return mpiexec(1, "/usr/bin/python3", "-c", LOOKED_UP, *libraries)


def behind(tool, command):
    """`command`, with a preloaded tool before Nessie's library."""
    return ["sh", "-c", 'LD_PRELOAD=$0:$LD_PRELOAD exec "$@"', tool, *command]


class Reach(setups.SetupCase):
    def test_functions_looked_up_in_the_library_are_staged(self):
        self.compare(looking_up(PNETCDF), ["caching", "direct"])

    def test_functions_looked_up_past_us_are_native_wholly(self):
        outcomes = self.compare(behind(setups.program("liblookup_tool.so"), looking_up(PNETCDF)), ["caching"],
                                must_be_staged=False)
        self.assertIn("nothing was staged: functions of PnetCDF were reached past Nessie", outcomes[1].err)

    def test_a_file_made_past_us_is_not_mistaken_for_one_of_ours(self):
        program = mpiexec(2, setups.program("past"), PNETCDF)
        outcomes = self.compare(behind(setups.program("liblookup_tool.so"), program), ["caching"])
        self.assertEqual(outcomes[0].code, 0, outcomes[0].err)

    def test_where_no_pnetcdf_is_there_is_none(self):
        for command in ([setups.program("available")], ["/usr/bin/python3", "-c", IS_THERE]):
            with self.subTest(command=command):
                outcomes = self.compare_apart(command, ["caching"], must_be_staged=False)
                self.assertIn("undefined symbol: ncmpi_create", outcomes[0].out)

    def test_a_plugin_is_staged_whole_or_not_at_all(self):
        for how, staged in (("local", True), ("deepbind", False)):
            with self.subTest(how=how):
                command = mpiexec(2, setups.program("plugin_host"), how, setups.program("libplugin.so"))
                outcomes = self.compare_apart(command, ["caching"], must_be_staged=staged)
                self.assertEqual(outcomes[1].was_staged, staged, outcomes[1].err)

    def test_what_dlerror_has_to_say_is_kept(self):
        self.compare([setups.program("errors")], ["caching"], must_be_staged=False)


class Loading(setups.SetupCase):
    def test_the_dynamic_linker_is_left_alone(self):
        """Its lock, which a library that is being loaded may hold, and what dlerror() is to say."""
        command = [setups.program("loader"), setups.program("libearly_library.so")]
        self.compare(command, ["caching"], must_be_staged=False)


class Tools(setups.SetupCase):
    """Counters of calls, in every order of preloading."""

    def counted(self, label, run, preload, env=None):
        log = self.path(label + ".log")
        env = {**(env or {}), "TOOL_LOG": log}
        preload = [os.environ["NESSIE_TEST_PRELOAD"], *preload] if "NESSIE_TEST_PRELOAD" in os.environ else preload
        command = ["mpiexec", "--oversubscribe", "-n", "2", "sh", "-c", 'LD_PRELOAD=$0 exec "$@"', ":".join(preload), WRITER,
                   "out.nc"]
        return run(command, label=label, env=env), read_file(log) if os.path.exists(log) else b""

    def test_before_and_behind_us_they_see_what_they_see_natively(self):
        for tool in ("libtool.so", "libtool_once.so"):
            tool = setups.program(tool)
            native, expected = self.counted("native." + os.path.basename(tool), self.native, [tool])
            for order, preload in {"before": [tool, NESSIE_LIBRARY], "behind": [NESSIE_LIBRARY, tool]}.items():
                def run(command, label, env):
                    return self.staged("caching", command, label=label, env=env)
                staged, seen = self.counted(f"{order}.{os.path.basename(tool)}", run, preload)
                self.assert_same(native, staged)
                self.assertEqual(seen, expected, f"{tool} {order}")

    def test_who_watches_programs_being_started_sees_them(self):
        def start(label, run, preload):
            return run(["env", "LD_PRELOAD=" + ":".join(preload), setups.program("starter")], label=label)
        tool = setups.program("libexec_tool.so")
        native = start("native", self.native, [tool])
        self.assertEqual(native.out.split(), "tool: execve tool: execv tool: execvp".split())
        for order, preload in {"before": [tool, NESSIE_LIBRARY], "behind": [NESSIE_LIBRARY, tool]}.items():
            staged = start(order, lambda command, label: self.staged("caching", command, label=label), preload)
            self.assert_same(native, staged, must_be_staged=False)

    def test_in_the_environment_it_stands_before_us(self):
        env = {"LD_PRELOAD": setups.program("libtool.so"), "TOOL_LOG": self.path("log")}
        command = mpiexec(2, WRITER, "out.nc")
        native = self.native(command, env=env)
        expected = read_file(self.path("log"))
        os.remove(self.path("log"))
        self.assert_same(native, self.staged("caching", command, env=env))
        self.assertEqual(read_file(self.path("log")), expected)

    @unittest.skipUnless(os.path.exists(setups.program("sanitized")), "no AddressSanitizer, or everything is built with it")
    def test_programs_with_a_sanitizer_start(self):
        changed = ["env", "ASAN_OPTIONS=detect_leaks=0", setups.program("sanitized"), "out.nc"]
        for way, command in {"options": changed, "built in": [setups.program("sanitized_by_itself"), "out.nc"]}.items():
            with self.subTest(way=way):
                self.compare_apart(mpiexec(2, *command), ["caching"])

    def test_who_takes_our_place_is_named(self):
        tool = setups.program("libtool.so")
        env = {"TOOL_LOG": self.path("log")}
        native = self.native(mpiexec(2, WRITER, "out.nc"), env=env)
        ways = {"launcher": ["mpiexec", "-x", f"LD_PRELOAD={tool}", "-n", "2", WRITER, "out.nc"],
                "wrapper": mpiexec(2, "sh", "-c", f'LD_PRELOAD={tool} exec "$@"', "sh", WRITER, "out.nc"),
                "unset": mpiexec(2, "env", "-u", "LD_PRELOAD", WRITER, "out.nc")}
        for label, command in ways.items():
            with self.subTest(way=label):
                outcome = self.staged("caching", command, label=label, env=env)
                self.assert_same(native, outcome, must_be_staged=False)
                self.assertIn("nothing was staged: LD_PRELOAD was", outcome.err)


# Runs the rest of its arguments; process N of the job with what its first argument makes of the environment.
ONE_APART = """N=$1 how=$2; shift 2
if [ "$OMPI_COMM_WORLD_RANK" = "$N" ]; then eval "$how"; fi
exec "$@"
"""
CLEARED = LOOKED_UP.replace("mpi.MPI_Init(None, None)\n", """mpi.MPI_Init(None, None)
import os
if os.environ["OMPI_COMM_WORLD_RANK"] in os.environ["WHO"].split(): os.environ.clear()
""")


class SomeProcesses(setups.SetupCase):
    """Jobs of which only some processes have Nessie's library in front of their PnetCDF are native, and end."""

    def one_apart(self, number, how, *command):
        return mpiexec(2, "sh", "-c", ONE_APART, "sh", str(number), how, *command)

    def assert_native(self, command, number, **options):
        outcomes = self.compare_apart(command, ["caching"], must_be_staged=False, **options)
        self.assertFalse(outcomes[1].was_staged, outcomes[1].err)
        self.assertIn(f"process {number} of the job on this node runs without Nessie's library", outcomes[1].err)

    def test_one_with_a_wrapper_of_its_own(self):
        ways = {"replaced": f"export LD_PRELOAD={setups.program('libtool.so')}", "unset": "unset LD_PRELOAD"}
        for way, how in ways.items():
            for number in (0, 1):
                with self.subTest(way=way, number=number):
                    self.assert_native(self.one_apart(number, how, WRITER, "out.nc"), number,
                                       env={"TOOL_LOG": self.path("log")})

    def test_one_of_several_programs(self):
        inside = setups.program("inside")
        ways = {"no servers": ["env", "-u", "NESSIE_SERVERS", WRITER], "no library": ["env", "-u", "LD_PRELOAD", WRITER]}
        if os.path.exists(inside):
            ways["PnetCDF inside"] = [inside]
        for way, first in ways.items():
            with self.subTest(way=way):
                self.assert_native([*mpiexec(1, *first, "out.nc"), ":", "-n", "1", WRITER, "out.nc"], 0)
                self.assert_native([*mpiexec(1, WRITER, "out.nc"), ":", "-n", "1", *first, "out.nc"], 1)

    def test_an_interpreter_that_loads_mpi_late(self):
        python = ["/usr/bin/python3", "-c", LOOKED_UP, PNETCDF]
        self.compare_apart(mpiexec(2, *python), ["caching"])
        self.assert_native(self.one_apart(1, "unset LD_PRELOAD", *python), 1)

    def test_where_all_have_it_all_is_staged(self):
        self.compare_apart(self.one_apart(1, "true; /bin/true", WRITER, "out.nc"), ["caching"])
        self.compare_apart([*mpiexec(1, WRITER, "out.nc"), ":", "-n", "1", "env", "A=B", WRITER, "out.nc"], ["caching"])
        self.compare_apart(mpiexec(1, setups.program("spawner")), ["caching"])

    def test_each_job_of_a_run_is_looked_at(self):
        apart = " ".join(map(shlex.quote, self.one_apart(0, "unset LD_PRELOAD", WRITER, "apart.nc")))
        whole = " ".join(map(shlex.quote, mpiexec(2, WRITER, "whole.nc")))
        for order in ((apart, whole), (whole, apart)):
            outcomes = self.compare_apart(["sh", "-c", " && ".join(order)], ["caching"])
            self.assertIn("whole.nc: ", outcomes[1].err)
            self.assertNotIn("apart.nc: ", outcomes[1].err)

    def test_one_that_clears_its_environment_is_staged(self):
        for who in ("0", "1", "0 1"):
            with self.subTest(who=who):
                self.compare_apart(mpiexec(2, "/usr/bin/python3", "-c", CLEARED, PNETCDF), ["caching"], env={"WHO": who})


class OtherLibraries(setups.SetupCase):
    def test_a_program_with_an_mpi_of_its_own_is_left_alone(self):
        outcomes = self.compare([setups.program("own_mpi")], ["caching"], must_be_staged=False)
        self.assertIn("the program brings its own MPI", outcomes[1].err)

    def test_another_pnetcdf_is_left_alone(self):
        outcomes = self.compare(mpiexec(1, setups.program("other_pnetcdf")), ["caching"], must_be_staged=False)
        self.assertIn("PnetCDF 1.99.0", outcomes[1].err)
        self.assertIn("nothing was staged", outcomes[1].err)

    def rename_pnetcdf(self, *users):
        """A copy of PnetCDF under the name of an I/O library, and copies of `users` that need it. Returns their folder."""
        folder, (old, new) = self.make("renamed"), (b"libpnetcdf.so.", b"libparaioo.so.")
        listed = subprocess.run(["ldd", WRITER], check=True, capture_output=True, text=True).stdout
        pnetcdf = re.search(r"=> (\S*/libpnetcdf\.so\S*)", listed).group(1)
        for file in (pnetcdf, *users):
            copy = os.path.join(folder, os.path.basename(file).replace(old.decode(), new.decode()))
            with open(copy, "wb") as output:
                output.write(read_file(file).replace(old, new))
            os.chmod(copy, 0o755)
        return folder

    def test_programs_with_different_pnetcdfs_are_one_job(self):
        other = os.path.join(self.rename_pnetcdf(WRITER), "writer")
        for first, second in ((WRITER, other), (other, WRITER)):
            command = [*mpiexec(1, first, "out.nc"), ":", "-n", "1", second, "out.nc"]
            self.compare_apart(command, ["caching"], must_be_staged=False,
                               env={"LD_LIBRARY_PATH": os.path.dirname(other)})

    def test_a_pnetcdf_under_another_name_is_left_alone(self):
        folder = self.rename_pnetcdf(setups.program("handles"), setups.program("libplugin.so"))
        plugin = [setups.program("plugin_host"), "local", os.path.join(folder, "libplugin.so")]
        for way, command in {"linked": [os.path.join(folder, "handles"), "open_before_close"], "plugin": plugin}.items():
            with self.subTest(way=way):
                outcomes = self.compare_apart(mpiexec(2, *command), ["caching"], must_be_staged=False,
                                              env={"LD_LIBRARY_PATH": folder})
                self.assertRegex(outcomes[1].err, "nothing was staged: the program uses .*/libparaioo.so")

    def test_a_plugin_with_an_mpi_of_its_own_is_left_alone(self):
        for kind in ("wheel", "other_mpi"):
            with self.subTest(kind=kind):
                command = [setups.program("plugin_host"), "local", setups.program(f"{kind}/plugin.so")]
                outcomes = self.compare(command, ["caching"], must_be_staged=False)
                self.assertRegex(outcomes[1].err, f"nothing was staged: the program uses .*/{kind}/libmpi")
                alone = self.run_in("alone", command, env={"LD_PRELOAD": NESSIE_LIBRARY})
                self.assert_same(outcomes[0], alone, must_be_staged=False)
                self.run_command(["rm", "-rf", *(self.path(label) for label in ("native", "caching", "alone"))])

    def test_each_pnetcdf_in_which_functions_are_looked_up_keeps_to_itself(self):
        renamed = os.path.join(self.rename_pnetcdf(), PNETCDF.replace("pnetcdf", "paraioo"))
        for staged, libraries in {True: [PNETCDF, renamed, PNETCDF], False: [renamed, PNETCDF, renamed]}.items():
            with self.subTest(staged=staged):
                outcomes = self.compare_apart(looking_up(*libraries), ["caching"], must_be_staged=staged)
                self.assertEqual(outcomes[0].code, 0, outcomes[0].err)
                self.assertEqual(outcomes[1].was_staged, staged, outcomes[1].err)
                self.assertIn("the program has another PnetCDF as well, whose files are native", outcomes[1].err)

    def test_each_plugin_has_the_pnetcdf_that_it_brings(self):
        ours, folder = setups.program("libplugin.so"), self.rename_pnetcdf(setups.program("libplugin.so"))
        other = os.path.join(folder, "libplugin.so")
        for staged, plugins in {True: [ours, other], False: [other, ours]}.items():
            with self.subTest(staged=staged):
                outcomes = self.compare_apart(mpiexec(1, setups.program("plugin_host"), "local", *plugins), ["caching"],
                                              must_be_staged=staged, env={"LD_LIBRARY_PATH": folder})
                self.assertEqual(outcomes[0].code, 0, outcomes[0].err)
                self.assertEqual(outcomes[1].was_staged, staged, outcomes[1].err)
                self.assertIn("the program has another PnetCDF as well, whose files are native", outcomes[1].err)

    def test_a_plugin_in_the_place_of_one_that_was_closed_has_its_own(self):
        ours, folder = setups.program("libplugin.so"), self.rename_pnetcdf(setups.program("libplugin.so"))
        plugins = [ours, os.path.join(folder, "libplugin.so")]
        outcomes = self.compare(mpiexec(1, setups.program("plugin_host"), "turns", "libmpi.so.40", *plugins), ["caching"],
                                env={"LD_LIBRARY_PATH": folder})
        self.assertEqual(outcomes[0].code, 0, outcomes[0].err)
        self.assertIn("the program has another PnetCDF as well, whose files are native", outcomes[1].err)

    @unittest.skipUnless(ctypes.util.find_library("mpich") and os.path.exists("/usr/bin/mpicc.mpich"), "MPICH is not installed")
    def test_a_program_of_another_mpi_that_does_not_use_pnetcdf_is_not_touched(self):
        outcomes = self.compare(["mpiexec.mpich", "-n", "2", "hostname"], ["caching"], must_be_staged=False)
        self.assertEqual(outcomes[1].code, 0)


if __name__ == "__main__":
    setups.main()
