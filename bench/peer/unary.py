"""A guest that makes unary calls and prints how long each took, in microseconds.

The first ones open the connection and warm up, and are not shown. Messages are written by hand, so
that nothing but grpcio is needed.
"""

import os
import time

import grpc

WARM, COUNT = 200, int(os.environ['CALLS'])
ASK = b'\x0a\x03ada'

with grpc.insecure_channel('unix:' + os.environ['POSTERN_HATCH']) as channel:
    hello = channel.unary_unary('/greeter.Greeter/SayHello')
    samples = []
    for _ in range(WARM + COUNT):
        start = time.perf_counter()
        reply = hello(ASK)
        samples.append((time.perf_counter() - start) * 1e6)
        if reply != b'\x0a\x0ahello, ada':
            raise SystemExit(f'{reply!r}')
print(*samples[WARM:])
