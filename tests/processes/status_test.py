# SPDX-License-Identifier: BSD-3-Clause
"""nessie status and nessie trace: what processes have counted, and what they have traced."""
import json
import os
import signal
import subprocess
import time
import unittest

from harness import NESSIE, ProcessTestCase, checkpoint, mpiexec, wait_until

ASK = f'{NESSIE} status --json $NESSIE_SERVERS'


class Status(ProcessTestCase):
    def test_of_a_url_tells_what_the_process_counted(self):
        code, out, err = self.nessie_run(["sh", "-c", f"{NESSIE} status > /dev/null; {ASK}"])
        self.assertEqual(code, 0, err)
        status = json.loads(out)
        self.assertTrue(status["nssi"]["is_counted"])
        calls = {operation["name"]: operation["calls"] for operation in status["nssi"]["operations"]}
        self.assertGreaterEqual(calls["report"], 1)
        self.assertEqual(calls["create"], 0)

    def test_of_staging_servers_adds_what_nssi_counted(self):
        code, out, err = self.nessie_run([NESSIE, "status", "--json"])
        self.assertEqual(code, 0, err)
        status = json.loads(out)
        self.assertEqual((status["index"], status["restarts"], status["restarted_at"]), (0, 0, None))
        self.assertIn("operations", status["nssi"])

    def test_of_a_server_that_was_started_again_says_how_often_and_when(self):
        script = (f"echo ready; read _; {NESSIE} status --json; {NESSIE} status")
        job = self.start_nessie_run(["sh", "-c", script], ["--durability", "logged"], stdin=subprocess.PIPE)
        job.process.stdout.readline()
        victim = job.descendants("nessied")[0].pid
        before = time.time()
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: [each for each in job.descendants("nessied") if each.pid != victim], "the next one")
        code, out, err = job.finish(text="go\n")
        self.assertEqual(code, 0, out + err)
        status, text = out.split("\n", 1)
        status = json.loads(status)
        self.assertEqual(status["restarts"], 1)
        self.assertLess(abs(status["restarted_at"] - before), 90)
        self.assertRegex(text, r"  started again 1 time, the last time \d+ s ago\n")

    def test_as_a_table_names_operations_limits_and_callers(self):
        code, out, err = self.nessie_run(["sh", "-c", f"{NESSIE} status > /dev/null; {NESSIE} status $NESSIE_SERVERS"])
        self.assertEqual(code, 0, err)
        for word in ("operation", "report", "requests in progress", "caller", "queued p50 p99"):
            self.assertIn(word, out)

    def test_of_servers_of_streams_that_are_one_tells_of_each(self):
        contact = os.path.join(self.runtime, "nessie", "streams", "default.contact")
        servers = self.job(mpiexec(2, os.path.join(os.path.dirname(NESSIE), "nessie-streams")))

        def told():
            _, out, _ = self.run_command([NESSIE, "status", "--json", f"file:{contact}"])
            return len({json.loads(line)["url"] for line in out.splitlines()}) == 2
        wait_until(told, "both servers")
        servers.process.terminate()
        servers.finish()

    def test_who_cannot_be_asked_of_several_is_named(self):
        code, out, err = self.run_command([NESSIE, "status", "tcp://127.0.0.1:1", "tcp://127.0.0.1:2"])
        self.assertEqual((code, out), (1, ""))
        for port in (1, 2):
            self.assertIn(f"nessie status: tcp://127.0.0.1:{port}: the peer cannot be reached: Connection refused\n", err)

    def test_what_follows_the_option_to_watch_may_be_a_place(self):
        script = f"{NESSIE} status --json --watch $NESSIE_SERVERS | head -n 1"
        code, out, err = self.nessie_run(["sh", "-c", script])
        self.assertEqual(code, 0, err)
        self.assertIn("uptime_ns", out)
        code, out, err = self.nessie_run(["sh", "-c", f"{NESSIE} status --watch=0 $NESSIE_SERVERS; echo $?"])
        self.assertIn("seconds", out + err)

    def test_watching_tells_again_and_again(self):
        script = f"{NESSIE} status --json --watch=0.05 $NESSIE_SERVERS | head -n 3"
        code, out, err = self.nessie_run(["sh", "-c", script])
        self.assertEqual(code, 0, err)
        uptimes = [json.loads(line)["nssi"]["uptime_ns"] for line in out.splitlines()]
        self.assertEqual(len(uptimes), 3)
        self.assertEqual(uptimes, sorted(set(uptimes)))

    def test_of_nobody_says_who_does_not_answer(self):
        code, _, err = self.run_command([NESSIE, "status", "shm://nobody-at-all"])
        self.assertEqual(code, 1)
        self.assertIn("nessie status:", err)


class Trace(ProcessTestCase):
    def traced_run(self, prefix):
        folder = self.path("trace")
        code, _, err = self.nessie_run(checkpoint(1, prefix), ["--mode", "caching"], env={"NESSIE_NSSI_TRACE": folder})
        self.assertEqual(code, 0, err)
        return folder

    def test_shows_calls_and_what_the_servers_did(self):
        folder = self.traced_run(self.path("s3d"))
        merged = self.path("merged.json")
        code, _, err = self.run_command([NESSIE, "trace", folder, "-o", merged])
        self.assertEqual(code, 0, err)
        with open(merged) as file:
            events = json.load(file)["traceEvents"]
        spans = [event for event in events if event["ph"] == "X"]
        calls = {span["args"]["span"]: span for span in spans if span["cat"] == "call"}
        served = [span for span in spans if span["cat"] == "execution"]
        self.assertLessEqual({"create", "write", "close"}, {span["name"] for span in served})
        untold = [span["name"] for span in served if span["args"]["parent"] not in calls]
        self.assertEqual(untold, [], "the program's trace is not whole")
        for span in served:
            call = calls[span["args"]["parent"]]
            self.assertNotEqual(call["pid"], span["pid"])
            self.assertEqual(call["args"]["trace"], span["args"]["trace"])
            self.assertGreaterEqual(span["ts"], call["ts"])
            self.assertEqual(call["name"], "call " + span["name"])

    def test_of_a_folder_without_events_says_what_to_do(self):
        os.mkdir(self.path("empty"))
        code, _, err = self.run_command([NESSIE, "trace", self.path("empty")])
        self.assertEqual(code, 1)
        self.assertIn("NESSIE_NSSI_TRACE", err)


if __name__ == "__main__":
    unittest.main()
