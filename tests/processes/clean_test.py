# SPDX-License-Identifier: BSD-3-Clause
"""nessie clean: what runs that were killed, janitor included, left behind goes; what lives is untouched."""
import contextlib
import json
import os
import re
import signal
import unittest

from harness import BUILD, NESSIE, ProcessTestCase, checkpoint, compile_job, kill_at_once, marked_processes, read_file, \
    unsanitized, wait_until

SPLITTER = os.path.join(BUILD, "lib", "libcommsplitter.so")
STAYS = ["sh", "-c", "echo ready; exec sleep 300"]


class Clean(ProcessTestCase):
    def clean(self, *options, expected_code=0):
        """What it says of the folders of this test's runs; others' may be there."""
        code, out, err = self.run_command([NESSIE, "clean", "--json", *options])
        self.assertEqual((code, err), (expected_code, ""), out)
        return json.loads(out)

    def start(self, command=STAYS, **options):
        """A run whose program has said the first line."""
        job = self.start_nessie_run(command, **options)
        self.assertTrue(job.process.stdout.readline())
        return job

    def folders_of(self, job):
        """Those that its server was told of: a private one, and one in memory, if there is room."""
        words = " ".join(word for process in marked_processes(self.mark) if process.name == "nessied"
                         and self.is_of(process, job) for word in process.words)
        return set(re.findall(r"\S*/nessie-\w{6}(?= |$)", words))

    @staticmethod
    def is_of(process, job, name=None):
        """Whether the run started it, and, if that is asked, it calls itself so."""
        try:
            text = read_file(f"/proc/{process.pid}/stat").decode(errors="replace")
        except OSError:
            return False   # it has ended
        own_name, rest = text[text.index("(") + 1:].rsplit(") ", 1)
        return int(rest.split()[1]) == job.process.pid and name in (None, own_name)

    @staticmethod
    def stop(pid):
        """Returns when it has stopped: from then on the end of its run does not end it."""
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: read_file(f"/proc/{pid}/stat").rsplit(b") ", 1)[1].startswith(b"T"), f"{pid} to stop")

    @contextlib.contextmanager
    def kept_alive(self, servers):
        """They do not notice that their run ends: the pipe that tells them has another writer."""
        writers = [os.open(f"/proc/{server.pid}/fd/0", os.O_WRONLY) for server in servers]
        yield
        for writer in writers:
            os.close(writer)

    def processes_of(self, folders):
        """All that carry the test's mark and the name of one of the folders: the run's servers and its program."""
        def names(process):
            try:
                text = read_file(f"/proc/{process.pid}/cmdline") + read_file(f"/proc/{process.pid}/environ")
            except OSError:
                return False   # it has ended
            return any(os.path.basename(folder).encode() in text for folder in folders)
        return [process for process in marked_processes(self.mark) if names(process)]

    def janitor_of(self, job):
        """Waits for it: it may not have taken its name yet."""
        def found():
            return [process.pid for process in marked_processes(self.mark) if self.is_of(process, job, "nessie-janitor")]
        return wait_until(found, "the janitor")[0]

    def kill_all_of(self, job, folders, spared=()):
        """Nobody is left to tidy up, or to write what it has."""
        victims = {self.janitor_of(job), job.process.pid, *(process.pid for process in self.processes_of(folders))}
        victims -= set(spared)
        kill_at_once(lambda: victims, {job.process.pid})
        job.process.wait()
        wait_until(lambda: not {process.pid for process in marked_processes(self.mark)} & victims, "their end")

    def test_with_nothing_to_do_says_so(self):
        self.assertEqual([folder for folder in self.clean()["removed"] if self.runtime in folder["path"]], [])

    def test_removes_what_a_run_left_that_was_killed_with_its_janitor_and_servers(self):
        job = self.start(checkpoint(2, self.path("s3d"), steps=10000, compute_ms=20))
        folders = self.folders_of(job)
        self.assertTrue(folders)
        self.kill_all_of(job, folders)
        self.assertTrue(all(os.path.isdir(folder) for folder in folders))
        would = {folder["path"] for folder in self.clean("--dry-run")["removed"]}
        self.assertLessEqual(folders, would)
        self.assertTrue(all(os.path.isdir(folder) for folder in folders))
        done = self.clean()
        self.assertLessEqual(folders, {folder["path"] for folder in done["removed"]})
        self.assertGreater(done["bytes"], 0)
        self.assertFalse(any(os.path.exists(folder) for folder in folders))
        self.assert_nothing_left()

    def test_names_what_killed_servers_had_not_written(self):
        job = self.start([compile_job(self.folder), "linger", "out.nc"], options=["-m", "caching"])
        self.kill_all_of(job, self.folders_of(job))
        for options in (["--dry-run"], []):
            lost = [loss for loss in self.clean(*options)["lost"] if loss["path"] == self.path("out.nc")]
            self.assertEqual(len(lost), 1, lost)
            self.assertGreater(lost[0]["bytes_acknowledged"], lost[0]["bytes_in_file"])
        self.assert_nothing_left()

    def test_leaves_a_run_alone_that_lives(self):
        living, dead = self.start(), self.start()
        folders, dead_folders = self.folders_of(living), self.folders_of(dead)
        self.kill_all_of(dead, dead_folders)
        before = {process.pid for process in self.processes_of(folders)}
        done = self.clean()
        self.assertLessEqual(dead_folders, {folder["path"] for folder in done["removed"]})
        self.assertTrue(all(os.path.isdir(folder) for folder in folders))
        self.assertEqual({process.pid for process in self.processes_of(folders)}, before)
        os.kill(living.process.pid, signal.SIGTERM)
        self.assertEqual(living.finish()[0], 143)
        self.assert_nothing_left()

    def test_leaves_a_run_to_its_janitor_that_has_one(self):
        job = self.start()
        folders = self.folders_of(job)
        with self.kept_alive(job.descendants("nessied")):   # so that the janitor waits for them
            os.kill(job.process.pid, signal.SIGKILL)
            job.process.wait()
            done = self.clean()
            self.assertEqual([each for each in done["removed"] + done["left"] if each["path"] in folders], [])
            self.assertTrue(all(os.path.isdir(folder) for folder in folders))
        self.assert_nothing_left()

    def test_ends_a_server_that_nobody_waits_for(self):
        job = self.start()
        folders = self.folders_of(job)
        servers = job.descendants("nessied")
        pids = {server.pid for server in servers}
        with self.kept_alive(servers):
            self.kill_all_of(job, folders, spared=pids)
            would = self.clean("--dry-run")
            self.assertLessEqual(pids, {each["pid"] for each in would["ended"]})
            self.assertLessEqual(pids, {process.pid for process in self.processes_of(folders)})
            done = self.clean()
        self.assertLessEqual(pids, {each["pid"] for each in done["ended"]})
        self.assertLessEqual(folders, {folder["path"] for folder in done["removed"]})
        self.assert_nothing_left()

    def test_leaves_what_a_program_still_uses_and_says_who(self):
        job = self.start()
        folders = self.folders_of(job)
        program = job.wait_for("sleep")[0]
        self.stop(program.pid)
        self.kill_all_of(job, folders, spared=(program.pid,))
        left = {each["path"]: each["why"] for each in self.clean()["left"]}
        kept = [folder for folder in folders if folder in left]
        self.assertTrue(kept)
        self.assertIn(f"sleep (process {program.pid})", left[kept[0]])
        os.kill(program.pid, signal.SIGKILL)
        wait_until(lambda: not self.processes_of(folders) or None, "its end")
        self.clean()
        self.assertFalse(any(os.path.exists(folder) for folder in folders))
        self.assert_nothing_left()

    @unsanitized("the program is not linked to what CommSplitter would be preloaded with")
    def test_removes_what_a_job_of_several_programs_left_that_was_killed(self):
        def folders():
            return {os.path.join("/dev/shm", name) for name in os.listdir("/dev/shm") if name.startswith("nessie-split-")}
        before = folders()
        parts = [checkpoint(1, self.path(name), steps=10000, compute_ms=20)[1:] for name in ("one", "two")]
        self.job(["mpiexec", "-x", f"LD_PRELOAD={SPLITTER}", *parts[0], ":", "-x", f"LD_PRELOAD={SPLITTER}", *parts[1]])
        wait_until(lambda: len(folders() - before) == 2, "the folders of two programs")
        ours = folders() - before
        self.assertEqual({each["path"] for each in self.clean()["removed"]} & ours, set())
        self.kill_marked()
        wait_until(lambda: not marked_processes(self.mark), "the end of the job")
        self.assertEqual(folders() & ours, ours)
        self.assertLessEqual(ours, {each["path"] for each in self.clean()["removed"]})
        self.assertEqual(folders() & ours, set())

    def logged_run(self, script):
        """One that was killed after it had done that, and written the file `done`. Returns the folder of its logs."""
        os.mkdir(self.path("logs"))
        job = self.start_nessie_run(["sh", "-c", f"{script}; touch done; exec sleep 300"],
                                    ["--durability", "logged", "--log", self.path("logs")], env={"NESSIE_CLOSE": "durable"})
        wait_until(lambda: os.path.exists(self.path("done")), "the program")
        self.kill_all_of(job, self.folders_of(job))
        return self.path(os.path.join("logs", os.listdir(self.path("logs"))[0]))

    def test_removes_logs_of_which_all_is_in_the_files(self):
        log = self.logged_run(" ".join(checkpoint(1, self.path("s3d"))))
        self.assertTrue(os.path.exists(f"{log}/server.0/lock"))
        self.assertIn(log, {each["path"] for each in self.clean("--dry-run")["removed"]})
        self.assertTrue(os.path.exists(f"{log}/server.0/lock"))
        self.assertIn(log, {each["path"] for each in self.clean()["removed"]})
        self.assertFalse(os.path.exists(log))
        self.assert_nothing_left()

    def test_names_logs_with_data_and_what_to_do(self):
        log = self.logged_run(f"{compile_job(self.folder)} linger out.nc > said & until grep -q . said; do sleep 0.05; done")
        segment = read_file(f"{log}/server.0/log.0")
        for options in ([], [self.path("logs")]):
            left = {each["path"]: each["why"] for each in self.clean(*options)["left"]}
            self.assertIn("data of 1 file that are not in the files: `nessie recover", left[log])
            self.assertEqual(read_file(f"{log}/server.0/log.0"), segment)
        self.assertEqual(self.run_command([NESSIE, "recover", log])[0], 0)
        self.assertFalse(os.path.exists(log))

    def test_removes_empty_logs_and_what_dead_servers_have_spilled(self):
        os.mkdir(self.path("logs"))
        job = self.start(options=["--durability", "logged", "--log", self.path("logs"), "--spill", self.path("spill")])
        living = {self.path(f"{name}/{each}") for name in ("logs", "spill") for each in os.listdir(self.path(name))}
        self.assertEqual(len(living), 2)
        dead = {self.path("nessie-log.abc123"), self.path("spill/nessie-spill-abc123")}
        for folder in dead:
            os.mkdir(folder, 0o700)
        with open(self.path("spill/nessie-spill-abc123/log.0"), "w"):
            pass
        removed = {each["path"] for each in self.clean(self.path("logs"), self.path("spill"))["removed"]}
        self.assertLessEqual(dead, removed)
        self.assertEqual(living & removed, set())
        self.assertTrue(all(os.path.isdir(folder) for folder in living))
        os.kill(job.process.pid, signal.SIGTERM)
        job.finish()
        self.assert_nothing_left()

    def test_leaves_what_only_looks_like_a_runs_folder(self):
        for name in ("nessie-abc123", "nessie-1000", "another"):
            os.mkdir(os.path.join(self.runtime, name))
        for name in ("nessie-abc123/something", "another/run.lock"):
            with open(os.path.join(self.runtime, name), "w"):
                pass
        self.clean()
        self.assertEqual(sorted(os.listdir(self.runtime)), ["another", "nessie-1000", "nessie-abc123"])

    def test_removes_the_empty_folder_of_a_run_that_was_killed_at_once(self):
        folder = os.path.join(self.runtime, "nessie-abc123")
        os.mkdir(folder)
        self.assertIn(folder, [each["path"] for each in self.clean("--dry-run")["removed"]])
        self.assertTrue(os.path.exists(folder))
        self.assertIn(folder, [each["path"] for each in self.clean()["removed"]])
        self.assertEqual(os.listdir(self.runtime), [])

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a folder away")
    def test_leaves_what_is_another_users(self):
        job = self.start()
        folders = self.folders_of(job)
        self.kill_all_of(job, folders)
        for folder in folders:
            os.chown(folder, 65534, 65534)
        self.assertEqual([each for each in self.clean()["removed"] if each["path"] in folders], [])
        for folder in folders:
            os.chown(folder, 0, 0)
        self.clean()
        self.assert_nothing_left()

    def test_for_people_says_what_went(self):
        job = self.start()
        folders = self.folders_of(job)
        self.kill_all_of(job, folders)
        code, out, err = self.run_command([NESSIE, "clean"])
        self.assertEqual((code, err), (0, ""))
        for folder in folders:
            self.assertRegex(out, rf"removed {folder} \([0-9.]+ \w+\)\n")
        self.assertRegex(out, r"\nremoved \d+ folders?, [0-9.]+ \w+, and ended 0 servers\n$")


if __name__ == "__main__":
    unittest.main()
