"""An untrusted script: reads penguins.csv, writes result.json, and tries what it should not do."""

import csv
import json
import os
import socket
import statistics

with open("penguins.csv", newline="") as table:
    rows = [row for row in csv.DictReader(table) if row["body_mass_g"] != "NA"]

by_species = {}
for row in rows:
    by_species.setdefault(row["species"], []).append(row)


def summary(rows):
    mass = [float(row["body_mass_g"]) for row in rows]
    flipper = [float(row["flipper_length_mm"]) for row in rows]
    fit = statistics.linear_regression(flipper, mass)
    return {
        "count": len(rows),
        "mean_body_mass_g": round(statistics.mean(mass), 1),
        "stdev_body_mass_g": round(statistics.stdev(mass), 1),
        "grams_per_flipper_mm": round(fit.slope, 2),
    }


def attempt(action):
    try:
        action()
    except OSError as error:
        return error.strerror
    return "allowed"


attempts = {
    "read /etc/shadow": lambda: open("/etc/shadow").close(),
    "write to /usr": lambda: open("/usr/planted", "w").close(),
    "connect to 192.0.2.1:80": lambda: socket.create_connection(("192.0.2.1", 80), 2).close(),
    "write /proc/sys/kernel/core_pattern": lambda: open("/proc/sys/kernel/core_pattern", "w"),
    "kill every process": lambda: os.kill(-1, 9),
}

with open("result.json", "w") as result:
    json.dump(
        {
            "species": {name: summary(rows) for name, rows in sorted(by_species.items())},
            "attempts": {name: attempt(action) for name, action in attempts.items()},
        },
        result,
        indent=2,
    )
print("done:", len(rows), "rows")
