"""The greeter's messages by hand, so that a guest needs nothing but grpcio; put before each script."""

import json
import os

import grpc

TARGET = "unix:" + os.environ["POSTERN_HATCH"]
TAGS = (("x-tag", "a b"), ("x-tag-bin", b"\x00\xff"))
KINDS = {
    "SayHello": "unary_unary",
    "KeepGreeting": "unary_stream",
    "GreetTogether": "stream_unary",
    "GreetEach": "stream_stream",
}
outcomes = {"version": "grpcio " + grpc.__version__}


def varint(number):
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def request(name, count=0):
    name = name.encode()
    count = b"\x10" + varint(count) if count else b""
    return b"\x0a" + varint(len(name)) + name + count


def text(reply):
    at = 1
    while reply[at] & 128:
        at += 1
    return reply[at + 1 :].decode()


def stub(channel, method, kind=None):
    make = getattr(channel, kind or KINDS[method])
    path = "/greeter.Greeter/" + method
    return make(path, request_serializer=bytes, response_deserializer=text)


def told(error):
    """A failed call in one line: code, words, and what else came with them."""
    trailing = dict(error.trailing_metadata() or ())
    details = trailing.get("grpc-status-details-bin", b"").hex()
    words = [error.code().name + ":", error.details(), details, trailing.get("x-reason", "")]
    return " ".join(word for word in words if word)
