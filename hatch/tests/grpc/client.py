"""A guest with stock grpcio and no options: prints what becomes of each kind of call, as JSON.

Messages are written by hand, so that nothing but grpcio is needed. Usage: client.py SOCKET
"""

import json
import sys
import time

import grpc

channel = grpc.insecure_channel("unix:" + sys.argv[1])
outcomes = {"version": grpc.__version__}


def varint(number):
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def request(name, count=0):
    name = name.encode()
    return b"\x0a" + varint(len(name)) + name + b"\x10" + varint(count)


def text(reply):
    at = 1
    while reply[at] & 128:
        at += 1
    return reply[at + 1 :].decode()


def stub(kind, method):
    return getattr(channel, kind)(
        "/greeter.Greeter/" + method, request_serializer=bytes, response_deserializer=text
    )


hello = stub("unary_unary", "SayHello")
keep = stub("unary_stream", "KeepGreeting")
together = stub("stream_unary", "GreetTogether")
each = stub("stream_stream", "GreetEach")
denied = stub("unary_unary", "Denied")
denied_stream = stub("stream_stream", "Denied")


def outcome(name, call):
    try:
        outcomes[name] = call()
    except grpc.RpcError as error:
        outcomes[name] = error.code().name + ": " + error.details()


def cancelled():
    stream = keep(request("sleep", 2))
    first = next(stream)
    stream.cancel()
    try:
        next(stream)
    except grpc.RpcError as error:
        return first + ", " + error.code().name


def never_ending():
    while True:
        time.sleep(0.01)
        yield request("ada")


def metadata():
    tags = (("x-tag", "a b"), ("x-tag-bin", b"\x00\xff"))
    _, call = hello.with_call(request("ada"), metadata=tags)
    got = dict(call.initial_metadata())
    return got["x-tag"] + " " + got["x-tag-bin"].hex()


def concurrent():
    calls = [hello.future(request("wait")) for _ in range(100)]
    return len([call.result() for call in calls])


outcome("unary", lambda: hello(request("ada")).split(" of ")[0])
outcome("server stream", lambda: list(keep(request("bob", 3))))
outcome("client stream", lambda: together(iter([request("eve"), request("dan")])))
outcome("both streams", lambda: list(each(iter([request("eve"), request("dan")]))))
outcome("metadata", metadata)
outcome("details", lambda: hello(request("details")))
outcome("concurrent", concurrent)
outcome("deadline", lambda: hello(request("sleep"), timeout=0.2))
outcome("cancelled", cancelled)
outcome("denied", lambda: denied(request("ada")))
outcome("denied stream", lambda: next(denied_stream(never_ending())))
outcome("not served", lambda: stub("unary_unary", "Gone")(request("ada")))
outcome("long message", lambda: hello(request("x" * (5 << 20))))
outcome("long in stream", lambda: together(iter([request("a"), request("x" * (5 << 20))])))
outcome("4 MiB", lambda: together(iter([request("x" * 4194000)])))
outcome("afterwards", lambda: hello(request("ada")).split(" of ")[0])

times = []
for _ in range(1000):
    start = time.perf_counter()
    hello(request("ada"))
    times.append(time.perf_counter() - start)
times.sort()
outcomes["p50"], outcomes["p99"] = times[500], times[990]
print(json.dumps(outcomes))
