# SPDX-License-Identifier: BSD-3-Clause
"""nessied with services of one's own beside Nessie's: what a user sees of it. docs/hosting.md."""
import json
import os
import resource
import signal
import time
import unittest

from harness import BUILD, ProcessTestCase, read_file, unsanitized, wait_until
from sessions import ON_THIS_NODE

NESSIE = os.path.join(BUILD, "bin", "nessie")
NESSIED = os.path.join(BUILD, "bin", "nessied")
EXAMPLE = os.path.join(BUILD, "examples", "service")
CLIENT = os.path.join(EXAMPLE, "counter_client_cpp")
COUNTER = f'type = "counter"\nmodule = "{EXAMPLE}/libcounter.so"\nsettings = {{ begin = 40 }}'
GUEST, OLD_GUEST = (os.path.join(BUILD, "tests", f"lib{name}.so") for name in ("guest", "old_guest"))


def handles(process, number):
    """Whether the process ignores or catches that signal."""
    with open(f"/proc/{process}/status", encoding="utf-8") as status:
        masks = [int(line.split()[1], 16) for line in status if line.startswith(("SigIgn", "SigCgt"))]
    return any(mask >> (number - 1) & 1 for mask in masks)


class Modules(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.env.update(ON_THIS_NODE)
        self.announced = self.path("job.contact")

    def write_text(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def limits_told(self):
        """How many requests each service takes at once, as it says."""
        code, out, err = self.run_command([NESSIE, "status", "file:job.contact", "--json"])
        self.assertEqual((code, err), (0, ""))
        return {each["limits"]["requests"] for each in json.loads(out)["nssi"]["services"]}

    def write(self, *providers):
        """A composition of providers, each a text of `key = value` lines: its path."""
        self.write_text("job.toml", 'announce = "file:job.contact"\n' +
                        "".join(f"[[provider]]\n{each}\n" for each in providers))
        return self.path("job.toml")

    def guest(self, name, more=""):
        return f'name = "{name}"\ntype = "guest"\nmodule = "{GUEST}"\n{more}'

    def start(self, *providers):
        job = self.job([NESSIED, "--config", self.write(*providers)])

        def is_there():
            if job.process.poll() is not None:
                self.fail(job.finish())
            return os.path.exists(self.announced)
        wait_until(is_there, "the contact file")
        return job

    def end(self, job):
        """Its output."""
        job.process.send_signal(signal.SIGTERM)
        code, out, err = job.finish()
        self.assertEqual((code, err), (0, ""))
        self.assertFalse(os.path.exists(self.announced))
        self.assert_nothing_left()
        return out

    def assert_refused(self, sentence, *providers, says=""):
        code, out, err = self.run_command([NESSIED, "--config", self.write(*providers)])
        self.assertEqual((code, out), (2, says), err)
        self.assertIn(sentence, err)
        self.assertFalse(os.path.exists(self.announced))
        self.assert_nothing_left()

    def test_serve_beside_staging_until_SIGTERM(self):
        job = self.start('type = "staging"', COUNTER)
        for value in (42, 44):
            code, out, err = self.run_command([CLIENT])
            self.assertEqual((code, out), (0, f"{value}\nNOT_FOUND: nobody has counted pears\n"), err)
        self.end(job)

    def test_are_shown_by_nessie_status_with_what_they_have(self):
        job = self.start('type = "directory"', 'type = "transfer"\nname = "moves"\nnumber = 3', self.guest("first"))
        code, out, err = self.run_command([NESSIE, "status", "file:job.contact", "--json"])
        self.assertEqual((code, err), (0, ""))
        shown = [(each["name"], each["type"], each["provider"], each["state"])
                 for each in json.loads(out)["nssi"]["providers"]]
        self.assertEqual(shown, [("directory", "directory", 0, "announced: 0, waiting for changes: 0"),
                                 ("moves", "transfer", 3, "pieces on their way: 0"), ("first", "guest", 0, "is here")])
        code, out, err = self.run_command([NESSIE, "status", "file:job.contact"])
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"moves +transfer +3")
        self.end(job)

    def test_settings_are_read_anew_on_SIGHUP(self):
        self.env["NESSIE_CONFIG"] = self.path("nessie.conf")
        self.write_text("nessie.conf", "nssi.limit.requests = 7\n")
        job = self.start('type = "transfer"')
        self.assertEqual(self.limits_told(), {7})
        self.write_text("nessie.conf", "nssi.limit.requests = 9\n")
        job.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.limits_told() == {9}, "the new limit")
        self.end(job)

    def test_SIGHUP_at_any_moment_ends_nothing(self):
        for step in range(12):
            job = self.job([NESSIED, "--config", self.write('type = "staging"')])
            wait_until(lambda: handles(job.process.pid, signal.SIGHUP), "its first instructions")
            time.sleep(step * 0.015)
            job.process.send_signal(signal.SIGHUP)
            wait_until(lambda: job.process.poll() is not None or os.path.exists(self.announced), "the contact file")
            self.end(job)

    def test_are_started_after_those_that_they_use_and_stopped_in_reverse(self):
        job = self.start(self.guest("second", 'uses = { directory = "names" }'),
                         'name = "names"\ntype = "directory"\nnumber = 3', self.guest("third"))
        lines = self.end(job).splitlines()
        self.assertEqual(lines[:4], ["second: asks the directory", "second: the directory has 0 names",
                                     "second: started", "third: started"])
        self.assertEqual(lines[-2:], ["third: stopped", "second: stopped"])
        self.assertEqual(sorted(lines[-4:-2]), ["second: quiesced", "third: quiesced"])

    def test_use_a_directory_of_another_process(self):
        names = self.job([NESSIED, "--services", "directory", "--provider", "3", "--announce", "file:names.contact"])
        job = self.start(
            self.guest("guest", 'uses = { directory = { at = "file:names.contact", number = 3 } }'), COUNTER)
        names.process.send_signal(signal.SIGTERM)
        self.assertEqual(names.finish()[0], 0)
        self.assertIn("guest: the directory has 0 names\n", self.end(job))

    def who_waits_for_a_directory(self):
        """A process that starts `first`, and then waits in the start of `second`."""
        job = self.job([NESSIED, "--config", self.write(
            self.guest("first"), self.guest("second", 'uses = { directory = "file:names.contact" }'),
            self.guest("third"))])
        self.assertEqual(job.process.stdout.readline(), "first: started\n")
        self.assertEqual(job.process.stdout.readline(), "second: asks the directory\n")
        return job

    def test_SIGINT_during_their_start_stops_those_that_have_started(self):
        job = self.who_waits_for_a_directory()
        job.process.send_signal(signal.SIGINT)
        names = self.job([NESSIED, "--services", "directory", "--announce", "file:names.contact"])
        code, out, err = job.finish()
        self.assertEqual((code, err), (0, ""))
        self.assertNotIn("third", out)
        self.assertTrue(out.endswith("second: stopped\nfirst: stopped\n"), out)
        names.process.send_signal(signal.SIGTERM)
        self.assertEqual(names.finish()[0], 0)

    def test_SIGINT_again_does_not_wait_for_the_one_that_is_being_started(self):
        job = self.who_waits_for_a_directory()
        before = time.monotonic()

        def has_ended():
            job.process.send_signal(signal.SIGINT)
            return job.process.poll() is not None
        wait_until(has_ended, "the end")
        self.assertEqual(job.finish(), (2, "", ""))
        self.assertLess(time.monotonic() - before, 8)   # it would have waited for ten seconds

    def test_SIGTERM_at_any_moment_of_their_start_leaves_nothing(self):
        composition = self.write('type = "directory"', 'type = "staging"', self.guest("last"))
        for step in range(12):
            job = self.job([NESSIED, "--config", composition])
            time.sleep(step * 0.015)
            job.process.send_signal(signal.SIGTERM)
            code, _, err = job.finish()
            self.assertIn((code, err), ((0, ""), (-signal.SIGTERM, "")))  # before it listens to signals
            self.assertFalse(os.path.exists(self.announced))
        self.assert_nothing_left()

    @unsanitized("it looks at memory through pipes")
    def test_SIGTERM_ends_it_however_few_descriptors_it_may_have(self):
        for limit in range(6, 20):
            job = self.job([NESSIED, "--services", "directory", "--listen", "inproc"],
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
            if job.process.stdout.readline():
                job.process.send_signal(signal.SIGTERM)
                self.assertEqual(job.finish(), (0, "", ""))
            else:
                code, _, err = job.finish()
                self.assertEqual(code, 2, err)
                self.assertIn("Too many open files", err)

    @unsanitized("it needs all addresses")
    def test_without_room_for_its_threads_it_ends_by_itself(self):
        for mebibytes in range(60, 340, 20):
            job = self.job([NESSIED, "--services", "staging", "--listen", "inproc"], preexec_fn=lambda:
                           resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20)))
            if job.process.stdout.readline():
                job.process.send_signal(signal.SIGTERM)
            code, _, err = job.finish()
            self.assertIn(code, (0, 2), err)
        self.assert_nothing_left()

    def test_a_file_without_an_end_is_no_file_of_settings(self):
        code, out, err = self.run_command([NESSIED, "--config", "/dev/zero"])
        self.assertEqual((code, out), (2, ""))
        self.assertIn("/dev/zero has more than 16 MiB: it is no file of settings", err)

    def test_a_parent_that_is_no_descriptor_is_refused(self):
        code, out, err = self.run_command([NESSIED, "--services", "directory", "--parent", "77"])
        self.assertEqual((code, out), (2, ""))
        self.assertIn("--parent 77: Bad file descriptor", err)

    def test_that_do_not_start_stop_those_before(self):
        self.assert_refused(
            "job.toml, line 7: second: no room for guests", self.guest("first"),
            self.guest("second", 'settings = { fail = "no room for guests" }'), self.guest("third"),
            says="first: started\nfirst: stopped\n")

    def test_a_second_staging_service_in_the_same_folder_leaves_the_first_ones_files_alone(self):
        job = self.start('type = "staging"')
        url = read_file(self.path("server.0.url"))
        code, out, err = self.run_command([NESSIED, "--services", "staging"])
        self.assertEqual((code, out), (2, ""))
        self.assertIn("another staging server runs and keeps its ledger in ./server.0.ledger", err)
        self.assertEqual(read_file(self.path("server.0.url")), url)
        self.end(job)

    def test_of_another_version_are_refused(self):
        self.assert_refused("job.toml, line 2: " + OLD_GUEST + " was built with Nessie 0.0.1", f'type = "guest"\nmodule = "{OLD_GUEST}"')

    def test_that_are_none_are_refused(self):
        text = self.path("text.so")
        with open(text, "w", encoding="utf-8") as file:
            file.write("no module\n")
        self.assert_refused("text.so: ", f'type = "guest"\nmodule = "{text}"')
        self.assert_refused("libm.so.6 is no module of Nessie", 'type = "guest"\nmodule = "libm.so.6"')
        self.assert_refused("the one of this folder is ./text.so", 'type = "guest"\nmodule = "text.so"')

    def test_of_one_module_may_name_it_by_several_paths(self):
        os.symlink(GUEST, self.path("same.so"))
        path = self.write(self.guest("first"), 'name = "second"\ntype = "guest"\nmodule = "./same.so"')
        self.assertEqual(self.run_command([NESSIED, "--config", path, "--check"])[0], 0)

    def test_flags_that_say_nothing_are_refused(self):
        config = self.write(COUNTER)
        for flags in (["--config", ""], ["--config", config, "--provider", "7"], ["--announce", "fiel:job.contact"],
                      ["--announce", "file:"]):
            self.assertEqual(self.run_command([NESSIED, "--check", *flags])[0], 2, flags)

    def test_who_uses_an_unknown_provider_is_told_the_nearest(self):
        self.assert_refused("there is no provider 'nams'; did you mean 'names'?", 'name = "names"\ntype = "directory"',
                            self.guest("guest", 'uses = { directory = "nams" }'))

    def test_check_starts_nothing(self):
        path = self.write(self.guest("guest", 'uses = ["names"]'), 'name = "names"\ntype = "directory"')
        self.assertEqual(self.run_command([NESSIED, "--config", path, "--check"]),
                         (0, "names: directory, provider 0\nguest: guest, provider 0, uses directory names\n", ""))
        self.assertFalse(os.path.exists(self.announced))


if __name__ == "__main__":
    unittest.main()
