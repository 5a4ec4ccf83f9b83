# SPDX-License-Identifier: BSD-3-Clause
"""Staging servers on other hosts than `nessie run`: in a job of their own, and as ranks of the program's."""
import json
import os
import signal

import setups
from harness import CHECKPOINT, wait_until
from hosts_case import NOTICE, WRITER, HostsCase, main

NOBODY = setups.NOBODY
LONG = [CHECKPOINT, "--grid", "24,20,16", "--compute-ms", "50", "--prefix", "out"]


class Placement(HostsCase):
    def test_servers_on_a_host_of_their_own(self):
        self.make_hosts(3, user=NOBODY)
        self.compare_on_hosts("a:2,b:2,c:1", ["caching", "two"], flags=["--place", "node:1"])

    def test_the_summary_says_where_they_were(self):
        self.make_hosts(user=NOBODY)
        folder = self.make("staged")
        for options, started in ([], "launcher"), (["--mpmd"], "mpmd"):
            run = setups.nessie_run("caching", [*options, "--place", "host:b", "--json", "run.json"])
            done = self.hosts["a"].run([*run, *self.hosts.mpiexec("a:2,b:2", *WRITER)], cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
                placement = json.load(file)["placement"]
            server = placement["servers"][0]
            self.assertEqual((placement["place"], placement["started"], server["index"], server["host"]),
                             ("host:b", started, 0, "b"))
            self.assertIn("://", server["url"])

    @setups.sweep
    def test_servers_on_each_host(self):
        self.make_hosts(user=NOBODY)
        self.compare_on_hosts("a:2,b:2", flags=["--place", "each-node:2"])

    def test_as_ranks_of_the_programs_job(self):
        self.make_hosts(user=NOBODY)
        self.compare_on_hosts("a:2,b:2", flags=["--mpmd", "--place", "host:b"])

    @setups.sweep
    def test_as_ranks_on_a_host_of_their_own(self):
        self.make_hosts(user=NOBODY)
        self.compare_on_hosts("a:2,b:2", flags=["--mpmd", "--place", "node"])

    def long_run(self, *options, env=None, steps=400):
        self.make_hosts(user=NOBODY, env={**NOTICE, **(env or {})})
        folder = self.make("staged")
        command = [*setups.nessie_run("caching", options), *self.hosts.mpiexec("a:2,b:2", *LONG, "--steps", str(steps))]
        job = self.job([*self.hosts["a"].enter(), *command], cwd=folder)
        wait_until(lambda: os.path.exists(os.path.join(folder, "out.0002.nc")), "the second checkpoint")
        return job

    def test_a_server_elsewhere_that_is_killed(self):
        job = self.long_run("--place", "host:b", steps=10)
        os.kill(job.wait_for("nessied")[0].pid, signal.SIGKILL)
        code, _, err = job.finish()
        self.assertNotEqual(code, 0, err)
        self.assertIn("staging server 0 was killed by signal 9", err)
        self.assert_nothing_left()

    def run_with_log(self, *words):
        """A job whose server on b has a log, in the folder that is returned, too; as far as these tests say so."""
        self.make_hosts(user=NOBODY, env=NOTICE)
        logs = self.make("logs")
        options = ["--place", "host:b", "--durability", "logged", "--log", logs, "--json", "run.json"]
        command = [*setups.nessie_run("caching", options), *self.hosts.mpiexec("a:2,b:2", *words)]
        job = self.job([*self.hosts["a"].enter(), *command], cwd=self.make("staged"))
        job.wait_for(os.path.basename(words[0]), 4)
        log = os.path.join(logs, *os.listdir(logs), "server.0")
        os.mkdir(log)
        return job, log

    def kill_and_await(self, job):
        victim = job.descendants("nessied")[0].pid
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: [each for each in job.descendants("nessied") if each.pid != victim], "the next one")

    def assert_started_again(self, job, log):
        code, _, err = job.finish()
        self.assertEqual(code, 0, err)
        self.assertIn("was killed by signal 9 (Killed); it was started again and goes on from its log", err)
        with open(self.path("staged/run.json"), encoding="utf-8") as file:
            run = json.load(file)
        self.assertEqual((run["placement"]["servers"][0]["restarts"], run["broken_servers"]), (1, []))
        self.assertFalse(os.path.exists(os.path.dirname(log)))
        self.assert_nothing_left()
        return run

    def test_a_server_elsewhere_that_has_a_log_is_started_again(self):
        job, log = self.run_with_log(CHECKPOINT, "--grid", "24,20,16", "--steps", "1", "--compute-ms", "3000",
                                     "--prefix", "out")
        self.kill_and_await(job)
        os.rmdir(log)
        self.assertGreater(self.assert_started_again(job, log)["bytes_drained"], 0)

    def test_a_server_elsewhere_is_told_what_the_run_was_told(self):
        self.make_hosts(user=NOBODY, env=NOTICE)
        options = ["--place", "host:b", "--fail-fast", "--spill", self.make("spill")]
        command = [*setups.nessie_run("caching", options), *self.hosts.mpiexec("a:2,b:2", "sleep", "2")]
        job = self.job([*self.hosts["a"].enter(), *command], cwd=self.make("staged"))
        words = job.wait_for("nessied")[0].words
        self.assertIn("staging.fail_fast=yes", words)
        self.assertEqual(words[words.index("--spill") + 1], self.path("spill"))
        self.assertEqual(job.finish()[0], 0)
        self.assert_nothing_left()

    def test_a_server_elsewhere_that_has_a_log_is_started_again_while_it_drains(self):
        job, log = self.run_with_log("sleep", "2")
        os.kill(job.descendants("nessied")[0].pid, signal.SIGSTOP)   # so that the drain does not end
        wait_until(lambda: not job.descendants("sleep"), "the program's end")
        self.kill_and_await(job)
        os.rmdir(log)
        self.assert_started_again(job, log)

    def test_a_host_of_servers_that_is_lost(self):
        job = self.long_run("--place", "host:b", env={"NESSIE_STAGING_TIMEOUT": "1h"})   # no silence is waited for
        self.hosts["b"].lose()
        code, _, err = job.finish()
        self.assertNotEqual(code, 0, err)
        self.assertIn("staging server 0 on b is lost", err)
        self.assert_nothing_left(on=[self.hosts["a"]])


if __name__ == "__main__":
    main()
