# SPDX-License-Identifier: BSD-3-Clause
"""What a parent leaves behind: nothing of it hangs the run, changes the program's exit code, or loses a byte."""
import os
import shutil
import signal
import unittest

import setups
from harness import NESSIE, mpiexec, read_file, wait_until

# Says which signals it gets.
HEARS = r"""
import signal, sys
numbers = {int(word) for word in sys.argv[1:]}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)   # one that comes early is not missed
print("ready", flush=True)
while True:
    print(int(signal.sigwait(numbers)), flush=True)
"""

# Runs the rest of its arguments with what its first one asks for.
ODD_PARENT = r"""
import os, resource, signal, sys
how, command = sys.argv[1], sys.argv[2:]
if how == "ignored-child":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
elif how == "blocked":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1})
elif how == "ignored":
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
elif how.startswith("closed"):
    for fd in how[6:]:
        os.close(int(fd))
elif how == "full":
    os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
elif how in ("full-pipe", "deaf-pipe"):
    reader, writer = os.pipe()
    os.set_inheritable(reader, how == "full-pipe")
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x")
    except BlockingIOError:
        os.set_blocking(writer, True)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.dup2(writer, 2)
elif how == "full-file":
    os.dup2(os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    os.truncate(2, 9 << 20)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9 << 20, 9 << 20))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
elif how == "alarm":
    signal.setitimer(signal.ITIMER_REAL, 0.5)
elif how == "nice":
    os.nice(5)
    os.sched_setaffinity(0, {0})
elif how == "session":
    os.setsid() if os.getpid() != os.getpgrp() else None
os.execvp(command[0], command)
"""


