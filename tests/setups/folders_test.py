# SPDX-License-Identifier: BSD-3-Clause
"""Folders as they are: /tmp that cannot be written, TMPDIR with blanks, no /dev/shm, somebody else's XDG_RUNTIME_DIR."""
import os
import shutil
import subprocess
import unittest

import setups
from harness import mpiexec

MAY_MOUNT = shutil.which("unshare") and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0

# What Open MPI has in /dev/shm otherwise.
IN_TMP = {"OMPI_MCA_orte_tmpdir_base": "/tmp", "OMPI_MCA_btl_vader_backing_directory": "/tmp", "OMPI_MCA_sharedfp": "^sm"}
FILL = "{{ dd if=/dev/zero of=/dev/shm/fill bs=4k; :; }} 2> /dev/null"


class Folders(setups.SetupCase):
    def compare_with(self, label, variables, wrap=lambda command: command):
        command = wrap(mpiexec(2, setups.program("writer"), "out.nc"))
        native = self.native(command, label=f"{label}.native", env=variables)
        staged = self.staged("caching", command, label=f"{label}.staged", env=variables)
        self.assertEqual(native.code, 0, native.err)
        self.assert_same(native, staged)

    def test_a_temporary_folder_with_blanks_colons_and_links(self):
        for name in ("with a blank", "co:lon", "x" * 60):
            os.makedirs(self.path(name))
            self.compare_with(name, {"TMPDIR": self.path(name), "XDG_RUNTIME_DIR": ""})
        os.symlink("with a blank", self.path("link"))
        self.compare_with("link", {"TMPDIR": self.path("link"), "XDG_RUNTIME_DIR": ""})

    def test_run_time_folders_that_are_none(self):
        for number, folder in enumerate(("/absent", "/proc/version", "relative", "/proc")):
            self.compare_with(f"runtime{number}", {"XDG_RUNTIME_DIR": folder})

    @unittest.skipUnless(MAY_MOUNT, "mounts folders, which takes rights")
    @setups.unsanitized("it needs /proc")
    def test_no_proc(self):
        def wrap(command):
            return ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", *command]
        command = mpiexec(2, setups.program("writer"), "out.nc")
        native, staged = self.native(wrap(command)), self.staged("caching", command, before=wrap([]))
        self.assertEqual(native.code, 0, native.err)
        self.assert_same(native, staged, must_be_staged=False)
        self.assertIn("nothing was staged: /proc is not mounted", staged.err)

    @unittest.skipUnless(MAY_MOUNT, "mounts folders, which takes rights")
    def test_mounted_otherwise(self):
        """The folder of the test stays writable; `how` changes the rest."""
        ways = {
            "no-shared-memory": "mount -t tmpfs -o ro none /dev/shm",
            "little-shared-memory": "mount -t tmpfs -o size=64m none /dev/shm",
            "shared-memory-full": f"mount -t tmpfs -o size=64m none /dev/shm && {FILL}",
            "tmp-read-only": "mkdir -p /mnt/nt && mount --bind {0} /mnt/nt && mount --bind /tmp /tmp && "
                             "mount -o remount,ro,bind /tmp && mount --bind /mnt/nt {0}",
            "tmp-full": "mkdir -p /mnt/nt && mount --bind {0} /mnt/nt && mount -t tmpfs -o size=64k none /tmp && mkdir -p {0} && "
                        "mount --bind /mnt/nt {0} && cd $PWD",
        }
        for label, how in ways.items():
            with self.subTest(how=label):
                def wrap(command, how=how.format(self.folder)):
                    return ["unshare", "-m", "sh", "-c", f'{how} && cd "$PWD" && exec "$@"', "sh", *command]
                command = mpiexec(2, setups.program("writer"), "out.nc")
                env = {"TMPDIR": self.folder, "XDG_RUNTIME_DIR": "", **(IN_TMP if label == "shared-memory-full" else {})}
                native = self.native(wrap(command), label=f"{label}.native", env=env)
                staged = self.staged("caching", command, label=f"{label}.staged", before=wrap([]), env=env)
                if native.code == 0:
                    self.assert_same(native, staged)
                self.assertNotIn("Bus error", staged.err)

    @unittest.skipUnless(MAY_MOUNT, "mounts folders, which takes rights")
    def test_shared_memory_that_fills_up_after_the_servers_started(self):
        before = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64m none /dev/shm && cd "$PWD" && exec "$@"', "sh"]
        command = ["sh", "-c", FILL.format() + '; "$@"; rm /dev/shm/fill', "sh", *mpiexec(2, setups.program("writer"), "out.nc")]
        native = self.native([*before, *command], env=IN_TMP)
        self.assertEqual(native.code, 0, native.err)
        for mode in ("caching", "two"):
            self.assert_same(native, self.staged(mode, command, before=before, env=IN_TMP))


if __name__ == "__main__":
    setups.main()
