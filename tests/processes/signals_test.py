# SPDX-License-Identifier: BSD-3-Clause
"""nessie run and the terminal: Ctrl-C, SIGTERM, a second Ctrl-C."""
import fcntl
import os
import pty
import signal
import termios
import unittest

from harness import CHECKPOINT, ProcessTestCase, checkpoint, read_file, wait_until


class Terminal:
    """A job with a terminal of its own as stdin, so that Ctrl-C is what it is for a user."""

    def __init__(self, case, command, options=(), **job_options):
        self.keyboard, screen = pty.openpty()

        def own_terminal():
            os.setsid()
            fcntl.ioctl(screen, termios.TIOCSCTTY, 0)
        self.job = case.start_nessie_run(command, options, stdin=screen, preexec_fn=own_terminal, **job_options)
        os.close(screen)
        case.addCleanup(os.close, self.keyboard)

    def press_ctrl_c(self):
        os.write(self.keyboard, b"\x03")


class CtrlC(ProcessTestCase):
    def test_reaches_the_program_once_and_not_the_servers(self):
        script = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done"
        terminal = Terminal(self, ["sh", "-c", script])
        self.assertEqual(terminal.job.process.stdout.readline(), "ready\n")
        terminal.press_ctrl_c()
        code, out, err = terminal.job.finish()
        self.assertEqual((code, out.split()), (5, ["interrupted"]), err)
        self.assertNotIn("error", err)
        self.assert_nothing_left()

    def test_drains_what_an_mpi_program_had_written(self):
        native = self.run_command(checkpoint(2, self.path("native"), steps=1))
        self.assertEqual(native[0], 0, native)
        terminal = Terminal(self, checkpoint(2, self.path("staged"), steps=10000, compute_ms=50))
        while "step    1" not in terminal.job.process.stdout.readline():
            pass
        terminal.press_ctrl_c()
        code, _, err = terminal.job.finish()
        self.assertNotEqual(code, 0)
        self.assertEqual(read_file(self.path("staged.0001.nc")), read_file(self.path("native.0001.nc")), err)
        self.assert_nothing_left()


class SigTerm(ProcessTestCase):
    def test_is_passed_on(self):
        script = "trap 'exit 6' TERM; echo ready; while :; do sleep 0.05; done"
        job = self.start_nessie_run(["sh", "-c", script])
        self.assertEqual(job.process.stdout.readline(), "ready\n")
        os.kill(job.process.pid, signal.SIGTERM)
        self.assertEqual(job.finish()[0], 6)
        self.assert_nothing_left()

    def test_of_a_batch_system_to_all_processes_does_not_end_the_servers(self):
        """They serve the program's last checkpoint."""
        job = self.start_nessie_run(["sh", "-c", "trap 'exit 6' HUP; echo ready; while :; do sleep 0.05; done"])
        self.assertEqual(job.process.stdout.readline(), "ready\n")
        server = job.wait_for("nessied")[0]
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
            os.kill(server.pid, number)
        os.kill(job.process.pid, signal.SIGHUP)
        code, _, err = job.finish()
        self.assertEqual((code, "staging server 0" in err), (6, False), err)
        self.assert_nothing_left()

    def test_while_the_servers_drain_gives_up_at_the_second_time(self):
        job = self.start_nessie_run(checkpoint(2, self.path("s3d"), steps=2), ["--memory", "64M"])
        ranks = job.wait_for("checkpoint", 2)
        self.assertTrue(all(os.path.samefile(rank.words[0], CHECKPOINT) for rank in ranks))
        server = job.wait_for("nessied")[0]
        wait_until(lambda: os.path.exists(self.path("s3d.0001.nc")), "the first checkpoint")
        os.kill(server.pid, signal.SIGSTOP)      # so that the drain lasts
        wait_until(lambda: self.second_term_sent(job), "nessie run to end")
        code, _, err = job.finish()
        self.assertNotEqual(code, 0, err)
        self.assert_nothing_left()

    def second_term_sent(self, job):
        if job.process.poll() is None:
            job.process.send_signal(signal.SIGTERM)
        return job.process.poll() is not None


if __name__ == "__main__":
    unittest.main()