class Parents(setups.SetupCase):
    def odd(self, how):
        return ["/usr/bin/python3", "-c", ODD_PARENT, how]

    def compare_below(self, how, must_be_staged=True):
        """The exit code and the files are native's; what it prints, where it can."""
        command = mpiexec(2, setups.program("writer"), "out.nc")
        native = self.native([*self.odd(how), *command], label=f"{how}.native")
        staged = self.staged("caching", command, before=self.odd(how), label=f"{how}.staged")
        self.assertEqual((native.code, native.out), (staged.code, staged.out), f"{how}: {staged.err}")
        self.assert_same(native, staged, must_be_staged and "2" not in how and how != "full")

    def test_signals_that_are_ignored_or_held_back(self):
        for how in ("ignored-child", "blocked", "ignored"):
            with self.subTest(how=how):
                self.compare_below(how)

    def test_streams_that_are_closed_or_full(self):
        for how in ("closed0", "closed1", "closed2", "closed02", "full"):
            with self.subTest(how=how):
                self.compare_below(how)

    def test_nothing_is_said_into_the_file_that_has_the_place_of_stderr(self):
        command = ["sh", "-c", f"exec {setups.program('unheard')} out.nc 2>&-"]
        outcomes = self.compare(command, ["caching"])
        self.assertIn("it is accessed by an MPI filetype", outcomes[1].err)

    def test_what_is_said_in_the_program_is_dropped_where_it_cannot_be_heard(self):
        """A file goes native there, of which the program itself says nothing."""
        command = [setups.program("vard"), "other_files", "out.nc"]
        for how in ("full-pipe", "deaf-pipe", "full-file"):
            with self.subTest(how=how):
                native = self.native([*self.odd(how), *command], label=f"{how}.native")
                staged = self.staged("caching", command, before=self.odd(how), label=f"{how}.staged")
                self.assertEqual(native.code, 0)
                self.assert_same(native, staged, must_be_staged=False)

    def test_no_stream_at_all(self):
        """Open MPI's own launcher may hang below it."""
        outcome = self.staged("caching", ["sh", "-c", "echo lost; exit 4"], before=self.odd("closed012"))
        self.assertEqual((outcome.code, outcome.out), (4, ""))

    def test_nice_affinity_and_a_session_of_its_own(self):
        for how in ("nice", "session"):
            with self.subTest(how=how):
                self.compare_below(how)

    def test_a_reader_that_has_gone_does_not_change_the_exit_code(self):
        for code in (0, 7):
            script = (f"{{ {NESSIE} run -- sh -c 'mpiexec --oversubscribe -n 2 {setups.program('writer')} out.nc; exit {code}'; "
                      "echo $? > code; } 2>&1 | true")
            outcome = self.run_in(f"reader{code}", ["sh", "-c", script])
            with open(os.path.join(outcome.folder, "code"), encoding="utf-8") as file:
                self.assertEqual(file.read().strip(), str(code))
            self.assertGreater(os.path.getsize(os.path.join(outcome.folder, "out.nc")), 1 << 20)

    def test_sigterm_ends_it_though_no_child_is_to_be_waited_for(self):
        job = self.job([*self.odd("ignored-child"), NESSIE, "run", "-q", "--", "sleep", "600"])
        job.wait_for("sleep")
        job.process.send_signal(signal.SIGTERM)
        code, _, _ = job.finish()
        self.assertNotEqual(code, 0)

    def test_the_program_gets_the_signals_as_the_parent_left_them(self):
        show = ["sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status"]
        for how in ("ignored", "blocked", "ignored-child"):
            native = self.native([*self.odd(how), *show], label=f"{how}.native")
            staged = self.staged("caching", show, before=self.odd(how), label=f"{how}.staged")
            self.assertEqual(native.out, staged.out, how)

    def test_a_timer_that_was_set_ends_the_program(self):
        native = self.native([*self.odd("alarm"), "sleep", "60"])
        staged = self.staged("caching", ["sleep", "60"], before=self.odd("alarm"))
        self.assertEqual((native.code, staged.code), (-signal.SIGALRM, 128 + signal.SIGALRM), staged.err)

    @setups.unsanitized("its options are in the environment")
    def test_an_empty_environment_and_a_folder_that_is_gone(self):
        command = mpiexec(2, setups.program("writer"), self.path("out.nc"))
        keep = [f"{name}={self.env[name]}" for name in ("PATH", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")]
        empty = self.staged("caching", command, before=["env", "-i", *keep])
        self.assertEqual((empty.code, empty.was_staged), (0, True), empty.err)
        gone = self.run_in("gone", ["sh", "-c", 'mkdir sub && cd sub && rmdir ../sub && exec "$@"', "sh", NESSIE, "run", "--",
                                    "true"])
        self.assertEqual(gone.code, 0, gone.err)


class LeftBehind(setups.SetupCase):
    """Processes that outlive the program."""

    def start(self, left, env):
        """A run whose program leaves `left` behind; returns when it waits for that."""
        with open(self.path("err"), "w", encoding="utf-8") as err:
            job = self.job([NESSIE, "run", "--", "sh", "-c", f"{left} > out 2>&1 &"], env=env, stderr=err)
        wait_until(lambda: b"waiting for a process" in read_file(self.path("err")), "the run to wait")
        return job

    def test_sigterm_ends_them_too(self):
        job = self.start("sleep 600", {"NESSIE_RUN_LINGER": "1h"})
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.finish()[0], 0)
        self.assert_nothing_left()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "starts a process that the run may not end")
    def test_what_cannot_be_ended_is_not_waited_for(self):
        os.chmod(self.folder, 0o777)
        shutil.copy(shutil.which("setpriv"), self.path("become"))
        os.chmod(self.path("become"), 0o4755)
        as_nobody = ["unshare", "-m", "sh", "-c", 'mount -t proc none /proc && exec setpriv --reuid 65534 "$@"', "sh"]
        script = (f"{self.path('become')} --reuid 0 sleep 600 > {self.path('out')} 2>&1 & "
                  "until grep -q sleep /proc/$!/comm; do :; done")
        outcome = self.staged("caching", ["sh", "-c", script],
                              before=as_nobody, env={"NESSIE_RUN_LINGER": "1ms", "XDG_RUNTIME_DIR": ""})
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("a process that the program left behind cannot be ended", outcome.err)


