# SPDX-License-Identifier: BSD-3-Clause
"""A kill at every step: each process of a small run is killed just before each of its calls that others can see."""
import os
import random
import re
import shutil
import subprocess
import unittest

from counting import Counting, build_library
from harness import NESSIE, SANITIZER, ProcessTestCase, marked_processes, mpiexec, read_file, unsanitized, wait_until

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "steps")
SHARD = os.environ.get("NESSIE_TEST_SWEEP")   # I/N: every Nth step from the Ith on; unset: a sample
ONE = os.environ.get("NESSIE_TEST_STEP")      # one case, as a failing one prints it
SEED = int(os.environ.get("NESSIE_TEST_SEED", "1"))
SAMPLE = 1                                    # steps of each setup
FIRSTS = 3                                    # steps at which a server is killed whose follower is
DEADLINE_S = 40
DATA_LOST = 74
FILES = ("renamed.nc", "records.nc")
KEPT = ("logged", "replicated", "durable")
# Who is killed, how files are kept, and how many servers there are. An agent is there with --mpmd. "again": the server
# that takes the place of one that was killed, at several of its steps.
SETUPS = [("server 0", "logged", 1), ("server 0", "logged", 2), ("server 1", "logged", 2),
          ("server 0", "replicated", 2), ("server 1", "replicated", 2),
          ("server 0", "durable", 1), ("server 1", "durable", 2),
          ("server 0 again", "logged", 1), ("server 1 again", "replicated", 2), ("server 0 again", "durable", 2),
          ("server 0", "memory", 1), ("server 1", "memory", 2),
          ("rank 0", "logged", 1), ("rank 1", "replicated", 2), ("rank 0", "memory", 2),
          ("agent", "logged", 1), ("run", "logged", 1), ("run", "replicated", 2), ("run", "durable", 1)]


def words_of(role):
    """By which the library knows who is counted."""
    who, index, again = (role + "  ").split(" ")[:3]
    return {"server": ("nessied", "staging.restarts=1", "--set") if again else ("nessied", index, "--index", "staging.restarts="),
            "rank": ("program", "", "", "", f"OMPI_COMM_WORLD_RANK={index}"),
            "agent": ("nessie", "agent"),
            "run": ("nessie", "run")}[who]


