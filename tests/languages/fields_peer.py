# SPDX-License-Identifier: BSD-3-Clause
"""README.md says what peers do."""
import sys

from fields_calls import check_all
from fields_service import Fields, Second

import nessie
from nessie import nssi


def serve(transport, *places):
    with nssi.Runtime.open(transports=[transport]) as runtime:
        Fields().add_to(runtime)
        Second().add_to(runtime, 5)
        for place in places:
            runtime.announce(place, kind="fields")
        print(runtime.url, flush=True)
        runtime.run()


def call(transport, what):
    with nssi.Runtime.open(transports=[transport], listen=False) as runtime:
        faults = check_all(runtime, runtime.connect_to(what, timeout=20))
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
