# SPDX-License-Identifier: BSD-3-Clause
"""Whoever runs is who he is: the servers do for a program what it may do itself, where it sees its files, and no more."""
import os
import shutil
import subprocess
import unittest

import setups
from harness import mpiexec
from setups import AS_NOBODY, NOBODY


def can(*command):
    return shutil.which(command[0]) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def attributes(path):
    status = os.stat(path)
    return status.st_uid, status.st_gid, oct(status.st_mode)


class Attributes(setups.SetupCase):
    """What files look like that were made under this mask, or in such a folder."""

    def compare_attributes(self, command, prepare=lambda folder: None, modes=("caching", "direct")):
        for label in ("native", *modes):
            os.makedirs(self.path(label))
            prepare(self.path(label))
        outcomes = self.compare(command, modes)
        expected = attributes(os.path.join(outcomes[0].folder, "out.nc"))
        for outcome in outcomes[1:]:
            self.assertEqual(attributes(os.path.join(outcome.folder, "out.nc")), expected)

    def test_the_programs_own_mask_holds(self):
        for mask in ("077", "002", "027"):
            script = f"umask {mask} && exec mpiexec --oversubscribe -n 2 {setups.program('writer')} out.nc"
            self.compare_attributes(["sh", "-c", script])
            for label in ("native", "caching", "direct"):
                shutil.rmtree(self.path(label))

    @unittest.skipUnless(os.geteuid() == 0, "gives folders away, which root can")
    def test_a_folders_group_is_inherited(self):
        def prepare(folder):
            os.chown(folder, 0, NOBODY)
            os.chmod(folder, 0o2775)
        self.compare_attributes(mpiexec(2, setups.program("writer"), "out.nc"), prepare)

    def test_a_file_that_is_there_keeps_its_owner_and_mode(self):
        def prepare(folder):
            with open(os.path.join(folder, "out.nc"), "w", encoding="utf-8") as file:
                file.write("older and longer " * 100000)
            os.chmod(os.path.join(folder, "out.nc"), 0o604)
        self.compare_attributes(mpiexec(2, setups.program("writer"), "out.nc"), prepare)


