# SPDX-License-Identifier: BSD-3-Clause
"""What happens when two jobs write one file, when one is read, renamed, removed or replaced while servers have it, when
there are thousands of files, or a million small writes, and when clocks jump: what docs/running.md says."""
import json
import os
import re
import shutil
import signal

import setups
from harness import BUILD, NESSIE, mpiexec, wait_until

HAPPENS = setups.program("happens")
ROMIO = {"OMPI_MCA_io": "romio321"}   # as the servers have it
CACHING = ["-m", "caching"]
LOGGED = [*CACHING, "--durability", "logged"]
CLOCK = setups.program("libclock_jumps.so")
LONG_S = 400
MOST_MORE_KIB = 96 << 10   # buffers that servers map


def job(*arguments, processes=2):
    return mpiexec(processes, HAPPENS, *arguments)


def run(command, *options):
    return [NESSIE, "run", "-M", "64M", *options, "--", *command]


def script(*commands):
    """A job script: each of the commands, a line of the shell's or words, must succeed."""
    return ["sh", "-ec", "\n".join(each if isinstance(each, str) else " ".join(each) for each in commands)]


def memory_of(outcome):
    """The most that the program's first process had, in KiB."""
    return int(re.search(r"memory (\d+) KiB", outcome.err)[1])


class Happens(setups.SetupCase):
    def natively(self, command, label="native", **options):
        outcome = self.native(command, label, env=ROMIO, **options)
        self.assertEqual(outcome.code, 0, outcome.err)
        return outcome

    def staged_as(self, native, label, command, must_be_staged=True, **options):
        staged = self.run_in(label, command, **options)
        self.assert_same(native, staged, must_be_staged)
        return staged

    # --- two jobs, one file ---------------------------------------------------------------------------------------
    def test_jobs_write_one_file_one_after_the_other(self):
        """Creates it, changes it, creates over it, and changes that, each with servers of its own."""
        steps = [job("create", "out.nc", "6"), job("half", "out.nc", "1"), job("create", "out.nc", "2"),
                 job("half", "out.nc", "0"), job("sum", "out.nc")]
        native = self.natively(script(*steps))
        for label, options in {"memory": CACHING, "logged": LOGGED}.items():
            self.staged_as(native, label, script(*(run(step, *options) for step in steps)))

    def at_once(self, *commands):
        return script(*(" ".join(command) + f" & p{i}=$!" for i, command in enumerate(commands)),
                      *(f"wait $p{i}" for i in range(len(commands))))

    def test_jobs_write_one_file_at_once(self):
        """Each its rows and records of it: none is lost, with servers in common and each with its own."""
        begin, halves = job("create", "out.nc", "4"), [job("half", "out.nc", str(i)) for i in range(2)]
        native = self.natively(script(begin, *halves))
        self.staged_as(native, "own", script(begin, *self.at_once(*(run(half) for half in halves))[2:]))
        self.staged_as(native, "common", run(script(begin, *self.at_once(*halves)[2:])))

    def test_jobs_create_one_file_at_once(self):
        create = job("create", "out.nc", "4")
        native = self.natively(create)
        for i in range(3):
            self.staged_as(native, f"own{i}", self.at_once(run(create), run(create)))
            self.staged_as(native, f"common{i}", run(self.at_once(create, create)))

    # --- readers ----------------------------------------------------------------------------------------------------
    def test_a_file_is_read_while_it_drains(self):
        """By tools, by Python, and by another staged program, each at once after its close."""
        python = "python3 -c \"print(sum(open('out.nc', 'rb').read()))\""
        readers = ["ncmpidump -h out.nc > header", "md5sum out.nc > sum", f"{python} > python",
                   " ".join(job("sum", "out.nc", processes=1)) + " > staged"]
        command = script(job("create", "out.nc", "48"), *self.at_once(*([each] for each in readers))[2:])
        native = self.natively(command)
        for options in (CACHING, LOGGED):
            self.staged_as(native, options[-1], run(command, *options), env={"NESSIE_CLOSE": "early"})

    # --- more than memory ---------------------------------------------------------------------------------------------
    def test_a_file_is_larger_than_the_memory_for_its_second_copy(self):
        """What is in the file needs none."""
        native = self.natively(job("create", "out.nc", "160"))
        staged = self.run_in("replicated", [NESSIE, "run", "-s", "2", "-M", "64M", "--durability", "replicated", "--",
                                            *job("create", "out.nc", "160")])
        self.assert_same(native, staged)
        self.assertNotIn("cannot keep the second copy", staged.err)

    # --- names that change ------------------------------------------------------------------------------------------
    def compare_moved(self, options, places=("open", "closed")):
        for way in ("renamed", "removed", "replaced"):
            for place in places:
                with self.subTest(way=way, place=place):
                    label = f"{way}.{place}"
                    native = self.natively(job("moved", way, place), f"native.{label}")
                    self.staged_as(native, f"staged.{label}", run(job("moved", way, place), *options),
                                   env={"NESSIE_CLOSE": "early"})
                    self.run_command(["rm", "-rf", self.path(f"native.{label}"), self.path(f"staged.{label}")])

    def test_a_file_is_renamed_removed_or_replaced_while_servers_have_it(self):
        self.compare_moved(["-s", "2", *CACHING])

    def test_and_its_files_are_logged(self):
        self.compare_moved(LOGGED, ["open"])

    def test_and_then_its_server_is_killed(self):
        for way in ("renamed", "removed", "replaced"):
            with self.subTest(way=way):
                native = self.natively(job("moved", way, "open"), f"native.{way}")
                logs = self.make(f"logs.{way}")
                folder = self.make(f"staged.{way}")
                run_job = self.job(run(job("moved", way, "killed"), *LOGGED, "--log", logs), cwd=folder,
                                   errors="backslashreplace")
                ready = os.path.join(folder, "ready")
                wait_until(lambda: os.path.exists(ready) or run_job.process.poll() is not None, "the program to wait")
                os.kill(run_job.wait_for("nessied")[0].pid, signal.SIGKILL)
                with open(os.path.join(folder, "go"), "w", encoding="utf-8"):
                    pass
                self.assert_same(native, setups.Outcome(folder, *run_job.finish()))
                self.assertEqual(os.listdir(logs), [])

    # --- many files ---------------------------------------------------------------------------------------------------
    def compare_many(self, files, at_once):
        command = mpiexec(2, setups.program("small_files"), str(files))
        native = self.natively(command, "native.small", deadline_s=LONG_S)
        for options in (CACHING, LOGGED):
            self.staged_as(native, f"small.{options[-1]}", run(command, *options), deadline_s=LONG_S)
        native = self.natively(mpiexec(1, setups.program("limits"), "many", str(at_once)), "native.many")
        self.staged_as(native, "many", run(mpiexec(1, setups.program("limits"), "many", str(at_once)), *CACHING))

    def test_hundreds_of_files_one_after_the_other_and_open_at_once(self):
        self.compare_many(200, 300)

    @setups.sweep
    def test_ten_thousand_files(self):
        """Native PnetCDF has no more than 1024 open at once."""
        self.compare_many(10000, 1000)

    # --- many small writes --------------------------------------------------------------------------------------------
    def compare_small(self, writes, *kinds):
        """Servers keep to their memory, and the program takes no more of it than natively, and buffers."""
        for kind in kinds:
            command = job("small", str(writes), kind)
            native = self.natively(command, f"native.{kind}")
            for options in (CACHING, LOGGED):
                with self.subTest(kind=kind, mode=options[-1]):
                    label = f"{kind}.{options[-1]}"
                    summary = self.path(f"{label}.json")
                    staged = self.staged_as(native, label, run(command, *options, "--json", summary))
                    with open(summary, encoding="utf-8") as file:
                        self.assertLessEqual(json.load(file)["memory_high_bytes"], 64 << 20)
                    self.assertLess(memory_of(staged), memory_of(native) + MOST_MORE_KIB, staged.err)

    def test_thousands_of_small_writes(self):
        self.compare_small(5000, "put", "iput", "records")

    @setups.sweep
    def test_a_million_small_writes(self):
        self.compare_small(500000, "put", "iput", "records")

    # --- clocks -------------------------------------------------------------------------------------------------------
    def with_clock(self, folder):
        """A folder of Nessie's programs whose servers, too, have a wall clock that jumps."""
        os.makedirs(f"{folder}/bin")
        shutil.copy(NESSIE, f"{folder}/bin/nessie")
        for name in ("lib", "libexec"):
            os.symlink(os.path.join(BUILD, name), f"{folder}/{name}")
        for name in os.listdir(os.path.join(BUILD, "bin")):
            if name not in ("nessie", "nessied"):
                os.symlink(os.path.join(BUILD, "bin", name), f"{folder}/bin/{name}")
        with open(f"{folder}/bin/nessied", "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nLD_PRELOAD={CLOCK} exec {BUILD}/bin/nessied \"$@\"\n")
        os.chmod(f"{folder}/bin/nessied", 0o755)
        return f"{folder}/bin/nessie"

    @setups.unsanitized("its run time must come first")
    def test_the_wall_clock_jumps_in_servers_and_programs(self):
        nessie = self.with_clock(self.path("jumps"))
        command = script(job("create", "out.nc", "16"), job("small", "2000", "records"))
        native = self.natively(command)
        for options in (["-s", "2", *CACHING], LOGGED, ["-s", "2", "--durability", "replicated"]):
            self.staged_as(native, options[-1], [nessie, *run(command, *options)[1:]],
                           env={"LD_PRELOAD": CLOCK, "NESSIE_STAGING_TIMEOUT": "5s"})


if __name__ == "__main__":
    setups.main()
