# SPDX-License-Identifier: BSD-3-Clause
"""nessie run: a staging server that dies and has a log is started again where it was."""
import json
import os
import shlex
import shutil
import signal
import unittest

from harness import BUILD, NESSIE, ProcessTestCase, checkpoint, mpiexec, read_file, wait_until

AGAIN = "it was started again and goes on from its log"


class Restart(ProcessTestCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("logs"))
        code, out, err = self.run_command(checkpoint(2, self.path("native"), steps=1))
        self.assertEqual(code, 0, out + err)

    def start(self, command, *options, durability="logged", **job_options):
        return self.start_nessie_run(command, ["--durability", durability, "--log", self.path("logs"), "--json",
                                               self.path("summary.json"), *options], **job_options)

    def start_waiting(self, *options, then="", **job_options):
        """A program that writes a file, or does something else, once `go` is there; its servers listen."""
        then = then or " ".join(checkpoint(2, self.path("staged"), steps=1))
        script = f"echo $NESSIE_SERVERS > urls; until [ -e go ]; do sleep 0.02; done; {then}"
        job = self.start(["sh", "-c", script], *options, **job_options)
        wait_until(lambda: os.path.exists(self.path("urls")), "the program")
        return job

    def let_go(self):
        with open(self.path("go"), "w", encoding="utf-8"):
            pass

    def go(self, job):
        self.let_go()
        return job.finish()

    def log_of(self, index):
        """What a server has that keeps a log; for as long as these tests say so."""
        folder, = os.listdir(self.path("logs"))
        return self.path(f"logs/{folder}/server.{index}")

    def server(self, job, index):
        def found():
            return [each for each in job.descendants("nessied") if ["--index", str(index)] == each.words[3:5]]
        return wait_until(found, f"server {index}")[0]

    def kill(self, job, index):
        victim = self.server(job, index)
        os.kill(victim.pid, signal.SIGKILL)
        wait_until(lambda: victim.pid not in [each.pid for each in job.descendants("nessied")], "its end")

    def await_url(self, job, index):
        words = self.server(job, index).words
        url = os.path.join(words[words.index("--run-dir") + 1], f"server.{index}.url")
        wait_until(lambda: os.path.exists(url), url)

    def kill_and_await(self, job, index):
        """It listens, and then its successor."""
        self.await_url(job, index)
        self.kill(job, index)
        self.await_url(job, index)

    def summary(self):
        with open(self.path("summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def assert_written(self, code, out, err):
        self.assertEqual(code, 0, out + err)
        self.assertEqual(read_file(self.path("native.0001.nc")), read_file(self.path("staged.0001.nc")))
        self.assert_nothing_left()
        self.assertEqual(os.listdir(self.path("logs")), [])

    def check_restart(self, job, killed):
        for index in killed:
            os.mkdir(self.log_of(index))
            self.kill_and_await(job, index)
            os.rmdir(self.log_of(index))
        code, out, err = self.go(job)
        self.assert_written(code, out, err)
        for index in killed:
            self.assertIn(f"staging server {index} was killed by signal 9 (Killed); {AGAIN}", err)
            self.assertIn(f"staging server {index} was started again, and went on from its log", err)
        servers = self.summary()["placement"]["servers"]
        self.assertEqual([each["restarts"] for each in servers], [int(each["index"] in killed) for each in servers])

    def test_of_a_server_while_no_file_is_open(self):
        self.check_restart(self.start_waiting(), [0])

    def test_of_one_of_two_servers_and_then_of_the_other(self):
        self.check_restart(self.start_waiting("--servers", "2"), [1, 0])

    def test_at_all_of_its_urls(self):
        self.check_restart(self.start_waiting(env={"NESSIE_STAGING_LISTEN": "shm,tcp",
                                                   "NESSIE_NNTI_TCP_ADDRESS": "127.0.0.1"}), [0])

    def test_of_one_that_has_no_log_as_another_one_has_its_data(self):
        """It is told where the others are."""
        job = self.start_waiting("--servers", "2", durability="replicated")
        self.kill_and_await(job, 1)
        with open(self.path("urls"), encoding="utf-8") as file:
            self.assertIn(f"staging.servers_at={file.read().strip()}", self.server(job, 1).words)
        code, out, err = self.go(job)
        self.assert_written(code, out, err)
        self.assertIn(AGAIN, err)

    def stop_in_drain(self, job, index):
        """Kills one of two servers when the program, and the other server, have ended."""
        victim = self.server(job, index)
        os.kill(victim.pid, signal.SIGSTOP)   # so that the drain does not end
        self.let_go()
        wait_until(lambda: not job.descendants("sh"), "the program's end")
        wait_until(lambda: len(job.descendants("nessied")) == 1, "the other server's end")
        os.kill(victim.pid, signal.SIGKILL)

    def test_while_it_drains(self):
        job = self.start_waiting("--servers", "2", then="exit 0")
        os.mkdir(self.log_of(0))
        self.stop_in_drain(job, 0)
        code, out, err = job.finish()
        self.assertEqual(code, 0, out + err)
        self.assertIn(AGAIN, err)
        self.assertNotIn("did not finish", err)
        self.assertEqual(self.summary()["broken_servers"], [])
        self.assert_nothing_left()

    def programs_of_a_server_that_dies_late(self):
        """Nessie's programs; the first server dies when it has answered that all is in the files, but leaves its log."""
        os.makedirs(self.path("late/bin"))
        shutil.copy(NESSIE, self.path("late/bin/nessie"))
        os.symlink(os.path.join(BUILD, "lib"), self.path("late/lib"))
        with open(self.path("late/bin/nessied"), "w", encoding="utf-8") as file:
            file.write(f"""#!/bin/sh
{shlex.quote(os.path.join(BUILD, "bin", "nessied"))} "$@"
[ -e {self.path("late/died")} ] && exit
touch {self.path("late/died")}
for word; do
  case $last in --run-dir) rm "$word"/server.0.report;; --log) mkdir "$word"/server.0;; esac
  last=$word
done
kill -9 $$
""")
        os.chmod(self.path("late/bin/nessied"), 0o755)
        return self.path("late/bin/nessie")

    def test_after_it_has_answered_that_all_is_in_the_files(self):
        job = self.job([self.programs_of_a_server_that_dies_late(), "run", "--durability", "logged", "--log", self.path("logs"),
                        "--json", self.path("summary.json"), "--", *checkpoint(2, self.path("staged"), steps=1)])
        code, out, err = job.finish()
        self.assert_written(code, out, err)
        self.assertIn(AGAIN, err)
        self.assertEqual(self.summary()["placement"]["servers"][0]["restarts"], 1)

    def test_no_more_of_one_that_dies_again_and_again(self):
        job = self.start_waiting()
        os.mkdir(self.log_of(0))
        for _ in range(6):
            self.kill(job, 0)
        with open(os.path.join(self.log_of(0), "records"), "w", encoding="utf-8"):
            pass
        code, out, err = self.go(job)
        self.assertIn("was killed by signal 9 (Killed), again and again", err)
        self.assertEqual(code, 74, out + err)
        kept = os.path.dirname(self.log_of(0))
        self.assertIn(f"what is not in the files is kept in {kept}: `nessie recover {kept}` puts it there", err)
        self.assertEqual(self.summary()["log"], kept)
        self.assertEqual(self.summary()["placement"]["servers"][0]["restarts"], 5)
        self.assert_nothing_left()

    def test_no_more_of_one_that_does_not_listen_in_time(self):
        job = self.start_waiting(env={"NESSIE_RUN_START_TIMEOUT": "5s"})
        words = self.server(job, 0).words
        url = os.path.join(words[words.index("--run-dir") + 1], "server.0.url")
        os.mkdir(self.log_of(0))
        for _ in range(4):
            self.kill(job, 0)
            successor = self.server(job, 0).pid
            os.kill(successor, signal.SIGSTOP)
            if not os.path.exists(url):
                break
            os.kill(successor, signal.SIGCONT)   # it was faster
        wait_until(lambda: not job.descendants("nessied"), "it to be given up")
        os.rmdir(self.log_of(0))
        code, out, err = self.go(job)
        self.assertIn("did not listen in time when it was started again", err)
        self.assertEqual(code, 0, out + err)   # it had no files
        self.assert_nothing_left()

    def test_not_of_one_without_a_log(self):
        job = self.start_waiting(durability="memory")
        self.kill(job, 0)
        code, out, err = self.go(job)
        self.assertNotIn(AGAIN, err)
        self.assertIn("staging server 0 was killed by signal 9 (Killed)", err)
        self.assertEqual(code, 0, out + err)   # it had no files, and the program went native
        self.assertEqual(read_file(self.path("native.0001.nc")), read_file(self.path("staged.0001.nc")))
        self.assert_nothing_left()
        self.assertEqual(os.listdir(self.path("logs")), [])

    def test_of_one_that_keeps_a_log_though_the_run_asks_for_none(self):
        """As for a single file."""
        job = self.start_waiting(durability="memory")
        words = self.server(job, 0).words
        log = words[words.index("--log") + 1]
        self.assertEqual(os.path.dirname(log), self.path("logs"))
        os.makedirs(log, exist_ok=True)
        self.check_restart(job, [0])

    def test_without_a_log_nothing_is_made_where_it_would_be(self):
        job = self.start_nessie_run(["sh", "-c", "touch urls; until [ -e go ]; do sleep 0.02; done"])
        wait_until(lambda: os.path.exists(self.path("urls")), "the program")
        words = self.server(job, 0).words
        self.assertFalse(os.path.exists(words[words.index("--log") + 1]))
        self.assertEqual(self.go(job)[0], 0)

    def test_of_one_that_is_served(self):
        self.env["XDG_STATE_HOME"] = self.path("state")
        code, _, err = self.run_command([NESSIE, "serve", "--durability", "logged", "--log", self.path("logs")])
        self.assertEqual(code, 0, err)
        job = self.jobs[-1]
        os.mkdir(self.log_of(0))
        self.kill_and_await(job, 0)
        os.rmdir(self.log_of(0))
        code, out, err = self.run_command([NESSIE, "attach", "--", *checkpoint(2, self.path("staged"), steps=1)])
        self.assertEqual(code, 0, out + err)
        code, out, err = self.run_command([NESSIE, "stop"])
        self.assert_written(code, out, err)
        self.assertIn(AGAIN, err)

    def test_its_folder_goes_though_the_run_is_killed(self):
        job = self.start_waiting()
        os.kill(job.process.pid, signal.SIGKILL)
        job.finish()
        self.assert_nothing_left()
        wait_until(lambda: not os.listdir(self.path("logs")), "the janitor")

    def test_by_the_agent_beside_it(self):
        job = self.start(checkpoint(2, self.path("staged"), steps=1, compute_ms=3000), "--mpmd")
        job.wait_for("checkpoint", 2)
        wait_until(lambda: os.listdir(self.path("logs")), "the folder")
        os.mkdir(self.log_of(0))
        self.kill_and_await(job, 0)
        self.assertTrue(any(word.startswith("staging.servers_at=") and "://" in word for word in self.server(job, 0).words))
        os.rmdir(self.log_of(0))
        code, out, err = job.finish()
        self.assert_written(code, out, err)
        self.assertIn(f"staging server 0 was killed by signal 9 (Killed); {AGAIN}", err)
        self.assertEqual(self.summary()["placement"]["servers"][0]["restarts"], 1)

    def test_who_looks_at_a_file_meanwhile_sees_it_whole(self):
        """Its program, which has it open, has it read by another one, and does nothing else."""
        job = self.start(mpiexec(1, os.path.join(BUILD, "tests", "setups", "visible"), "held"),
                         env={"NESSIE_STAGING_TIMEOUT": "5s"})
        wait_until(lambda: self.run_command(["sh", "-c", "test -p ready && cat ready"])[0] == 0, "the file to be held")
        self.kill(job, 0)
        self.run_command(["sh", "-c", "echo > go"])
        code, out, err = job.finish()
        self.assertEqual(code, 0, out + err)
        self.assertIn(f"{os.path.getsize(self.path('step0.nc'))} bytes", out)
        self.assertNotIn("before it is whole", err)
        self.assertNotIn("incomplete", err)
        self.assert_nothing_left()

    def test_a_folder_for_logs_that_is_none(self):
        code, _, err = self.nessie_run(["true"], ["--log", self.path("nowhere")])
        self.assertEqual(code, 1)
        self.assertIn("--log", err)

    def test_a_durability_that_is_none(self):
        code, _, err = self.nessie_run(["true"], ["--durability", "*.rst=logged forever"])
        self.assertEqual(code, 2)
        self.assertIn("'forever' is no durability", err)
        code, _, err = self.nessie_run(["true"], env={"NESSIE_DURABILITY": "forever"})
        self.assertEqual(code, 1)
        self.assertIn("'forever' is no durability", err)

    def check_rules(self, *options, **job_options):
        """Files that match are kept: their server is killed while one is open."""
        command = " ".join(checkpoint(2, self.path("staged"), steps=1))
        script = f"{command}; touch written; until [ -e go ]; do sleep 0.02; done"
        job = self.start_nessie_run(["sh", "-c", script], ["--log", self.path("logs"), *options], **job_options)
        wait_until(lambda: os.path.exists(self.path("written")), "the program")
        self.assertTrue(os.path.exists(self.log_of(0)))
        self.kill_and_await(job, 0)
        code, out, err = self.go(job)
        self.assert_written(code, out, err)
        self.assertIn(AGAIN, err)

    def test_of_one_that_keeps_only_files_of_some_names(self):
        self.check_rules("--durability", "staged.*=logged memory")

    def test_of_one_whose_rules_a_file_has(self):
        with open(self.path("nessie.toml"), "w", encoding="utf-8") as file:
            file.write('durability = ["staged.*=logged", "memory"]\n')
        self.check_rules(env={"NESSIE_CONFIG": self.path("nessie.toml")})


if __name__ == "__main__":
    unittest.main()