class Steps(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.program, self.library = self.path("program"), self.path("libsteps.so")
        flags = ["-O1", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["mpicc.openmpi", *flags, *SANITIZER, "-o", self.program, f"{SOURCES}/program.c", "-lpnetcdf"],
                       check=True)
        build_library(self.library)
        os.mkdir(self.path("native"))
        code, out, err = self.run_command(mpiexec(2, self.program, self.path("native")))
        self.assertEqual(code, 0, out + err)
        self.run_folders = set()

    # --- one run ------------------------------------------------------------------------------------------------------

    def run_one(self, setup, kill_at=0):
        """Runs the program, and kills who is meant before step `kill_at`; returns how many steps there were."""
        role, durability, servers = setup
        role, _, first = role.partition(" again ")
        self.files, self.logs = self.path("files"), self.path("logs")
        for folder in (self.files, self.logs):
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
        countings = [Counting(self.path("first"), words_of(role), int(first) if first else kill_at)]
        if first:
            countings.append(Counting(self.path("second"), words_of(f"{role} again"), kill_at))
        job = self.start_nessie_run(
            mpiexec(2, self.program, self.files),
            ["--durability", durability, "--servers", str(servers), "--log", self.logs,
             *(["--mpmd"] if role == "agent" else [])],
            env={"LD_PRELOAD": self.library, "NESSIE_STEPS_LIBRARY": self.library, 
                 "NESSIE_STEPS_FILES": ":".join(each.path for each in countings),
                 "NESSIE_RUN_START_TIMEOUT": "5s"})
        self.code, self.out, self.err = job.finish(DEADLINE_S)
        steps = countings[-1].steps()
        self.was_killed = 0 < kill_at <= steps
        for each in countings:
            self.run_folders |= each.folders()
        self.before = countings[-1].call(kill_at) if self.was_killed else ""
        self.check_outcome(role.split()[0] if self.was_killed or first else "none", durability)
        self.clean(role)
        return steps

    def check_outcome(self, killed, durability):
        if killed == "server" and re.search("staging server .* while it started", self.err):
            self.assertEqual((self.code, os.listdir(self.files)), (1, []), "the program has not begun")
        elif killed == "none" or (killed == "server" and durability in KEPT):
            self.assertEqual(self.code, 0, "nobody notices")
            self.check_all_is_there()
        elif killed == "server":
            self.check_loss_is_told()
        elif self.code != 0:
            self.check_acknowledged()
        else:
            self.assertEqual(killed, "agent", "its death is told")
            self.check_all_is_there()

    def check_all_is_there(self):
        for name in ("acknowledged", *FILES):
            self.assertTrue(read_file(self.path(f"native/{name}")) == read_file(f"{self.files}/{name}"),
                            f"{name} differs")

    def check_loss_is_told(self):
        """What does not come to the files is named. The program may have been told, and have failed, before its end."""
        if self.code == 0:
            return self.check_all_is_there()
        code, _, err = self.run_command([self.program, self.files, str(self.acknowledged())])
        if code != 0:
            self.assertRegex(self.err, r"nessie: error: \S*\.nc: (.* did not reach the file|.* any of it may be damaged)", err)
            self.assertIn(self.code, (1, DATA_LOST), err)
        return None

    def check_acknowledged(self):
        """All that was acknowledged is in the files, or comes there from the logs."""
        wait_until(lambda: not self.running(), f"the end of {self.running()}", DEADLINE_S)
        for log in os.listdir(self.logs):
            code, out, err = self.run_command([NESSIE, "recover", f"{self.logs}/{log}"])
            self.assertEqual(code, 0, f"nessie recover: {out}{err}")
        lines = self.acknowledged()
        code, out, err = self.run_command([self.program, self.files, str(lines)])
        self.assertEqual(code, 0, f"{lines} lines were acknowledged: {out}{err}")

    def acknowledged(self):
        path = f"{self.files}/acknowledged"
        return read_file(path).count(b"\n") if os.path.exists(path) else 0

    def clean(self, role):
        """Only `nessie run` itself and an agent may leave something, for `nessie clean`."""
        wait_until(lambda: not self.running(), f"the end of {self.running()}", DEADLINE_S)
        if role in ("run", "agent") and self.was_killed:
            code, out, err = self.run_command([NESSIE, "clean", self.logs])
            self.assertEqual(code, 0, out + err)
        self.assertEqual(os.listdir(self.logs), [])
        wait_until(lambda: not os.listdir(self.runtime), f"{self.runtime} to be empty: {os.listdir(self.runtime)}", 30)

    def running(self):
        return marked_processes(self.mark)

    # --- many ---------------------------------------------------------------------------------------------------------

    def check_one(self, setup, step):
        """True: somebody was killed."""
        role, durability, servers = setup
        case = f"{role}, {durability}, {servers}, {step}"
        self.code, self.out, self.err, self.before, self.was_killed = None, "", "", "", False
        with self.subTest(case):
            try:
                self.run_one(setup, step)
            except AssertionError as error:
                self.kill_marked()
                shutil.rmtree(self.runtime, ignore_errors=True)
                os.mkdir(self.runtime, 0o700)
                said = (f"NESSIE_TEST_STEP='{case}' repeats it: {role} killed before step {step}, {self.before}: "
                        f"exit {self.code}: {error}\n{self.out}{self.err}")
                print(said, flush=True)   # the others may take long
                raise AssertionError(said) from None
        return self.was_killed

    def check_setup(self, setup, choose, choose_first):
        """How many were killed."""
        role, durability, servers = setup
        if not role.endswith(" again"):
            return self.check_steps(setup, choose)
        with self.subTest(setup):
            steps = self.run_one((role.removesuffix(" again"), durability, servers))
            return sum(self.check_steps((f"{role} {first}", durability, servers), choose)
                       for first in choose_first(steps))
        return 0

    def check_steps(self, setup, choose):
        with self.subTest(setup):
            steps = self.run_one(setup)
            chosen = choose(steps)
            killed = sum(self.check_one(setup, step) for step in chosen)
            print(f"{setup}: {steps} steps, {killed} of {len(chosen)} killed", flush=True)
            wait_until(lambda: not self.abandoned(), f"{self.abandoned()} to go", 30)
            return killed
        return 0

    def abandoned(self):
        """Those whose runs have ended."""
        with open("/proc/locks") as locks:
            locked = {int(line.split()[-3].rpartition(":")[2]) for line in locks}
        found = [folder for folder in self.run_folders if os.path.exists(f"{folder}/run.lock")]
        return [folder for folder in found if os.stat(f"{folder}/run.lock").st_ino not in locked]

    @unsanitized("its own library must come first")
    @unittest.skipIf(SHARD or ONE, "runs in ./dev test")
    def test_of_a_kill_at_some_steps(self):
        chance = random.Random(SEED)
        killed = sum(self.check_setup(setup,
                                      lambda steps: chance.sample(range(1, steps + 1), min(SAMPLE, steps)),
                                      lambda steps: [chance.randint(steps // 4, steps * 3 // 4)])
                     for setup in SETUPS)
        self.assertGreater(killed, len(SETUPS) // 2)

    @unittest.skipUnless(SHARD, "runs in ./dev test-all")
    def test_of_a_kill_at_every_step(self):
        shard, shards = map(int, SHARD.split("/"))
        firsts = [(FIRSTS * shard + i + 1) / (FIRSTS * shards + 1) for i in range(FIRSTS)]
        killed = sum(self.check_setup(setup, lambda steps: range(1 + shard, steps + 1, shards),
                                      lambda steps: [int(steps * part) for part in firsts])
                     for setup in SETUPS)
        self.assertGreater(killed, len(SETUPS))

    @unittest.skipUnless(ONE, "NESSIE_TEST_STEP says which")
    def test_of_a_kill_at_one_step(self):
        role, durability, servers, step = ONE.split(", ")
        self.assertTrue(self.check_one((role, durability, int(servers)), int(step)))


if __name__ == "__main__":
    unittest.main()
