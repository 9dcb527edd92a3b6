"""A guest that tries everything on the sockets of its hatch; prints how each try ended, as JSON."""

import ctypes
import errno
import json
import os
import socket

path = os.environ["POSTERN_HATCH"]
plain = path.removesuffix("@localhost")
directory = os.path.dirname(path)
libc = ctypes.CDLL(None, use_errno=True)
outcomes = {}


def attempt(name, act):
    try:
        act()
        outcomes[name] = "done"
    except OSError as error:
        outcomes[name] = errno.errorcode[error.errno]


def checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), "")


def bind(at):
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(at)


def mount(source, target, flags):
    checked(libc.mount(source.encode(), target.encode(), None, flags, None))


BIND, REMOUNT = 4096, 32
own = "/tmp/own.sock"
bind(own)

for name, at in (("", path), ("plain ", plain)):
    attempt(name + "chmod", lambda: os.chmod(at, 0o600))
    attempt(name + "chown", lambda: os.chown(at, os.getuid(), os.getgid()))
    attempt(name + "unlink", lambda: os.unlink(at))
    attempt(name + "rename away", lambda: os.rename(at, directory + "/away"))
    attempt(name + "rename out", lambda: os.rename(at, "/tmp/away"))
    attempt(name + "rename over", lambda: os.rename(own, at))
    attempt(name + "link out", lambda: os.link(at, "/tmp/linked"))
    attempt(name + "utime", lambda: os.utime(at))
    attempt(name + "setxattr", lambda: os.setxattr(at, "user.x", b""))
    attempt(name + "bind a socket", lambda: bind(at))
    attempt(name + "bind over", lambda: mount(own, at, BIND))
    attempt(name + "unmount", lambda: checked(libc.umount2(at.encode(), 2)))
attempt("make a socket", lambda: bind(directory + "/own.sock"))
attempt("make a file", lambda: open(directory + "/own", "w"))
attempt("chmod the directory", lambda: os.chmod(directory, 0o777))
attempt("move the directory", lambda: os.rename(directory, "/run/away"))
attempt("remount", lambda: mount("", directory, REMOUNT | BIND))
attempt("mount over", lambda: checked(libc.mount(b"x", directory.encode(), b"tmpfs", 0, None)))
attempt("unmount the directory", lambda: checked(libc.umount2(directory.encode(), 2)))
attempt("a user namespace", lambda: checked(libc.unshare(0x10000000 | 0x20000)))


def connect(at):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(at)


attempt("connect", lambda: connect(path))
attempt("plain connect", lambda: connect(plain))
outcomes["files"] = sorted(os.listdir(directory))
print(json.dumps(outcomes))
