# SPDX-License-Identifier: BSD-3-Clause
"""Clients and servers of fields.x in every language, in front of each other. README.md.

Each transport's table says of each client (a row) and each server (a column) whether all was so that the client checks.
"""
import json
import os
import select
import signal
import unittest

from harness import BUILD, DEADLINE_S, NESSIE, ProcessTestCase, marked_processes, mpiexec, read_file, wait_until

LANGUAGES = ("c", "cxx", "fortran", "python")
ON_THIS_NODE = {"NESSIE_NNTI_OFI_PROVIDER": "tcp", "NESSIE_NNTI_OFI_ADDRESS": "127.0.0.1",
                "NESSIE_NNTI_UCX_TLS": "tcp", "NESSIE_NNTI_UCX_ADDRESS": "127.0.0.1"}
ASAN = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "detect_leaks=0")))
OWN = {"fortran": {"ASAN_OPTIONS": ASAN}}   # gfortran 12 does not free what constructors of arguments allocate


def peer(language):
    return os.path.join(BUILD, "tests", f"fields_peer_{language}")


def table(transport, passed, languages):
    """Of what `passed` has for (client, server)."""
    lines = ["".join(f"{word:<10}" for word in (transport, *languages))]
    for client in languages:
        words = ("ok" if passed[client, server] else "NOT OK" for server in languages)
        lines.append("".join(f"{word:<10}" for word in (client, *words)))
    return "\n".join(line.rstrip() for line in lines)


class Matrix(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.env.update(ON_THIS_NODE)
        self.languages = [language for language in LANGUAGES if os.path.exists(peer(language))]

    def start_server(self, language, transport, *place):
        """The job, and its URL."""
        job = self.job([peer(language), "serve", transport, *place])
        ready, _, _ = select.select([job.process.stdout], [], [], DEADLINE_S)
        url = job.process.stdout.readline().strip() if ready else ""
        self.assertTrue(url.startswith(transport + ":"), f"the server in {language} has no URL, but: {url}")
        return job, url

    def call_all(self, server, transport):
        """What the clients say who are at one server at once: nothing, of those who have nothing to say. Over shm they
        find it by its contact file, otherwise by its URL."""
        place = ["file:" + os.path.join(self.folder, f"contact-{server}")] if transport == "shm" else []
        job, url = self.start_server(server, transport, *place)
        clients = {language: self.job([peer(language), "call", transport, *(place or [url])], env=OWN.get(language))
                   for language in self.languages}
        said = {}
        for language, client in clients.items():
            code, out, err = client.finish()
            said[language] = "" if (code, out) == (0, "0 faults\n") else f"exit code {code}\n{out}{err}"
        ended = job.process.poll() is not None
        job.process.kill()
        _, out, err = job.finish()
        self.assertFalse(ended, f"the server in {server} ended:\n{out}{err}")
        return said

    def call_all_as_ranks(self, server, transport):
        """The same, but all are ranks of one job, and begin together: clients find the server by the launcher."""
        place = "pmix:languages/fields"
        files = {language: os.path.join(self.folder, f"{language}-at-{server}") for language in self.languages}
        command = mpiexec(1, peer(server), "serve", transport, place)
        for language, file in files.items():
            own = [f"{name}={value}" for name, value in OWN.get(language, {}).items()]
            command += [":", "-n", "1", "env", *own, "sh", "-c", f'exec "$0" "$@" >{file} 2>&1',
                        peer(language), "call", transport, place]
        job = self.job(command)

        def said():
            words = {language: read_file(file).decode() for language, file in files.items() if os.path.exists(file)}
            over = len(words) == len(files) and all("faults\n" in each or "error" in each for each in words.values())
            return words if over or job.process.poll() is not None else None
        words = dict.fromkeys(files, "nothing") | wait_until(said, "all clients' last words")
        for process in marked_processes(self.mark):   # they end together, or as one that is killed
            if "serve" in process.words and process.name != "mpiexec":
                os.kill(process.pid, signal.SIGKILL)
        _, out, err = job.finish()
        return {language: "" if each == "0 faults\n" else each + out + err for language, each in words.items()}

    def check(self, transport, call_all=None):
        said = {}
        for server in self.languages:
            for client, words in (call_all or self.call_all)(server, transport).items():
                said[client, server] = words
        print("\n" + table(transport, {pair: not words for pair, words in said.items()}, self.languages), flush=True)
        faults = [f"{client} at {server}: {words}" for (client, server), words in said.items() if words]
        if faults:
            self.fail("\n" + "\n".join(faults))
        self.assert_nothing_left()

    def transports(self):
        code, out, err = self.run_command([NESSIE, "info", "--json", "--no-test"])
        self.assertEqual(code, 0, err)
        return [each["name"] for each in json.loads(out)["transports"] if each["available"]]

    def check_if_there(self, transport, call_all=None):
        if transport not in self.transports():
            self.skipTest(f"this machine has no transport {transport}")
        self.check(transport, call_all)

    def test_the_languages_of_this_build(self):
        self.assertEqual(self.languages[:3], ["c", "cxx", "fortran"])

    def test_every_pair_over_shm(self):
        self.check_if_there("shm")

    def test_every_pair_over_ofi(self):
        self.check_if_there("ofi")

    def test_every_pair_over_ucx(self):
        self.check_if_there("ucx")

    def test_every_pair_over_mpi(self):
        self.check_if_there("mpi", self.call_all_as_ranks)


if __name__ == "__main__":
    unittest.main()
