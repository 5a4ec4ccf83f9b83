#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""./dev clients, without any public program: what it reads, compares and prints, and whole runs of a small stand-in."""
import json
import os
import stat
import sys
import tempfile
import unittest

import clients
import clients_cases
import clients_files
import clients_runs
import clients_table
from clients_cases import CASES
from harness import BUILD, ProcessTestCase

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = [sys.executable, "-B", os.path.join(HERE, "clients.py")]
WRITER = os.path.join(BUILD, "tests", "setups", "writer")
PRINTED = {   # excerpts, as the programs print them
    "s3d 64^3 blocking": (" write bandwidth     :      181.61 MiB/s\n total I/O   time    :        1.01 sec\n"
                          " I/O   bandwidth     :      159.15 MiB/s\n", {"": 159.15}),
    "ior collective": ("apiVersion : 1.12.3\nwrite     2127.87    2214.43    0.003609    32768\n"
                       "read      2304.39    2347.89    0.003363    32768\nwrite        2127.87    2127.87\n",
                       {"write": 2127.87, "read": 2304.39}),
    "btio blocking": ("    Time in sec              :        0.41\n    I/O bandwidth            :       571.05 MiB/s\n",
                      {"": 571.05}),
    "e3sm F": ("I/O bandwidth in MiB/sec (write-only)      = 10.8921\nI/O bandwidth in MiB/sec (open-to-close)   = 9.7912\n"
               "I/O bandwidth in GiB/sec (open-to-close)   = 0.0096\nI/O bandwidth in MiB/sec (open-to-close)   = 7.2687\n",
               {"h0": 9.7912, "h1": 7.2687}),
    "flash blocking": (" nproc    array size      exec (sec)   bandwidth (MiB/s)\n"
                       "    8     8 x   8 x   8      0.64      114.96\n", {"": 114.96}),
    "aggregation": ("Write bandwidth           =           6.75 MiB/s =      0.01 GiB/s\n"
                    "Read  bandwidth           =           5.90 MiB/s =      0.01 GiB/s\n", {"write": 6.75, "read": 5.9}),
    "pnetcdf_put_vara": ("Write bandwidth:           210.31 MiB/s\nMax open-to-close time:    0.6212 sec\n"
                         "Write bandwidth:           206.04 MiB/s\n", {"": 206.04}),
}


def case_called(name):
    return next(case for case in CASES if case.name == name)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="nt-")
        self.addCleanup(clients_runs.subprocess.run, ["rm", "-rf", self.folder], check=True)

    def write(self, name, data=b"", mode=0o644):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode)
        return path


class Cases(Folder):
    def test_rates_are_read_from_what_each_program_prints(self):
        for name, (printed, rates) in PRINTED.items():
            with self.subTest(name):
                self.assertEqual(case_called(name).rates(printed), rates)

    def test_rates_that_are_not_printed_are_none(self):
        self.assertEqual(case_called("e3sm I").rates("I/O bandwidth in MiB/sec (open-to-close)   = 9.7\n"),
                         {"h0": 9.7, "h1": None})
        self.assertEqual(case_called("s3d 64^3 alone").rates(" I/O   bandwidth     :  ********* MiB/s\n"), {"": None})

    def test_names_are_unlike(self):
        self.assertEqual(len(CASES), len({case.name for case in CASES}))

    def test_find_takes_the_nearest_that_may_be_executed(self):
        self.write("a/b/ior", mode=0o755)
        near = self.write("z/ior", mode=0o755)
        self.write("ior", mode=0o644)
        self.write(".hidden/btio", mode=0o755)
        data = self.write("z/datasets/map_f_case_16p.nc")
        self.assertEqual(clients_cases.find(self.folder), {"ior": near, "map_f_case_16p.nc": data})

    def test_commands_name_what_was_found(self):
        found = {"e3sm_io": "/p/e3sm_io", "map_f_case_16p.nc": "/p/map", "btio": "/p/btio"}
        self.assertEqual(case_called("e3sm F").command(found, "/o", "/s"), ["/p/e3sm_io", "-k", "-o", "/o/f.nc", "/p/map"])
        self.assertEqual(case_called("btio nonblocking").command(found, "/o", "/s"), ["/p/btio", "/s"])
        self.assertEqual(case_called("btio nonblocking").settings.format(out="/o").splitlines()[1::3], ["3", "/o"])


