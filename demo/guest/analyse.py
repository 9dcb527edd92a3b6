"""An untrusted script: asks the host for rows, computes, draws, and then tries what it should not.

Usage: analyse.py FACTS, a JSON object that the host gives it: what to aim at, and a token that makes
its processes findable. Writes result.json, plot.png and attempts.json into its working directory.
"""

import ctypes
import errno
import json
import os
import socket
import subprocess
import sys

import grpc
import matplotlib
import pandas

import penguins_pb2
import penguins_pb2_grpc

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402, the backend comes first

FACTS = json.loads(sys.argv[1])


def fetch(stub):
    """The measured penguins, one message a row."""
    columns = [field.name for field in penguins_pb2.Row.DESCRIPTOR.fields]
    rows = stub.Rows(penguins_pb2.Query(measured=True))
    return pandas.DataFrame([[getattr(row, name) for name in columns] for row in rows], columns=columns)


def compute(table):
    """One record a species: how many, how heavy, and how much heavier with a longer flipper."""
    records = []
    for name, group in table.groupby("species"):
        mass, flipper = group["body_mass_g"], group["flipper_length_mm"]
        slope = mass.cov(flipper) / flipper.var()
        records.append(
            {
                "species": name,
                "count": int(len(group)),
                "mean_body_mass_g": round(float(mass.mean()), 1),
                "stdev_body_mass_g": round(float(mass.std()), 1),
                "grams_per_flipper_mm": round(float(slope), 2),
            }
        )
    return records


def draw(table, records):
    figure, axes = pyplot.subplots(figsize=(8, 5), dpi=120)
    for record in records:
        group = table[table["species"] == record["species"]]
        flipper, mass = group["flipper_length_mm"], group["body_mass_g"]
        points = axes.scatter(flipper, mass, s=18, alpha=0.7, label=record["species"])
        ends = pandas.Series([flipper.min(), flipper.max()])
        line = mass.mean() + record["grams_per_flipper_mm"] * (ends - flipper.mean())
        axes.plot(ends, line, color=points.get_facecolor()[0], linewidth=2, alpha=1)
    axes.set_xlabel("flipper length, mm")
    axes.set_ylabel("body mass, g")
    axes.set_title("Palmer penguins: longer flippers, heavier birds")
    axes.legend(title="species")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig("plot.png")


def remove(stub):
    return "removed %d rows" % stub.Remove(penguins_pb2.Query()).rows


def connect(address):
    socket.create_connection(address, timeout=3).close()
    return "connected"


def read(path):
    with open(path, "rb") as file:
        return "read " + ascii(file.read(64))


def write(path):
    with open(path, "r+b") as file:
        file.write(b"the guest was here")
    return "wrote"


def listing(path):
    return "listed " + json.dumps(sorted(os.listdir(path)))


LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER = 0x10000000
PTRACE_ATTACH = 16


def call(name, *arguments):
    if getattr(LIBC, name)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return "done"


# A small process forks faster than this one would.
BOMB = """
import errno, os, signal, sys
for count in range(int(sys.argv[1])):
    try:
        if os.fork() == 0:
            os.close(1)
            while True:
                signal.pause()
    except OSError as error:
        print(errno.errorcode[error.errno], "after", count)
        break
else:
    print("made", sys.argv[1])
"""


def bomb(most):
    """Forks until it is refused, and leaves the children to whoever cleans up."""
    line = [sys.executable, "-I", "-S", "-c", BOMB, str(most), FACTS["token"]]
    return subprocess.run(line, stdout=subprocess.PIPE, text=True).stdout.strip()


def attempts(stub):
    yield "other method", lambda: remove(stub)
    yield "loopback", lambda: connect(("127.0.0.1", FACTS["port"]))
    # Of a network for documentation: nobody is there, should a packet leave.
    yield "public address", lambda: connect(("192.0.2.1", 80))
    yield "host file", lambda: read(FACTS["canary"])
    yield "host file, writing", lambda: write(FACTS["canary"])
    yield "database", lambda: read(FACTS["database"])
    yield "/etc/shadow", lambda: read("/etc/shadow")
    for path in FACTS["homes"]:
        yield path, lambda path=path: listing(path)
    yield "core_pattern", lambda: write("/proc/sys/kernel/core_pattern")
    yield "ptrace", lambda: call("ptrace", PTRACE_ATTACH, 1, None, None)
    yield "mount", lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None)
    yield "unshare", lambda: call("unshare", CLONE_NEWUSER)


def outcome(attempt):
    try:
        return {"did": True, "says": attempt()}
    except grpc.RpcError as error:
        return {"did": False, "says": "%s: %s" % (error.code().name, error.details())}
    except OSError as error:
        return {"did": False, "says": errno.errorcode.get(error.errno, type(error).__name__)}


def main():
    # Any ordinary client, with no option.
    with grpc.insecure_channel("unix:" + os.environ["POSTERN_HATCH"]) as channel:
        stub = penguins_pb2_grpc.PenguinsStub(channel)
        table = fetch(stub)
        records = compute(table)
        draw(table, records)
        with open("result.json", "w") as file:
            json.dump({"rows": len(table), "species": records}, file, indent=2)
        outcomes = {name: outcome(attempt) for name, attempt in attempts(stub)}
    outcomes["fork bomb"] = outcome(lambda: bomb(FACTS["forks"]))
    # The bomb's word is judged like every other: by what the host saw of it.
    outcomes["fork bomb"]["did"] = outcomes["fork bomb"]["says"].startswith("made")
    with open("attempts.json", "w") as file:
        json.dump(outcomes, file)
    for name, one in outcomes.items():
        print("%s: %s" % (name, one["says"]))


main()