class Signals(setups.SetupCase):
    def test_all_that_can_be_passed_on_are(self):
        numbers = [signal.SIGURG, signal.SIGXCPU, signal.SIGXFSZ, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO,
                   signal.SIGPWR, signal.SIGWINCH, signal.SIGCONT, signal.SIGPIPE, signal.SIGABRT, signal.SIGHUP,
                   signal.SIGUSR1, signal.SIGRTMIN, signal.SIGRTMIN + 3, signal.SIGRTMAX]
        words = [str(int(number)) for number in numbers]
        job = self.start_nessie_run(["/usr/bin/python3", "-c", HEARS, *words], ["-q"])
        self.assertEqual(job.process.stdout.readline(), "ready\n")
        for word in words:
            job.process.send_signal(int(word))
            self.assertEqual(job.process.stdout.readline(), word + "\n")
        job.process.send_signal(signal.SIGPROF)
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.finish()[0], 128 + signal.SIGTERM)

    def test_one_that_nobody_handles_ends_the_program_as_natively(self):
        for number in (signal.SIGXCPU, signal.SIGSEGV, signal.SIGRTMIN + 5):
            job = self.start_nessie_run(["sh", "-c", "echo ready; exec sleep 60"], ["-q"])
            self.assertEqual(job.process.stdout.readline(), "ready\n")
            job.process.send_signal(number)
            self.assertEqual(job.finish()[0], 128 + number)

    def test_who_stops_it_stops_the_program_and_who_continues_it_continues_that(self):
        job = self.start_nessie_run(["sleep", "60"], ["-q"], process_group=0)
        pids = [job.process.pid, job.wait_for("sleep")[0].pid]

        def are_stopped():
            return [read_file(f"/proc/{pid}/stat").split(b") ")[1][:1] == b"T" for pid in pids]
        job.process.send_signal(signal.SIGTSTP)
        wait_until(lambda: all(are_stopped()), "both to stop")
        job.process.send_signal(signal.SIGCONT)
        wait_until(lambda: not any(are_stopped()), "both to go on")
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.finish()[0], 128 + signal.SIGTERM)


class Family(setups.SetupCase):
    """A script that ends with `exec nessie run` leaves it children that are not the program's."""

    def script(self, text, program="true"):
        """Runs it in bash, and in its place `nessie run`; returns how that ended."""
        return self.run_in("job", ["bash", "-c", f'{text}; exec {NESSIE} run -- {program}'], env={"NESSIE_RUN_LINGER": "1"})

    def assert_is_left_alone(self, outcome):
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertNotIn("left behind", outcome.err)
        with open(self.path("job/pid"), encoding="utf-8") as file:
            os.kill(int(file.read()), signal.SIGKILL)   # it is there

    def test_its_children_are_neither_waited_for_nor_ended(self):
        self.assert_is_left_alone(self.script("sleep 600 > /dev/null 2>&1 & echo $! > pid"))

    def test_nor_what_these_leave_behind(self):
        program = "sh -c 'echo > go; while kill -0 $(cat child) 2> /dev/null; do sleep 0.02; done'"
        self.assert_is_left_alone(self.script(
            "mkfifo go; { sleep 600 & echo $! > pid; read x < go; } > /dev/null 2>&1 & echo $! > child", program))

    def test_a_log_that_a_child_writes_is_whole(self):
        outcome = self.script("exec > >(tee log) 2>&1", "echo hello")
        self.assertEqual(outcome.code, 0)
        with open(self.path("job/log"), encoding="utf-8") as file:
            log = file.read()
        self.assertIn("hello", log)
        self.assertIn("nessie: the program ended with 0", log)
        self.assertNotIn("left behind", log)


