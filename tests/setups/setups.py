# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of real set-ups share: one command, run natively and staged, and all that can be seen of it compared."""
import filecmp
import os
import unittest

from harness import BUILD, DEADLINE_S, NESSIE, ProcessTestCase, unsanitized  # noqa: F401

PROGRAMS = os.path.join(BUILD, "tests", "setups")
MODES = {
    "caching": ["-m", "caching", "-M", "256M"],
    "direct": ["-m", "direct", "-M", "256M"],
    "two": ["-s", "2", "-m", "caching", "-M", "128M"],
}
NOBODY = 65534
# What gosu, su or a batch prolog do. Open MPI's folders are those of a fresh process.
AS_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "env", "HOME=/nonexistent"]
# Of some hundred jobs on two hosts Open MPI 4.1 has one process call address 0 in MPI_Init, without Nessie, too.
CRASH_OF_OPEN_MPI = "Failing at address: (nil)"
SWEEP = os.environ.get("NESSIE_TEST_SWEEP") == "1"


def sweep(test):
    """Marks a test that only `./dev test-all` runs; there nothing else runs."""
    test.is_sweep = True
    return test


def program(name):
    return os.path.join(PROGRAMS, name)


def nessie_run(mode, flags=()):
    """The words in front of a command that is to be staged."""
    return [NESSIE, "run", *MODES[mode], *flags, "--"]


def files_below(folder):
    """Names of all files below `folder`, as bytes."""
    folder = os.fsencode(folder)
    return sorted(os.path.relpath(os.path.join(base, name), folder) for base, _, names in os.walk(folder) for name in names)


class Outcome:
    """What a run left: its exit code, what it printed, and its folder."""

    def __init__(self, folder, code, out, err):
        self.folder, self.code, self.out, self.err = folder, code, out, err

    def said(self, text):
        return text in self.err

    @property
    def was_staged(self):
        return "nessie: staged" in self.err


class SetupCase(ProcessTestCase):
    maxDiff = None
    def setUp(self):
        super().setUp()
        if SWEEP != getattr(getattr(self, self._testMethodName), "is_sweep", False):
            self.skipTest("runs in ./dev test-all" if not SWEEP else "runs in ./dev test")

    def make(self, label):
        """A new folder of the test's, called `label`."""
        os.makedirs(self.path(label), exist_ok=True)
        return self.path(label)

    def let_others_in(self):
        """Another user passes through the test's folder, and has his temporary files elsewhere."""
        os.chmod(self.folder, 0o755)
        self.env["TMPDIR"] = "/tmp"

    def folder_of_nobody(self, label):
        """As make(), for AS_NOBODY."""
        os.chown(self.make(label), NOBODY, NOBODY)

    def run_in(self, label, command, env=None, deadline_s=DEADLINE_S, **popen):
        """Runs `command` in a new folder called `label`; its stdout and stderr are decoded with escapes."""
        folder = self.make(label)
        job = self.job(command, env={"OMPI_MCA_rmaps_base_oversubscribe": "1", **(env or {})}, errors="backslashreplace",
                       **{"cwd": folder, **popen})
        return Outcome(folder, *job.finish(deadline_s))

    def native(self, command, label="native", **options):
        return self.run_in(label, command, **options)

    def staged(self, mode, command, label=None, before=(), flags=(), **options):
        """`before`: words in front of nessie; `flags`: more options of `nessie run`."""
        return self.run_in(label or mode, [*before, *nessie_run(mode, flags), *command], **options)

    def assert_same(self, native, staged, must_be_staged=True):
        self.assertEqual((native.code, native.out), (staged.code, staged.out), f"{staged.folder}:\n{staged.err}")
        self.assertEqual(files_below(native.folder), files_below(staged.folder), staged.err)
        for name in files_below(native.folder):
            pair = [os.path.join(os.fsencode(folder), name) for folder in (native.folder, staged.folder)]
            self.assertTrue(filecmp.cmp(*pair, shallow=False), f"{name!r} differs in {staged.folder}:\n{staged.err}")
        if must_be_staged:
            self.assertTrue(staged.was_staged, staged.err)
        for crash in ("Segmentation fault", "terminate called", "AddressSanitizer"):
            self.assertNotIn(crash, staged.err)

    def compare(self, command, modes=tuple(MODES), must_be_staged=True, native_command=None, **options):
        """Runs natively and in each mode, and compares. Returns the outcomes: native first."""
        outcomes = [self.native(native_command or command, **options)]
        for mode in modes:
            outcomes.append(self.staged(mode, command, **options))
            self.assert_same(outcomes[0], outcomes[-1], must_be_staged)
        return outcomes

    def compare_apart(self, command, modes=tuple(MODES), **options):
        """As compare(), for one of several commands of a test, each of which begins with empty folders."""
        outcomes = self.compare(command, modes, **options)
        self.run_command(["rm", "-rf", *(outcome.folder for outcome in outcomes)])
        return outcomes


main = unittest.main
