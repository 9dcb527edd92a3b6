import socket
import stat

HERE = ["/run", "/tmp", "/dev", "/etc", "/workspace", "/var", "/proc"]
NAMES = ["hatch.sock", "hatch.sock@localhost"]
GUESSES = ["/run/postern/%s", "/run/%s", "/run/postern/run-%d/%s", "/run/postern/../run-%d/%s"]


def sockets():
    """Every socket that can be found: by walking, by guessing, by the processes in /proc."""
    for top in HERE:
        for directory, names, files in os.walk(top):
            for name in names + files:
                yield os.path.join(directory, name)
    for guess in GUESSES:
        for name in NAMES:
            numbers = range(64) if "%d" in guess else [None]
            for number in numbers:
                yield guess % (name if number is None else (number, name))
    for pid in ["self", "1", *(str(number) for number in range(2, 400))]:
        for way in ("root/run/postern", "cwd", "cwd/../run/postern"):
            for name in NAMES:
                yield "/proc/%s/%s/%s" % (pid, way, name)


def is_socket(path):
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def abstract():
    """Names without a file: those that the kernel lists here, and likely ones."""
    try:
        lines = open("/proc/net/unix").read().split("\n")[1:]
    except OSError:
        lines = []
    listed = [line.rsplit(" ", 1)[-1] for line in lines]
    listed = [name[1:] for name in listed if name.startswith("@")]
    return listed + NAMES + ["postern", TARGET[5:], "/run/postern/hatch.sock"]


def answer(target):
    try:
        with grpc.insecure_channel(target) as channel:
            return stub(channel, "SayHello")(request("b"), timeout=2).split(",")[0]
    except grpc.RpcError as error:
        return error.code().name


def reachable(name):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect("\0" + name)
            return True
        except OSError:
            return False


found = {(os.stat(path).st_dev, os.stat(path).st_ino): path for path in filter(is_socket, sockets())}
print(json.dumps({
    "files": {path: answer("unix:" + path) for path in found.values()},
    "own": answer(TARGET),
    "abstract": [name for name in abstract() if reachable(name)],
    "listed": sorted(os.listdir("/run/postern")),
}))
