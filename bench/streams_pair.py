# SPDX-License-Identifier: BSD-3-Clause
"""What the programs in Python of `nessie bench streams-pair` share: the question, two processes, and the figure."""
import json
import os
import statistics
import sys
import tempfile
import traceback

BATCHES = 10


def check_step(array, step):
    if array[0] != step or array[-1] != step:
        sys.exit(f"step {step} has the values {array[0]} and {array[-1]}")


def typical_us(ends):
    """As typical_step_us() of streams_pair.cpp does."""
    each = len(ends) // (BATCHES + 1)
    begins = [each - 1 + batch * each for batch in range(BATCHES)]
    return statistics.median((ends[begin + each] - ends[begin]) / each * 1e6 for begin in begins)


def write_in_child(write, *arguments):
    """Its process."""
    child = os.fork()
    if child == 0:
        try:
            write(*arguments)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return child


def run_pair(write, read):
    """Each is called as (where, elements, steps, depth), in a process of its own; read() returns when each step ended."""
    question = json.loads(sys.argv[1])
    if not question:
        return
    with tempfile.TemporaryDirectory() as folder:
        arguments = (question["at"] or os.path.join(folder, "stream"), max(1, question["size_bytes"] // 8), question["steps"],
                     question["depth"])
        writer = write_in_child(write, *arguments)
        ends = read(*arguments)
        if os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]) != 0:
            sys.exit("the writer failed")
    if len(ends) != question["steps"]:
        sys.exit(f"of {question['steps']} steps {len(ends)} came")
    print(typical_us(ends))
