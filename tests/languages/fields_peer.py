# SPDX-License-Identifier: BSD-3-Clause
"""README.md says what peers do."""
import os
import sys
import time

from fields_calls import check_all
from fields_service import Fields, Second

import nessie
from nessie import nssi


def serve(transport):
    with nssi.Runtime.open(transports=[transport]) as runtime:
        Fields().add_to(runtime)
        Second().add_to(runtime, 5)
        print(runtime.url, flush=True)
        runtime.run()


def url_of(word):
    """`@FILE`: the line in FILE, which somebody writes meanwhile. Empty: nobody did, for 20 s."""
    if not word.startswith("@"):
        return word
    for _ in range(200):
        if os.path.exists(word[1:]):
            with open(word[1:]) as file:
                return file.readline().strip()
        time.sleep(0.1)
    return ""


def call(transport, url):
    with nssi.Runtime.open(transports=[transport], listen=False) as runtime:
        faults = check_all(runtime, runtime.connect(url_of(url), timeout=20))
        print(faults, "faults", flush=True)
    return 0 if faults == 0 else 1


def main(task, *words):
    try:
        return {"serve": serve, "call": call}[task](*words)
    except nessie.Error as error:
        print("error:", error)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
