# SPDX-License-Identifier: BSD-3-Clause
"""What each language writes to a stream, each other one reads: those who come while it is written, and late ones."""
import os
import unittest

from harness import BUILD, ProcessTestCase
from matrix_test import LANGUAGES, OWN, table


def peer(language):
    return os.path.join(BUILD, "tests", f"streams_peer_{language}")


class StreamsMatrix(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.languages = [language for language in LANGUAGES if os.path.exists(peer(language))]
        self.server = self.job([os.path.join(BUILD, "bin", "nessie-streams")])
        self.server.process.stdout.readline()   # its URL: it is there

    def start(self, language, what, name):
        return self.job([peer(language), what, name], env=OWN.get(language))

    def said_by(self, job):
        """Nothing, if all was as it should be."""
        code, out, err = job.finish()
        return "" if (code, out) == (0, "0 faults\n") else f"exit code {code}\n{out}{err}"

    def stop_server(self):
        self.server.process.terminate()
        code, out, err = self.server.finish()
        self.assertEqual(code, 0, out + err)
        self.assert_nothing_left()

    def test_every_language_reads_what_every_other_writes(self):
        said = {}
        for writer in self.languages:
            early = {language: self.start(language, "read", writer) for language in self.languages[::2]}
            written = self.said_by(self.start(writer, "write", writer))
            late = {language: self.start(language, "read", writer) for language in self.languages[1::2]}
            for reader, job in (early | late).items():
                said[reader, writer] = written + self.said_by(job)
        print("\n" + table("streams", {pair: not words for pair, words in said.items()}, self.languages), flush=True)
        faults = [f"{reader} of {writer}: {words}" for (reader, writer), words in said.items() if words]
        self.assertFalse(faults, "\n" + "\n".join(faults))
        self.stop_server()

    def test_what_is_particular_to_fortran(self):
        code, out, err = self.run_command([os.path.join(BUILD, "tests", "fortran_streams_test")], env=OWN["fortran"])
        self.assertEqual((code, out), (0, "all is so\n"), out + err)
        self.stop_server()


if __name__ == "__main__":
    unittest.main()
