"""Answers each line, a count, with a line of the times of that many unary calls in microseconds.

The host process of the Python package that the bench compares with: its own hatch, its own sandbox
with the C init, and in it the guest script. Arguments: the package's directory, the init, the
guest's environment, the guest script.
"""

import sys

sys.path.insert(0, sys.argv[1])
import grpc  # noqa: E402
import postern  # noqa: E402
from postern.grpc import GrpcHatch  # noqa: E402


def say_hello(request, context):
    return b'\x0a' + bytes([7 + request[1]]) + b'hello, ' + request[2:]


def register(servicer, server):
    handlers = {'SayHello': grpc.unary_unary_rpc_method_handler(servicer)}
    handler = grpc.method_handlers_generic_handler('greeter.Greeter', handlers)
    server.add_generic_rpc_handlers((handler,))


hatch = GrpcHatch(allowlist={'/greeter.Greeter/SayHello'})
hatch.add_servicer(register, say_hello)
profile = postern.SandboxProfile.with_venv(sys.argv[3], init=sys.argv[2])
sandbox = postern.Sandbox(profile, hatch=hatch)
guest = open(sys.argv[4]).read()
for line in sys.stdin:
    code = f'import os\nos.environ["CALLS"] = "{int(line)}"\n{guest}'
    result = sandbox.run_python(code)
    if not result.ok:
        sys.exit(f'{result.returncode}: {result.stderr}')
    print(result.stdout.strip(), flush=True)
hatch.close()
