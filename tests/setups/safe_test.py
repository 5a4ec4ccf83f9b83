# SPDX-License-Identifier: BSD-3-Clause
"""PNETCDF_SAFE_MODE: processes whose arguments differ all get native PnetCDF's codes, staged."""
import setups
from harness import mpiexec


class SafeMode(setups.SetupCase):
    def compare_safe(self, who, modes, processes=3, value="1"):
        with self.subTest(who=who, processes=processes, value=value):
            command = mpiexec(processes, setups.program("safe"), str(who))
            native, *staged = self.compare_apart(command, modes, must_be_staged=False, env={"PNETCDF_SAFE_MODE": value})
            self.assertEqual(native.code, 0, native.err)
            for outcome in staged:
                self.assertNotIn("not staged", outcome.err)
            return native

    def test_one_process_with_other_arguments(self):
        for who in (0, 1):
            native = self.compare_safe(who, ["caching", "two"])
            for code in ("NC_EMULTIDEFINE_ATTR_VAL", "NC_EMULTIDEFINE_VAR_DIMIDS", "NC_EMULTIDEFINE_FNC_ARGS"):
                self.assertIn(f": {code} {code} {code}\n", native.out)

    def test_set_without_a_value_it_is_on(self):
        self.compare_safe(2, ["caching"], value="")

    def test_one_process_alone(self):
        self.compare_safe(1, ["caching"], processes=1)
        self.compare_safe(0, ["caching"], processes=1)

    @setups.sweep
    def test_the_same_in_every_mode(self):
        for processes in (2, 5):
            for who in range(processes):
                self.compare_safe(who, setups.MODES, processes)


if __name__ == "__main__":
    setups.main()
