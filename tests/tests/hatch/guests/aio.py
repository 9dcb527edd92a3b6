import asyncio

outcomes["version"] = "grpc.aio " + grpc.__version__


async def names(*all):
    for name in all:
        yield request(name)


async def listed(stream):
    return [reply async for reply in stream]


async def metadata(hello):
    call = hello(request("ada"), metadata=TAGS)
    await call
    got = dict(tuple(await call.initial_metadata()))
    return got["x-tag"] + " " + got["x-tag-bin"].hex()


async def cancelled(keep):
    stream = keep(request("sleep", 2))
    first = await stream.read()
    stream.cancel()
    try:
        return await stream.read()
    except asyncio.CancelledError:
        return first if await stream.code() is grpc.StatusCode.CANCELLED else "another code"


async def outcome(name, call):
    try:
        outcomes[name] = await call
    except grpc.aio.AioRpcError as error:
        outcomes[name] = told(error)


async def main():
    async with grpc.aio.insecure_channel(TARGET) as channel:
        hello, keep, together, each = (stub(channel, method) for method in KINDS)
        await outcome("unary", hello(request("ada")))
        await outcome("server stream", listed(keep(request("bob", 3))))
        await outcome("client stream", together(names("eve", "dan")))
        await outcome("both streams", listed(each(names("eve", "dan"))))
        await outcome("metadata", metadata(hello))
        await outcome("details", hello(request("details")))
        await outcome("deadline", hello(request("sleep"), timeout=0.2))
        await outcome("and dropped", hello(request("waiting")))
        await outcome("cancel", cancelled(keep))
        await outcome("dropped", hello(request("waiting")))
        await outcome("denied", stub(channel, "Denied", "unary_unary")(request("ada")))
        denied = stub(channel, "Denied", "unary_stream")
        await outcome("denied stream", listed(denied(request("ada"))))
        await outcome("over-limit", hello(request("x" * (5 << 20))))
        await outcome("afterwards", hello(request("ada")))
    print(json.dumps(outcomes))


asyncio.run(main())
