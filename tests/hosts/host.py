# SPDX-License-Identifier: BSD-3-Clause
"""A host's first process: sets the host up and starts there what agent.py asks for.

It is process 1 of the host's PID name space: when it ends, the kernel ends all others. It ends with its stdin, which is
a pipe from the test.
"""
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys


def mount_own(folder):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", folder], check=True)


def set_up(host):
    socket.sethostname(host["name"])
    for folder in host["own_folders"]:
        mount_own(folder)
    subprocess.run(["mount", "--bind", host["names_file"], "/etc/hosts"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def become(user):
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


def start(request, descriptors, login, user):
    """Forks a session of its own with the given stdin, stdout and stderr."""
    pid = os.fork()
    if pid:
        return pid
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.setsid()
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        os.closerange(3, 1024)
        become(user)
        os.chdir(request["folder"])
        os.execvpe(request["command"][0], request["command"], request["environment"] or login)
    except OSError as error:
        os.write(2, f"{request['command'][0]}: {error}\n".encode())
    finally:
        os._exit(127)


class Host:
    def __init__(self, host):
        self.login, self.user, self.asked = host["login"], host["user"], {}
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(host["door"])
        os.chown(host["door"], self.user, self.user)
        self.door.listen(64)

    def admit(self):
        caller, _ = self.door.accept()
        size = struct.unpack("I", caller.recv(4, socket.MSG_WAITALL))[0]
        text, descriptors, _, _ = socket.recv_fds(caller, size, 3)
        text += caller.recv(size - len(text), socket.MSG_WAITALL) if len(text) < size else b""
        pid = start(json.loads(text), descriptors, self.login, self.user)
        for descriptor in descriptors:
            os.close(descriptor)
        self.asked[pid] = caller

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            caller = self.asked.pop(pid, None)
            if caller:
                self.answer(caller, os.waitstatus_to_exitcode(status))

    def answer(self, caller, code):
        try:
            caller.sendall(struct.pack("i", code))
        except OSError:
            pass   # it did not wait
        caller.close()

    def serve(self):
        woken, wake = socket.socketpair()
        wake.setblocking(False)
        woken.setblocking(False)
        signal.set_wakeup_fd(wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            ready = select.select([sys.stdin, self.door, woken], [], [])[0]
            if sys.stdin in ready:
                return   # the test is over
            if woken in ready:
                woken.recv(4096)
            if self.door in ready:
                self.admit()
            self.reap()


def main():
    description = json.loads(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)   # it lives as long as the test
    if description["own_folders"]:
        set_up(description)
    host = Host(description)
    print("ready", flush=True)
    host.serve()


main()