class Files(Folder):
    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, clients_files, "CHUNK_BYTES", clients_files.CHUNK_BYTES)
        clients_files.CHUNK_BYTES = 10   # so that small files have several pieces

    def run_with(self, label, **files):
        for name, data in files.items():
            self.write(f"{label}/{name}", data)
        return os.path.join(self.folder, label)

    def reference(self, first, *others):
        reference = clients_files.Reference(self.run_with("first", x=first))
        for number, data in enumerate(others):
            reference.add(self.run_with(f"other{number}", x=data))
        return reference

    def verdict(self, reference, data):
        verdict = reference.compare(self.run_with("staged", x=data))
        return verdict.said, verdict.left_out_bytes

    def test_same_bytes_are_the_same(self):
        self.assertEqual(self.verdict(self.reference(b"a" * 25), b"a" * 25), ("same", 0))

    def test_the_first_difference_is_told(self):
        self.assertEqual(self.verdict(self.reference(b"a" * 25), b"a" * 23 + b"bb"), ("differ: x at 23", 0))

    def test_bytes_that_native_runs_disagree_on_are_left_out(self):
        native = b"a" * 40
        reference = self.reference(native, native[:21] + b"b" + native[22:], native[:23] + b"c" + native[24:])
        self.assertEqual(self.verdict(reference, native[:21] + b"xyz" + native[24:]), ("differ: x at 22", 2))
        self.assertEqual(self.verdict(reference, native[:21] + b"xaz" + native[24:]), ("same", 2))

    def test_where_native_runs_disagree_on_much_nothing_can_be_told(self):
        self.assertEqual(self.verdict(self.reference(b"a" * 20, b"b" * 3 + b"a" * 17), b"a" * 20),
                         ("cannot tell: too many bytes differ between native runs", 3))
        said, _ = self.verdict(self.reference(b"a" * 20, b"a" * 21), b"a" * 20)
        self.assertEqual(said, "cannot tell: native runs left files of other names or lengths")

    def test_files_of_other_lengths_or_names_differ(self):
        reference = self.reference(b"a" * 20)
        self.assertEqual(self.verdict(reference, b"a" * 19), ("differ: x has 19 bytes, natively 20", 0))
        more = reference.compare(self.run_with("staged", x=b"a" * 20, y=b""))
        self.assertEqual(more.said, "differ: y has 0 bytes, natively no")

    def test_no_file_is_no_reference(self):
        os.mkdir(os.path.join(self.folder, "empty"))
        reference = clients_files.Reference(os.path.join(self.folder, "empty"))
        self.assertFalse(reference.compare(os.path.join(self.folder, "empty")).is_same)