@unittest.skipUnless(os.geteuid() == 0, "runs programs as another user, which root can")
class AnotherUser(setups.SetupCase):
    def setUp(self):
        super().setUp()
        self.let_others_in()

    def test_root_starts_it_the_files_are_the_users(self):
        command = [*AS_NOBODY, *mpiexec(2, setups.program("writer"), "out.nc")]
        self.folder_of_nobody("native")
        native = self.native(command)
        for mode in setups.MODES:
            self.folder_of_nobody(mode)
            staged = self.staged(mode, command)
            self.assert_same(native, staged)
            self.assertEqual(attributes(staged.folder + "/out.nc"), attributes(native.folder + "/out.nc"))

    def test_a_file_that_he_may_not_open_again(self):
        """By his mask, or because he changes its mode while it is open; with root's servers and with his own."""
        for how in ("mask", "chmod"):
            program = [*mpiexec(1), setups.program("closed"), how, "out.nc"]
            self.folder_of_nobody(f"{how}.native")
            native = self.native([*AS_NOBODY, *program], label=f"{how}.native")
            self.assertEqual(native.out, "read\n")
            for mode in setups.MODES:
                for owner, (before, command) in {"root": ([], [*AS_NOBODY, *program]),
                                                 "his": ([*AS_NOBODY, "TMPDIR=/tmp"], program)}.items():
                    self.folder_of_nobody(f"{how}.{mode}.{owner}")
                    self.assert_same(native, self.staged(mode, command, f"{how}.{mode}.{owner}", before))
            self.folder_of_nobody(f"{how}.embedded")
            self.assert_same(native, self.staged("caching", program, f"{how}.embedded", [*AS_NOBODY, "TMPDIR=/tmp"],
                                                 ["--embedded"]))

    def test_he_sees_what_is_not_in_the_files_yet_wherever_that_is_kept(self):
        """In a job of several nodes it is not in /dev/shm."""
        with open(self.path("nodes"), "w", encoding="utf-8") as file:
            file.write("a\nb\n")
        look = ["sh", "-c", 'head -c 8 "${NESSIE_BOARDS#* }/board.0" > /dev/null']
        for label, nodes in {"one": "", "several": self.path("nodes")}.items():
            self.make(label)
            outcome = self.staged("caching", [*AS_NOBODY, *look], label=label, env={"PBS_NODEFILE": nodes})
            self.assertEqual(outcome.code, 0, outcome.err)
        self.assert_nothing_left()

    def test_servers_that_the_network_alone_reaches_open_by_name_but_not_as_root(self):
        command = mpiexec(2, setups.program("writer"), "out.nc")
        for label in ("native", "caching", "two"):
            self.folder_of_nobody(label)
        native = self.native([*AS_NOBODY, *command])
        network = {"NESSIE_STAGING_LISTEN": "ofi"}
        for mode in ("caching", "two"):
            staged = self.staged(mode, command, before=[*AS_NOBODY, "TMPDIR=/tmp"], env=network)
            self.assert_same(native, staged)
            self.assertEqual(attributes(staged.folder + "/out.nc"), attributes(native.folder + "/out.nc"))
        as_root = self.staged("caching", command, label="root", env=network)
        self.assert_same(native, as_root, must_be_staged=False)
        self.assertFalse(as_root.was_staged, as_root.err)
        self.assertIn("never as root", as_root.err)

    def test_what_the_user_may_not_enter_stays_closed(self):
        os.makedirs(self.path("private"), mode=0o700)
        precious = self.path("private/precious.nc")
        with open(precious, "w", encoding="utf-8") as file:
            file.write("of root")
        for name in ("private/precious.nc", "private/new.nc"):
            command = [*AS_NOBODY, *mpiexec(1, setups.program("names"), self.path(name))]
            self.compare(command, ["caching", "direct"], must_be_staged=False)
            for label in ("native", "caching", "direct"):
                shutil.rmtree(self.path(label))
        self.assertEqual(os.listdir(self.path("private")), ["precious.nc"])
        with open(precious, encoding="utf-8") as file:
            self.assertEqual(file.read(), "of root")

    def test_a_file_that_he_writes_loses_the_rights_of_its_owner(self):
        """Or he would fill a program of root's, that runs as root, with what he likes."""
        command = [*AS_NOBODY, *mpiexec(2, setups.program("overwrite"), "out.nc")]
        for label in ("native", *setups.MODES):
            self.run_in(label, mpiexec(1, setups.program("writer"), "out.nc"))
            os.chmod(self.path(f"{label}/out.nc"), 0o6777)
        for outcome in self.compare(command):
            self.assertEqual(attributes(f"{outcome.folder}/out.nc"), (0, 0, oct(0o100777)), outcome.err)

    def test_what_the_user_may_only_read_is_not_written(self):
        self.run_in("made", mpiexec(1, setups.program("writer"), self.path("shared.nc")))
        os.chmod(self.path("shared.nc"), 0o644)
        os.makedirs(self.path("locked"))
        shutil.move(self.path("shared.nc"), self.path("locked/shared.nc"))
        before = os.stat(self.path("locked/shared.nc")).st_mtime_ns
        command = [*AS_NOBODY, *mpiexec(1, setups.program("names"), self.path("locked/shared.nc"))]
        self.compare(command, ["caching"], must_be_staged=False)
        self.assertEqual(os.stat(self.path("locked/shared.nc")).st_mtime_ns, before)


@unittest.skipUnless(can("unshare", "-m", "true"), "makes mount name spaces, which takes rights")
class AnotherMountNameSpace(setups.SetupCase):
    """A container that shares the network: its files are its own, whatever lies outside under the same name."""

    def in_container(self, label):
        """The program writes into a folder that is its own in there; what it wrote is copied out by the container."""
        inside, outside = self.path("data"), self.path(label)
        script = (f"mount -t tmpfs none {inside} && cd {inside} && mpiexec --oversubscribe -n 2 "
                  f"{setups.program('writer')} out.nc && cp out.nc {outside}/")
        return ["unshare", "-m", "sh", "-c", script]

    def test_its_output_stays_inside_and_what_is_outside_stays(self):
        os.makedirs(self.path("data"))
        with open(self.path("data/out.nc"), "w", encoding="utf-8") as file:
            file.write("of the host")
        native = self.native(self.in_container("native"))
        self.assertEqual(native.code, 0, native.err)
        for mode in setups.MODES:
            staged = self.staged(mode, self.in_container(mode), env={"NESSIE_CLOSE": "durable"})
            self.assert_same(native, staged)
        with open(self.path("data/out.nc"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "of the host")


if __name__ == "__main__":
    setups.main()
