# SPDX-License-Identifier: BSD-3-Clause
"""nessie info: what it says of this machine and of a peer, and what it measures."""
import json
import unittest

from harness import NESSIE, ProcessTestCase

MEASURED = ("connect_ms", "half_round_trip_us", "get_mapped_MBps", "put_mapped_MBps", "get_own_MBps", "put_own_MBps",
            "register_1MiB_us")
LOOPBACK = {"NESSIE_NNTI_OFI_ADDRESS": "127.0.0.1"}


def facts_of(info, transport):
    found = next(t for t in info["transports"] if t["name"] == transport)
    return {fact["name"]: fact["value"] for fact in found["facts"]}


class InfoTestCase(ProcessTestCase):
    def info(self, *options, expected_code=0, env=None):
        code, out, err = self.run_command([NESSIE, "info", "--json", *options], env={**LOOPBACK, **(env or {})})
        self.assertEqual(code, expected_code, out + err)
        return json.loads(out)

    def info_to_server(self, *options, listen="shm,ofi", url="$NESSIE_SERVERS", run_options=()):
        """What `nessie info --to` says of the staging server of a session that it runs in."""
        words = " ".join([NESSIE, "info", "--json", "--to", f'"{url}"', *options])
        code, out, err = self.nessie_run(["sh", "-c", words], run_options,
                                         env={**LOOPBACK, "NESSIE_STAGING_LISTEN": listen})
        return code, json.loads(out) if out else None, err

    def assert_measured(self, probe):
        self.assertNotIn("error", probe)
        for metric in MEASURED:
            self.assertGreater(probe[metric], 0, metric)


class ThisMachine(InfoTestCase):
    def test_every_available_transport_is_tested(self):
        info = self.info()
        by_name_only = ("taken only when asked for by name", "used only if named")   # mpi; what has nothing but TCP
        available = [t["name"] for t in info["transports"]
                     if t["available"] and not any(words in t["explanation"] for words in by_name_only)]
        self.assertIn("inproc", available)
        self.assertIn("shm", available)
        tested = {probe["transport"]: probe for probe in info["urls"] if probe["reached"]}
        self.assertEqual(sorted(tested), sorted(available))
        for probe in tested.values():
            self.assert_measured(probe)
        self.assert_nothing_left()

    def test_two_processes_use_shared_memory_and_it_says_why_not_the_others(self):
        chosen = self.info()["chosen"]
        self.assertEqual(chosen["transport"], "shm")
        self.assertIn("inproc: no endpoint of this process", chosen["explanation"])
        self.assert_measured(chosen)

    def test_without_the_test_starts_nobody(self):
        info = self.info("--no-test")
        self.assertEqual((info["chosen"], info["urls"]), (None, []))
        self.assertGreater(len(info["transports"]), 1)

    def test_says_which_setting_a_threshold_comes_from(self):
        info = self.info("--no-test", env={"NESSIE_NNTI_SPIN_US": "7", "NESSIE_NNTI_JOB_SIZE": "2000"})
        thresholds = " ".join(fact["value"] for fact in info["thresholds"])
        self.assertIn("7 us (nnti.spin_us; from NESSIE_NNTI_SPIN_US)", thresholds)
        self.assertIn("nnti.send_queue; default", thresholds)
        self.assertEqual(facts_of(info, "shm")["mailbox"],
                         "2624 bytes each way of a connection, for a job of 2000 "
                         "(nnti.job_size; from NESSIE_NNTI_JOB_SIZE)")

    def test_says_how_memory_moves_where_cross_memory_attach_is_off(self):
        chosen = self.info(env={"NESSIE_NNTI_SHM_CMA": "off"})["chosen"]
        self.assertIn("relayed by its owner, because nnti.shm.cma is off", chosen["explanation"])
        self.assert_measured(chosen)

    def test_names_the_setting_that_it_cannot_read(self):
        code, _, err = self.run_command([NESSIE, "info"], env={"NESSIE_NNTI_SPIN_US": "soon"})
        self.assertEqual(code, 1)
        self.assertIn("nnti.spin_us", err)

    def test_for_people_says_the_same(self):
        code, out, err = self.run_command([NESSIE, "info"], env=LOOPBACK)
        self.assertEqual(code, 0, out + err)
        for text in ("in order of preference", "Thresholds:", "cross-memory attach", "chosen: shm", "8 B one way"):
            self.assertIn(text, out)
        self.assertEqual(err, "")


class APeer(InfoTestCase):
    def test_that_is_a_staging_server_is_reached_by_the_nearest_transport_and_tested(self):
        code, info, err = self.info_to_server()
        self.assertEqual(code, 0, err)
        self.assertEqual(info["chosen"]["transport"], "shm")
        self.assertIn("ofi: comes after shm", info["chosen"]["explanation"])
        self.assert_measured(info["chosen"])
        self.assertEqual([(probe["transport"], "connect_ms" in probe) for probe in info["urls"]],
                         [("shm", False), ("ofi", False)])
        self.assert_nothing_left()

    def test_is_tested_over_every_transport_that_reaches_it_if_asked(self):
        code, info, err = self.info_to_server("--all")
        self.assertEqual(code, 0, err)
        self.assertEqual([probe["transport"] for probe in info["urls"]], ["shm", "ofi"])
        for probe in info["urls"]:
            self.assert_measured(probe)
        self.assert_nothing_left()

    def test_of_which_one_url_is_dead_is_reached_by_another(self):
        code, info, err = self.info_to_server(url="ofi://127.0.0.1:1?node=elsewhere;$NESSIE_SERVERS;pigeon://coop/7",
                                              listen="shm")
        self.assertEqual(code, 0, err)
        self.assertEqual([probe["reached"] for probe in info["urls"]], [False, True, False])
        self.assertIn("another node", info["urls"][0]["explanation"])
        self.assertIn("no transport is called 'pigeon'", info["urls"][2]["explanation"])
        self.assertEqual(info["chosen"]["transport"], "shm")

    def test_that_wants_another_credential_is_named_as_such(self):
        words = f'NESSIE_CREDENTIAL={"0" * 64} {NESSIE} info --to "$NESSIE_SERVERS"'
        code, out, _ = self.nessie_run(["sh", "-c", words])
        self.assertEqual(code, 1)
        self.assertIn("credential", out)
        self.assert_nothing_left()

    def test_that_nobody_listens_at_fails_and_lists_what_there_is(self):
        for url in ("nonsense", "pigeon://coop/7"):
            code, out, _ = self.run_command([NESSIE, "info", "--to", url], env=LOOPBACK)
            self.assertEqual(code, 1)
            self.assertIn("no connection: ", out)
            self.assertIn("inproc, shm", out)

    def test_and_all_of_its_urls_need_a_url(self):
        code, _, err = self.run_command([NESSIE, "info", "--all"])
        self.assertEqual(code, 2)
        self.assertIn("--to", err)


if __name__ == "__main__":
    unittest.main()
