"""Compiles filters with libseccomp: JSON in, one line of hexadecimal BPF a filter out.

A filter is a list of [number, errno, conditions], a condition [argument, mask, value] for bits
that are these, or [argument] for a register that is not 0.
"""

import json
import sys
import tempfile

import seccomp


def condition(argument, mask=None, value=None):
    if mask is None:
        return seccomp.Arg(argument, seccomp.NE, 0)
    return seccomp.Arg(argument, seccomp.MASKED_EQ, mask, value)


for rules in json.load(sys.stdin):
    made = seccomp.SyscallFilter(defaction=seccomp.ALLOW)
    for number, errno, conditions in rules:
        arguments = [condition(*words) for words in conditions]
        made.add_rule_exactly(seccomp.ERRNO(errno), number, *arguments)
    with tempfile.TemporaryFile() as file:
        made.export_bpf(file)
        file.seek(0)
        print(file.read().hex())
