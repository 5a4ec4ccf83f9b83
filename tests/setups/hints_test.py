# SPDX-License-Identifier: BSD-3-Clause
"""Hints of the program, for MPI-IO between its processes: they change nothing of what is in the file."""
import setups
from harness import mpiexec

QUICK = [("romio_cb_write", "enable"), ("romio_cb_pfr", "enable"), ("nc_burst_buf", "enable")]
ALL = [*QUICK, ("romio_cb_read", "enable"), ("romio_cb_fr_types", "enable"), ("romio_no_indep_rw", "true"),
       ("romio_ds_write", "enable"), ("romio_ds_read", "enable"), ("cb_nodes", "2"), ("cb_buffer_size", "65536"),
       ("ind_wr_buffer_size", "4096"), ("nc_ibuf_size", "4096"), ("nc_var_align_size", "512")]


class Hints(setups.SetupCase):
    def compare_hints(self, hints, modes):
        for hint in hints:
            with self.subTest(hint=hint):
                for staged in self.compare_apart(mpiexec(2, setups.program("hints"), *hint), modes)[1:]:
                    self.assertNotIn("not staged", staged.err)

    def test_hints_of_the_call(self):
        self.compare_hints(QUICK, ["two"])

    @setups.sweep
    def test_more_hints_in_every_mode(self):
        self.compare_hints(ALL, list(setups.MODES))

    def test_hints_of_the_environment(self):
        with open(self.path("hints"), "w", encoding="utf-8") as file:
            file.write("romio_cb_write enable\nromio_cb_pfr enable\n")
        env = {"PNETCDF_HINTS": "romio_cb_write=enable;romio_cb_pfr=enable", "ROMIO_HINTS": self.path("hints")}
        self.compare(mpiexec(2, setups.program("hints")), ["two"], env=env)


if __name__ == "__main__":
    setups.main()
