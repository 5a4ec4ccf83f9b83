# SPDX-License-Identifier: BSD-3-Clause
"""nessie-transfer: a service that is started, found, and ended."""
import json
import os
import resource
import signal
import unittest

from harness import BUILD, NESSIE, ProcessTestCase, mpiexec, read_file, wait_until

TRANSFER = os.path.join(BUILD, "bin", "nessie-transfer")


class Transfer(ProcessTestCase):
    def start(self, *options, **job_options):
        """The job, and its URL."""
        file = self.path("contact")
        job = self.job([TRANSFER, "--listen", "shm", "--announce", "file:" + file, *options], **job_options)
        wait_until(lambda: os.path.exists(file) or job.process.poll() is not None, "the service's contact file")
        self.assertIsNone(job.process.poll(), "the service ended")
        url = next(line for line in read_file(file).decode().splitlines() if line.startswith("url = "))
        return job, url.removeprefix("url = ")

    def test_prints_its_url_and_ends_when_told(self):
        for ending in (signal.SIGTERM, signal.SIGINT):
            job, url = self.start()
            job.process.send_signal(ending)
            code, out, err = job.finish()
            self.assertEqual((code, out, err), (0, url + "\n", ""))
            self.assertTrue(url.startswith("shm://"), url)
            self.assertFalse(os.path.exists(self.path("contact")))
        self.assert_nothing_left()

    def test_can_be_reached(self):
        job, url = self.start()
        code, out, err = self.run_command([NESSIE, "info", "--to", url])
        self.assertEqual(code, 0, out + err)
        code, out, err = self.run_command([NESSIE, "status", "--json", "file:" + self.path("contact")])
        self.assertEqual(code, 0, out + err)
        self.assertEqual(json.loads(out)["url"], url)
        job.process.terminate()
        self.assertEqual(job.finish()[0], 0)

    def test_takes_the_descriptors_that_it_may_have(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
        try:
            job, _ = self.start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self.assertEqual(resource.prlimit(job.process.pid, resource.RLIMIT_NOFILE), (min(hard, 65536), hard))
        job.process.terminate()
        self.assertEqual(job.finish()[0], 0)

    def test_that_encrypts_says_so_to_who_does_not_and_the_other_way_round(self):
        for mine, theirs in (("off", "all"), ("all", "off")):
            job, url = self.start(env={"NESSIE_NNTI_ENCRYPT": mine})
            code, _, err = self.run_command([NESSIE, "status", url], env={"NESSIE_NNTI_ENCRYPT": theirs})
            self.assertEqual(code, 1)
            self.assertIn("set nnti.encrypt alike on both sides", err)
            job.process.terminate()
            self.assertEqual(job.finish()[0], 0)

    def test_that_was_killed_is_told_from_one_that_runs(self):
        job, _ = self.start()
        job.process.kill()
        job.finish()
        ask = [NESSIE, "status", "file:" + self.path("contact")]
        code, _, err = self.run_command(ask)
        self.assertEqual(code, 1)
        self.assertIn("is stale", err)
        job, _ = self.start()   # takes its place
        wait_until(lambda: self.run_command(ask)[0] == 0, "the new service's answer")
        job.process.terminate()
        self.assertEqual(job.finish()[0], 0)

    def test_is_found_by_the_launcher_of_its_job(self):
        asked = f'{NESSIE} status --json pmix:transfer; kill $(cat {self.path("pid")})'
        job = self.job(mpiexec(1, "sh", "-c", f'echo $$ > {self.path("pid")}; exec {TRANSFER} --listen shm '
                               '--announce pmix:transfer') + [":", "-n", "1", "sh", "-c", asked])
        code, out, err = job.finish()
        self.assertEqual(code, 0, out + err)
        self.assertIn('"operations"', out)

    def test_says_how_it_is_used(self):
        code, out, err = self.run_command([TRANSFER, "--help"])
        self.assertEqual((code, err), (0, ""))
        for option in ("--listen", "--provider", "--threads", "--piece", "--most-encoded", "--announce"):
            self.assertIn(option, out)

    def test_refuses_what_it_cannot_use(self):
        for options, word in ((["--threads", "many"], "transfer.threads"), (["--piece", "0"], "transfer.piece"), (["--piece"], "required"),
                              (["--colour", "red"], "--colour"), (["--listen", "pigeon"], "pigeon"),
                              (["--announce", "file:/nowhere/contact"], "/nowhere/contact")):
            code, _, err = self.run_command([TRANSFER, *options])
            self.assertEqual(code, 2, err)
            self.assertIn(word, err)


if __name__ == "__main__":
    unittest.main()
