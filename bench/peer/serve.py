"""Answers each line, a count, with a line of that many run_python times in microseconds.

The host process of the Python package that the bench compares with, which is imported from the
directory in the first argument and given the C init in the second.
"""

import sys
import time

sys.path.insert(0, sys.argv[1])
import postern  # noqa: E402

sandbox = postern.Sandbox(postern.SandboxProfile(init=sys.argv[2]))
for line in sys.stdin:
    samples = []
    for _ in range(int(line)):
        start = time.perf_counter()
        result = sandbox.run_python('pass')
        samples.append((time.perf_counter() - start) * 1e6)
        if not result.ok:
            sys.exit(f'{result.returncode}: {result.stderr}')
    print(*samples, flush=True)
