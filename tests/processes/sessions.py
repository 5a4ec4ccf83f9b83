# SPDX-License-Identifier: BSD-3-Clause
"""What a text says of commands and of what they print, carried out.

A command begins with "$ ", and goes on in the next line after a "\\"; what follows it is its output, in which … stands
for anything.
"""
import os
import re
import socket

ENDED = "@@@ next command"
ON_THIS_NODE = {"NESSIE_LISTEN": "shm",
                **{f"NESSIE_NNTI_{each}_ADDRESS": "127.0.0.1" for each in ("TCP", "OFI", "UCX")}}


def session_of(text):
    """(command, expected output) of each, in their order."""
    session = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = re.sub(r"\\\n *", "", part).partition("\n")
        session.append((command, output))
    return session


def pattern_of(output):
    return re.compile("".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", output.strip())),
                      re.DOTALL)


def run_session(case, folder, session, env, deadline_s=90):
    """Has one shell carry all commands out in a folder; `case`, a ProcessTestCase, fails unless each prints what it is to."""
    script = os.path.join(folder, "commands.sh")
    with open(script, "w", encoding="utf-8") as file:
        file.write("exec 2>&1\n" + "".join(f"{command}\necho; echo '{ENDED}'\n" for command, _ in session) + "wait\n")
    # Of two mpiexec of Open MPI that begin at once, one fails where this folder is not there yet.
    host = socket.gethostname().partition(".")[0]
    os.makedirs(os.path.join(case.folder, f"ompi.{host}.{os.getuid()}"), mode=0o700, exist_ok=True)
    job = case.job(["bash", script], env=env, cwd=folder)
    code, out, err = job.finish(deadline_s)
    case.assertEqual(code, 0, out + err)
    for (command, output), printed in zip(session, out.split(ENDED)[:-1], strict=True):
        case.assertTrue(pattern_of(output).fullmatch(printed.strip()), f"$ {command}\n{printed}")
