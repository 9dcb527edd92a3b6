// A guest with stock @grpc/grpc-js and no options; messages by hand, so that it needs no more.
"use strict";
const grpc = require("@grpc/grpc-js");
const { version } = require("@grpc/grpc-js/package.json");

const outcomes = { version: "grpc-js " + version };
const client = new grpc.Client(
  "unix:" + process.env.POSTERN_HATCH,
  grpc.credentials.createInsecure(),
);

function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
}

function request(name, count = 0) {
  const bytes = Buffer.from(name);
  const parts = [Buffer.from([10]), varint(bytes.length), bytes];
  return Buffer.concat(count ? [...parts, Buffer.from([16]), varint(count)] : parts);
}

function text(reply) {
  let at = 1;
  while (reply[at] & 128) at += 1;
  return reply.subarray(at + 1).toString();
}

const same = (bytes) => bytes;
const path = (method) => "/greeter.Greeter/" + method;

function told(error) {
  const code = grpc.status[error.code];
  const [details] = error.metadata.get("grpc-status-details-bin");
  const [reason] = error.metadata.get("x-reason");
  const words = [code + ":", error.details, details && details.toString("hex"), reason];
  return words.filter(Boolean).join(" ");
}

function settled(resolve, error, reply) {
  resolve(error ? told(error) : reply);
}

function unary(method, bytes, options = {}) {
  return new Promise((resolve) => {
    const done = (error, reply) => settled(resolve, error, reply);
    client.makeUnaryRequest(path(method), same, text, bytes, new grpc.Metadata(), options, done);
  });
}

function listed(stream) {
  return new Promise((resolve) => {
    const replies = [];
    stream.on("data", (reply) => replies.push(reply));
    stream.on("end", () => resolve(replies));
    stream.on("error", (error) => resolve(told(error)));
  });
}

function keep(method, bytes) {
  return client.makeServerStreamRequest(path(method), same, text, bytes);
}

function together(...names) {
  return new Promise((resolve) => {
    const done = (error, reply) => settled(resolve, error, reply);
    const call = client.makeClientStreamRequest(path("GreetTogether"), same, text, done);
    for (const name of names) call.write(request(name));
    call.end();
  });
}

function each(...names) {
  const call = client.makeBidiStreamRequest(path("GreetEach"), same, text);
  for (const name of names) call.write(request(name));
  call.end();
  return listed(call);
}

function metadata() {
  const tags = new grpc.Metadata();
  tags.set("x-tag", "a b");
  tags.set("x-tag-bin", Buffer.from([0, 255]));
  return new Promise((resolve) => {
    const done = (error) => error && resolve(told(error));
    const bytes = request("ada");
    const call = client.makeUnaryRequest(path("SayHello"), same, text, bytes, tags, {}, done);
    call.on("metadata", (got) =>
      resolve(got.get("x-tag")[0] + " " + got.get("x-tag-bin")[0].toString("hex")),
    );
  });
}

function cancelled() {
  return new Promise((resolve) => {
    let first;
    const stream = keep("KeepGreeting", request("sleep", 2));
    stream.on("data", (reply) => {
      first = reply;
      stream.cancel();
    });
    stream.on("end", () => {});
    stream.on("error", (error) =>
      resolve(error.code === grpc.status.CANCELLED ? first : told(error)),
    );
  });
}

async function main() {
  outcomes["unary"] = await unary("SayHello", request("ada"));
  outcomes["server stream"] = await listed(keep("KeepGreeting", request("bob", 3)));
  outcomes["client stream"] = await together("eve", "dan");
  outcomes["both streams"] = await each("eve", "dan");
  outcomes["metadata"] = await metadata();
  outcomes["details"] = await unary("SayHello", request("details"));
  const soon = { deadline: Date.now() + 200 };
  outcomes["deadline"] = await unary("SayHello", request("sleep"), soon);
  outcomes["and dropped"] = await unary("SayHello", request("waiting"));
  outcomes["cancel"] = await cancelled();
  outcomes["dropped"] = await unary("SayHello", request("waiting"));
  outcomes["denied"] = await unary("Denied", request("ada"));
  outcomes["denied stream"] = await listed(keep("Denied", request("ada")));
  outcomes["over-limit"] = await unary("SayHello", request("x".repeat(5 << 20)));
  outcomes["afterwards"] = await unary("SayHello", request("ada"));
  console.log(JSON.stringify(outcomes));
  client.close();
}

main();
