# SPDX-License-Identifier: BSD-3-Clause
"""What nobody has written is what it is natively: fill values where there are any, and otherwise zeros; never what has
been in a server's memory before."""
import os
import signal

import setups
from harness import NESSIE, mpiexec, wait_until

SERVERS = {
    "caching": ["-m", "caching", "-M", "8M"],
    "direct": ["-m", "direct", "-M", "8M"],
    "two": ["-s", "2", "-m", "caching", "-M", "4M"],
    "logged": ["-s", "2", "-M", "4M", "--durability", "logged"],
    "replicated": ["-s", "2", "-M", "24M", "--durability", "replicated"],
}


class Fill(setups.SetupCase):
    def command(self, *place):
        return mpiexec(2, setups.program("fill"), *place)

    def native_files(self):
        """By ROMIO: OMPIO writes what is in its memory into some of the holes."""
        outcome = self.native(self.command(), env={"OMPI_MCA_io": "romio321"})
        self.assertEqual(outcome.code, 0, outcome.err)
        return outcome

    def test_in_every_mode(self):
        native = self.native_files()
        for label, options in SERVERS.items():
            with self.subTest(mode=label):
                staged = self.run_in(label, [NESSIE, "run", *options, "--", *self.command()])
                self.assert_same(native, staged)

    def run_killed(self, place, durability, servers=(0, 1)):
        """These are killed, one after the other, while parts of pages are in their memory only."""
        label = f"{place}.{durability}"
        logs = self.make(f"logs.{label}")
        command = [NESSIE, "run", *SERVERS[durability], "--log", logs, "--", *self.command(place)]
        job = self.job(command, cwd=self.make(label), env={"OMPI_MCA_rmaps_base_oversubscribe": "1"},
                       errors="backslashreplace")
        ready = self.path(f"{label}/ready")
        for path in ("plain", "filled"):
            wait_until(lambda: os.path.exists(ready) or job.process.poll() is not None, f"{path} to wait")
            if job.process.poll() is not None:
                break
            for index in servers:
                self.kill_server(job, index)
            with open(self.path(f"{label}/go"), "w", encoding="utf-8"):
                pass
            wait_until(lambda: not os.path.exists(ready), "it to go on")
        return setups.Outcome(self.path(label), *job.finish())

    def kill_server(self, job, index):
        def server():
            found = [each for each in job.descendants("nessied") if ["--index", str(index)] == each.words[3:5]]
            return found[0] if found else None
        victim = wait_until(server, f"server {index}")
        url = os.path.join(victim.words[victim.words.index("--run-dir") + 1], f"server.{index}.url")
        wait_until(lambda: os.path.exists(url), url)
        os.kill(victim.pid, signal.SIGKILL)
        def next_one():
            found = server()
            return found and found.pid != victim.pid and os.path.exists(url)
        wait_until(next_one, "the next one")

    def test_when_servers_have_been_killed(self):
        native = self.native_files()
        for place in ("data", "redef", "again"):
            with self.subTest(place=place):
                self.assert_same(native, self.run_killed(place, "logged"), must_be_staged=False)
        self.assert_same(native, self.run_killed("data", "replicated", servers=(1,)), must_be_staged=False)


if __name__ == "__main__":
    setups.main()