class Streams(setups.SetupCase):
    def assert_ends(self, pipeline):
        """The program closes a stream, and waits for who sees its end there."""
        text = pipeline.replace("RUN", f'{NESSIE} run -q -- bash -c "')
        outcome = self.run_in("streams", ["bash", "-c", f"mkfifo go; set -o pipefail; {text}"])
        self.assertEqual(outcome.code, 0, outcome.err)

    def test_who_reads_what_the_program_prints_sees_when_it_closes_that(self):
        self.assert_ends('RUN exec >&-; read -t 60 x < go" | { cat; echo end > go; }')

    def test_who_writes_what_the_program_reads_sees_when_it_closes_that(self):
        self.assert_ends('{ (trap "" PIPE; while echo y; do :; done 2> /dev/null); echo end > go; } | RUN exec <&-; read -t 60 x < go"')


class Summaries(setups.SetupCase):
    def test_a_summary_that_cannot_be_written_is_an_error_of_its_own(self):
        for target in ("/dev/full", "/absent/folder.json", "/"):
            for code, expected in ((0, 1), (3, 3)):
                outcome = self.staged("caching", ["sh", "-c", f"exit {code}"], flags=["--json", target])
                self.assertEqual(outcome.code, expected, outcome.err)
                self.assertIn(f"cannot write {target}", outcome.err)

    def test_a_summary_into_a_pipe_that_nobody_reads_is_not_waited_for(self):
        os.mkfifo(self.path("pipe"))
        outcome = self.staged("caching", ["true"], flags=["--json", self.path("pipe")])
        self.assertEqual(outcome.code, 1)

    def test_a_summary_may_go_where_the_program_prints(self):
        outcome = self.staged("caching", ["true"], flags=["-q", "--json", "/dev/stdout"])
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn('"program_exit_code": 0', outcome.out)

    def test_too_many_arguments_are_a_sentence(self):
        outcome = self.staged("caching", ["sh", "-c", f'exec "{NESSIE}" run -q -- true "$(head -c 3000000 /dev/zero | tr "\\0" x)"'])
        self.assertNotEqual(outcome.code, 0)
        self.assertNotIn("terminate", outcome.err)


class Notes(setups.SetupCase):
    def test_of_many_at_once_none_is_lost(self):
        script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do LD_PRELOAD=$n.so /bin/true & done 2> /dev/null; wait"
        outcome = self.staged("caching", ["sh", "-c", script])
        for number in range(1, 21):
            self.assertIn(f"LD_PRELOAD was replaced by '{number}.so' for /bin/true", outcome.err)

    def test_of_a_helper_without_preloads_says_no_more_than_is_known(self):
        script = f"LD_PRELOAD= /bin/true; mpiexec --oversubscribe -n 1 {setups.program('writer')} out.nc"
        outcome = self.staged("caching", ["sh", "-c", script])
        self.assertTrue(outcome.was_staged, outcome.err)
        self.assertIn("nessie: LD_PRELOAD was emptied for /bin/true\n", outcome.err)

    def test_of_what_is_not_there_is_none(self):
        outcome = self.staged("caching", ["sh", "-c", "LD_PRELOAD=x.so /absent/program; exit 3"])
        self.assertEqual(outcome.code, 3)
        self.assertNotIn("x.so", outcome.err)


class OtherPreloads(setups.SetupCase):
    def test_a_server_that_was_killed_before_anything_came_is_what_is_said(self):
        script = f"pkill -9 -P $PPID nessied; exec mpiexec --oversubscribe -n 1 {setups.program('writer')} out.nc"
        outcome = self.staged("caching", ["sh", "-c", script])
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("a staging server ended before it had stored anything", outcome.err)
        self.assertNotIn("linked to it statically", outcome.err)

    def test_of_a_server_that_is_killed_after_its_work_no_more_is_said_than_is_known(self):
        script = f"mpiexec --oversubscribe -n 1 {setups.program('writer')} out.nc && cat out.nc > /dev/null && pkill -9 -P $PPID nessied"
        for mode in ("caching", "two"):
            outcome = self.staged(mode, ["sh", "-c", script])
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertIn("all that it had is in the files", outcome.err)
            self.assertNotIn("nothing was staged", outcome.err)
            self.assertIn("ended before it told all that it had done", outcome.err)


if __name__ == "__main__":
    setups.main()