class Runs(Folder):
    @classmethod
    def setUpClass(cls):
        clients_runs.adopt_orphans()

    def execute(self, script, limit_s=60):
        return clients_runs.execute([sys.executable, "-c", script], dict(os.environ), self.folder, limit_s)

    def test_what_it_printed_and_its_exit_code_are_kept(self):
        outcome = self.execute("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
        self.assertEqual((outcome.code, outcome.out, outcome.err, outcome.was_stopped), (3, "out\n", "err\n", False))

    def test_processor_time_of_those_that_outlive_their_parents_counts(self):
        spin = "while time.process_time() < 0.3: pass"
        outcome = self.execute(f"import os, time\nif os.fork() == 0:\n  os.setsid()\n  {spin}\n")
        self.assertGreaterEqual(outcome.cpu_s, 0.3)
        self.assertGreaterEqual(outcome.time_s, 0.3)

    def test_who_does_not_end_in_time_is_ended_with_all_that_it_started(self):
        self.addCleanup(setattr, clients_runs, "PATIENCE_S", clients_runs.PATIENCE_S)
        clients_runs.PATIENCE_S = 0.2
        ignore = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork(); time.sleep(3600)"
        outcome = self.execute(ignore, 0.5)
        self.assertTrue(outcome.was_stopped)
        self.assertEqual(outcome.code, -9)
        self.assertEqual(clients_runs.descendants(), set())

    def test_a_rival_is_a_folder_and_variables(self):
        rival = clients_runs.rival("bb=/lib/bb,PNETCDF_HINTS=nc_burst_buf=enable;nc_burst_buf_dirname={folder}")
        environment = rival.set_for("ompio", "/there")
        self.assertEqual((rival.name, rival.kind), ("bb", "rival"))
        self.assertEqual(environment["LD_LIBRARY_PATH"].split(":")[0], "/lib/bb")
        self.assertEqual(environment["PNETCDF_HINTS"], "nc_burst_buf=enable;nc_burst_buf_dirname=/there")
        self.assertEqual(environment["OMPI_MCA_io"], "ompio")
        for wrong in ("bb", "=/lib", "bb=/lib,PNETCDF_HINTS"):
            self.assertRaises(ValueError, clients_runs.rival, wrong)

    def test_a_rival_whose_library_is_not_taken_is_refused(self):
        self.assertIn("symbolic link", clients_runs.misses(clients_runs.rival(f"other={self.folder}"), WRITER))
        own = clients_runs.library_of(WRITER, dict(os.environ))
        os.symlink(own, os.path.join(self.folder, os.path.basename(own)))
        self.assertIsNone(clients_runs.misses(clients_runs.rival(f"other={self.folder}"), WRITER))


def result(variant, kind, *rates, files="", **run):
    """Of a case with a rate for writing and one for reading; its runs have those of `rates`."""
    runs = [clients_table.Run(2.0, 1.0, {"write": write, "read": read}, **run) for write, read in rates]
    return clients_table.Result("case", 8, "/dev/shm", variant, kind, "ompio", runs, files)


class Table(unittest.TestCase):
    def test_medians_are_side_by_side_in_a_line_for_each_rate(self):
        native = result("native", "native", (100, 50), (300, 50), (200, 50))
        ours = result("caching", "staged", (400, 25), (600, 25), (200, 25), files="same", memory_high_bytes=3 << 20)
        rival = result("new", "rival", (120, 60), files="same")
        _, *lines = clients_table.table([native, ours, rival]).splitlines()
        self.assertEqual([line.split() for line in lines],
                         ["case 8 caching write 200 → 400 2.00 2.00 → 2.00 1.00 → 1.00 3 MiB same 120".split(),
                          "read 50.0 → 25.0 0.50 60.0".split()])

    def test_a_ratio_is_taken_within_each_repetition(self):
        native = result("native", "native", (100, 50), (200, 50), (1000, 50))
        self.assertEqual(result("caching", "staged", (300, 50), (400, 50), (1000, 50)).ratio(native, "write"), 2.0)
        self.assertIsNone(result("caching", "staged", (None, 50)).ratio(native, "write"))

    def test_runs_with_a_problem_do_not_count_but_are_told(self):
        ours = result("caching", "staged", (400, 25), files="same")
        ours.runs.append(clients_table.Run(0.1, 0.1, {"write": 9e9}, problem="ended with 1"))
        self.assertEqual(ours.rate("write"), 400)
        self.assertFalse(ours.is_well())
        self.assertIn("ended with 1", clients_table.table([result("native", "native", (1, 1)), ours]))

    def test_bytes_that_were_left_out_are_told(self):
        ours = result("caching", "staged", (400, 25), files="same")
        ours.left_out_bytes = 7
        self.assertTrue(ours.is_well())
        self.assertIn("same (7 bytes left out)", clients_table.table([result("native", "native", (1, 1)), ours]))

    def test_a_rivals_trouble_is_told_below(self):
        rival = result("new", "rival", (120, 60), files="differ: x at 0")
        self.assertEqual(clients_table.remarks([rival]), ["case, new: differ: x at 0"])


class Problems(Folder):
    def problem(self, name, variant, out="", code=0, summary=None):
        bench = clients.Bench(case_called(name), {}, self.folder, 60)
        return bench.problem(variant, clients_runs.Outcome(code, out, "", 1.0, 1.0, False), summary)

    def test_a_program_that_read_back_what_is_wrong_has_a_problem_though_it_ends_with_0(self):
        self.assertIn("Incorrect data", self.problem("ior collective", clients_runs.NATIVE,
                                                     "WARNING: Incorrect data on read (3 errors found).\n"))
        self.assertIsNone(self.problem("ior collective", clients_runs.NATIVE, "read 2304.39\n"))

    def test_a_file_that_was_native_in_a_staged_run_is_one(self):
        staged = clients_runs.staged("nessie", "caching")
        summary = {"native": ["/x: a hint"], "bytes_staged": 5, "bytes_read": 0, "left_native": 0}
        self.assertEqual(self.problem("e3sm F", staged, summary=summary), "not staged: /x: a hint")
        self.assertIsNone(self.problem("e3sm F", staged, summary={**summary, "native": []}))
        left = {**summary, "native": [], "bytes_staged": 0, "left_native": 1}
        self.assertIsNone(self.problem("e3sm F", staged, summary=left))
        self.assertEqual(self.problem("e3sm F", staged), "there is no summary")


class Layers(Folder):
    def layer_of(self, **rates):
        """That which is chosen if the tries on each layer have those rates, one after the other; None: it fails."""
        bench = clients.Bench(case_called("btio blocking"), {}, self.folder, 60)
        def next_run(layer):
            rate = rates[layer].pop(0)
            return clients_table.Run(1.0, 1.0, {"": rate}, problem=None if rate else "ended with 1")
        bench.try_layer = next_run
        layer, failed = bench.faster_layer()
        self.assertEqual((bool(failed), any(rates.values())), (layer is None, False))
        return layer

    def test_the_faster_one_is_taken(self):
        self.assertEqual(self.layer_of(romio321=[500], ompio=[100]), "romio321")
        self.assertEqual(self.layer_of(romio321=[10], ompio=[100]), "ompio")

    def test_what_decides_little_is_tried_again(self):
        self.assertEqual(self.layer_of(romio321=[90, 300], ompio=[200, 200]), "romio321")

    def test_one_that_fails_is_not_taken(self):
        self.assertEqual(self.layer_of(romio321=[None], ompio=[1]), "ompio")
        self.assertEqual(self.layer_of(romio321=[100, None], ompio=[90, 90]), "ompio")
        self.assertIsNone(self.layer_of(romio321=[None], ompio=[None]))


class Whole(ProcessTestCase):
    """Runs of a stand-in called s3d_io.x, whose ninth argument is the folder for its files."""

    def stand_in(self, text):
        path = self.path("programs/bin/s3d_io.x")
        os.makedirs(os.path.dirname(path))
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, stat.S_IRWXU)

    def run_clients(self, *options):
        """(exit code, {name of a run: what --json says of it}, stderr)."""
        os.mkdir(self.path("files"))
        command = [*CLIENTS, self.path("programs"), "--build-dir", BUILD, "--dir", self.path("files"), "--json", "--only",
                   "s3d 64^3 alone", "--repetitions", "1", "--memory", "64M", *options]
        code, out, err = self.job(command, env={"OMPI_MCA_rmaps_base_oversubscribe": "1"}).finish()
        self.assertEqual(os.listdir(self.path("files")), [], err)
        return code, {line["run"]: line for line in map(json.loads, out.splitlines())}, err

    def test_a_program_is_run_in_each_mode_and_compared(self):
        self.stand_in(f'echo " I/O   bandwidth     :      159.15 MiB/s"; exec {WRITER} "$9/a.nc" 0.1 2')
        code, runs, err = self.run_clients()
        self.assertEqual(code, 0, err)
        self.assertLessEqual({"native", "caching", "direct"}, runs.keys())
        for name, run in runs.items():
            self.assertEqual((run["files"], run["problem"], run["rates_MiBps"]),
                             ("" if name == "native" else "same", None, {"": 159.15}))
        self.assertGreater(runs["caching"]["memory_high_bytes"], 0)
        self.assertGreater(runs["caching"]["cpu_s"], 0)

    def test_a_file_that_differs_is_told_and_fails(self):
        self.stand_in(f'exec {WRITER} "$9/a.nc" 0.1 ${{NESSIE_SERVERS:+3}}')
        code, runs, err = self.run_clients("--mode", "direct")
        self.assertEqual(code, 1, err)
        self.assertRegex(runs["direct"]["files"], r"^differ: a\.nc has \d+ bytes, natively \d+$")

    def test_a_program_that_is_not_staged_fails(self):
        self.stand_in('echo data > "$9/a.nc"')
        code, runs, err = self.run_clients("--mode", "caching")
        self.assertEqual(code, 1, err)
        self.assertEqual(runs["caching"]["problem"], "not staged: the program is not reached")

    def test_a_program_that_fails_natively_is_told_and_fails(self):
        self.stand_in("echo trouble >&2; exit 3")
        code, runs, err = self.run_clients("--mode", "caching")
        self.assertEqual((code, list(runs)), (1, ["native"]), err)
        self.assertIn("ended with 3", runs["native"]["problem"])
        self.assertIn("trouble", err)

    def test_what_cannot_be_done_is_refused(self):
        os.makedirs(self.path("programs"))
        code, runs, err = self.run_clients()
        self.assertEqual((code, runs), (2, {}))
        self.assertIn("no program that is wanted", err)
        for option, value, why in (("--mode", "fast", "no mode fast"), ("--rival", "new", "NAME=FOLDER"),
                                   ("--dir", self.path("nowhere"), "there is no folder"), ("--repetitions", "0", "1 or more")):
            os.rmdir(self.path("files"))
            code, _, err = self.run_clients(option, value)
            self.assertEqual(code, 2)
            self.assertIn(why, err)


if __name__ == "__main__":
    unittest.main()
