# SPDX-License-Identifier: BSD-3-Clause
"""nessie slurm: what it writes, prints and returns."""
import json
import os
import stat
import unittest

from harness import NESSIE, ProcessTestCase

SCRIPT = "#!/bin/bash\n#SBATCH --ntasks=4\nsrun hostname\nsrun ./sim 'a b' \\\n  > log\n"


class Scripts(ProcessTestCase):
    def write(self, text=SCRIPT, name="job.sh"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), 0o750)
        return self.path(name)

    def read(self, name="job.sh"):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def slurm(self, *words):
        return self.run_command([NESSIE, "slurm", *words])

    def test_show_the_difference_and_stay_as_they_are(self):
        code, out, err = self.slurm(self.write())
        self.assertEqual(code, 0, err)
        self.assertIn("\n-srun ./sim 'a b' \\\n+", out)
        self.assertIn("job.sh:3: srun hostname: left as it is", err)
        self.assertIn("#SBATCH --ntasks=5", err)
        self.assertEqual(self.read(), SCRIPT)

    def test_are_written_elsewhere_or_in_place_with_their_mode(self):
        self.write()
        os.symlink("job.sh", self.path("link.sh"))
        for words, name in ((["-o", self.path("new.sh")], "new.sh"), (["--in-place"], "job.sh")):
            self.assertEqual(self.slurm(self.path("link.sh"), *words, "--", "--memory", "1 G")[0], 0)
            self.assertIn(" run --memory '1 G' -- srun ./sim 'a b' \\\n  > log\n", self.read(name))
            self.assertEqual(stat.S_IMODE(os.stat(self.path(name)).st_mode), 0o750)
        self.assertTrue(os.path.islink(self.path("link.sh")))
        code, out, _ = self.slurm(self.path("job.sh"))   # there is nothing left to do
        self.assertEqual((code, out), (0, ""))

    def test_as_json(self):
        code, out, _ = self.slurm("--json", self.write(SCRIPT + "eval 'srun ./b'\n"))
        told = json.loads(out)
        self.assertEqual((code, told["changed"], told["settled"]), (1, True, False))
        self.assertEqual([(each["line"], each["treatment"]) for each in told["commands"]],
                         [(3, "left"), (4, "rewritten"), (6, "doubtful")])

    def test_that_are_none_are_refused(self):
        self.assertEqual(self.slurm(self.path("absent"))[0], 2)
        code, _, err = self.slurm(self.write("#!/bin/bash\necho 'a\n"))
        self.assertEqual(code, 2)
        self.assertIn("job.sh: line 2: the quote does not end", err)

    def test_options_that_nessie_run_has_not_are_refused(self):
        script = self.write()
        for words, why in ((["--memroy", "4G"], "'--memroy'; did you mean '--memory'?"), (["2"], "'2' is none"),
                           (["--servers", "99"], "Value 99 not in range"), (["--help"], "no option '--help'")):
            code, out, err = self.slurm("--in-place", script, "--", *words)
            self.assertEqual((code, out), (2, ""), err)
            self.assertIn(why, err)
        self.assertEqual(self.read(), SCRIPT)

    def test_without_a_parallel_program_are_told(self):
        code, _, err = self.slurm(self.write("#!/bin/bash\n./run_all.sh\n"))
        self.assertEqual(code, 1)
        self.assertIn("nothing here starts a parallel program", err)

    def test_are_not_submitted_where_something_is_in_doubt(self):
        code, _, err = self.slurm("--submit", self.write("eval 'srun ./b'\n"))
        self.assertEqual(code, 1, err)


if __name__ == "__main__":
    unittest.main()
