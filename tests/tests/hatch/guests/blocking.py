channel = grpc.insecure_channel(TARGET)
hello, keep, together, each = (stub(channel, method) for method in KINDS)


def outcome(name, call):
    try:
        outcomes[name] = call()
    except grpc.RpcError as error:
        outcomes[name] = told(error)


def metadata():
    _, call = hello.with_call(request("ada"), metadata=TAGS)
    got = dict(call.initial_metadata())
    return got["x-tag"] + " " + got["x-tag-bin"].hex()


def cancelled():
    stream = keep(request("sleep", 2))
    first = next(stream)
    stream.cancel()
    try:
        return next(stream)
    except grpc.RpcError as error:
        return first if error.code() is grpc.StatusCode.CANCELLED else told(error)


outcome("unary", lambda: hello(request("ada")))
outcome("server stream", lambda: list(keep(request("bob", 3))))
outcome("client stream", lambda: together(iter([request("eve"), request("dan")])))
outcome("both streams", lambda: list(each(iter([request("eve"), request("dan")]))))
outcome("metadata", metadata)
outcome("details", lambda: hello(request("details")))
outcome("deadline", lambda: hello(request("sleep"), timeout=0.2))
outcome("and dropped", lambda: hello(request("waiting")))
outcome("cancel", cancelled)
outcome("dropped", lambda: hello(request("waiting")))
outcome("denied", lambda: stub(channel, "Denied", "unary_unary")(request("ada")))
outcome("denied stream", lambda: next(stub(channel, "Denied", "unary_stream")(request("ada"))))
outcome("over-limit", lambda: hello(request("x" * (5 << 20))))
outcome("afterwards", lambda: hello(request("ada")))
print(json.dumps(outcomes))
