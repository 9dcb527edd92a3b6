//! Python programs and what they come to; runs nothing.

/// A program, what it is given, and what comes of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) code: &'static [u8],
    pub(crate) arguments: &'static [&'static str],
    pub(crate) stdin: &'static [u8],
    pub(crate) stdout: &'static str,
    /// Lines of stderr, in this order, others between them; nothing at all when empty.
    pub(crate) stderr: &'static [&'static str],
    /// As a shell has it.
    pub(crate) code_of_end: i32,
}

const fn program(name: &'static str, code: &'static [u8], stdout: &'static str) -> Program {
    Program { name, code, arguments: &[], stdin: b"", stdout, stderr: &[], code_of_end: 0 }
}

/// One that fails and prints nothing.
const fn failing(
    name: &'static str,
    code: &'static [u8],
    code_of_end: i32,
    stderr: &'static [&'static str],
) -> Program {
    Program { stderr, code_of_end, ..program(name, code, "") }
}

/// The oldest Python with exception groups; others skip the rows of [`GROUPS`].
pub(crate) const HAS_GROUPS: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

pub(crate) const GROUPS: [Program; 1] = [failing(
    "an exception group",
    b"def f(n):\n    raise ValueError(n)\n\nerrors = []\nfor n in (1, 2):\n    try:\n        f(n)\n    \
      except ValueError as e:\n        errors.append(e)\nraise ExceptionGroup('both', errors)\n",
    1,
    &[
        "  + Exception Group Traceback (most recent call last):",
        "  |   File \"/run/postern/main.py\", line 10, in <module>",
        "  |     raise ExceptionGroup('both', errors)",
        "  | ExceptionGroup: both (2 sub-exceptions)",
        "    |     raise ValueError(n)",
        "    | ValueError: 2",
    ],
)];

pub(crate) const ENDS: [Program; 17] = [
    failing("exit 3", b"import sys; sys.exit(3)", 3, &[]),
    failing("exit None", b"import sys; sys.exit()", 0, &[]),
    failing("exit True", b"raise SystemExit(True)", 1, &[]),
    failing("exit 256", b"import sys; sys.exit(256)", 0, &[]),
    failing("exit 300", b"import sys; sys.exit(300)", 44, &[]),
    failing("exit -1", b"import sys; sys.exit(-1)", 255, &[]),
    failing("exit with a text", b"import sys; sys.exit('no luck')", 1, &["no luck"]),
    failing(
        "an exception",
        b"def f(n):\n    return 1 // n\n\nf(0)\n",
        1,
        &[
            "Traceback (most recent call last):",
            "  File \"/run/postern/main.py\", line 4, in <module>",
            "    f(0)",
            "  File \"/run/postern/main.py\", line 2, in f",
            "    return 1 // n",
            "ZeroDivisionError: integer division or modulo by zero",
        ],
    ),
    failing(
        "a syntax error",
        b"x = 1\ny = (2 +\n",
        1,
        &["  File \"/run/postern/main.py\", line 2", "    y = (2 +"],
    ),
    failing(
        "wrong indentation",
        b"if 1:\npass\n",
        1,
        &["  File \"/run/postern/main.py\", line 2", "    pass"],
    ),
    failing(
        "an interrupt",
        b"import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(60)\n",
        130,
        &["  File \"/run/postern/main.py\", line 2, in <module>", "KeyboardInterrupt"],
    ),
    failing(
        "a cause",
        b"try:\n    {}['key']\nexcept KeyError as e:\n    raise RuntimeError('outer') from e\n",
        1,
        &[
            "  File \"/run/postern/main.py\", line 2, in <module>",
            "KeyError: 'key'",
            "The above exception was the direct cause of the following exception:",
            "    raise RuntimeError('outer') from e",
            "RuntimeError: outer",
        ],
    ),
    failing(
        "a context",
        b"try:\n    {}['key']\nexcept KeyError:\n    None.x\n",
        1,
        &[
            "    {}['key']",
            "During handling of the above exception, another exception occurred:",
            "    None.x",
            "AttributeError: 'NoneType' object has no attribute 'x'",
        ],
    ),
    failing(
        "too deep",
        b"def f():\n    f()\nf()\n",
        1,
        &["    f()", "RecursionError: maximum recursion depth exceeded"],
    ),
    failing(
        "an exception of a thread",
        b"import threading\nt = threading.Thread(target=lambda: 1 / 0, name='T')\nt.start()\nt.join()\n",
        0,
        &["  File \"/run/postern/main.py\", line 2, in <lambda>", "ZeroDivisionError: division by zero"],
    ),
    failing(
        "an exception at exit",
        b"import atexit\natexit.register(lambda: 1 / 0)\n",
        0,
        &["  File \"/run/postern/main.py\", line 2, in <lambda>"],
    ),
    failing(
        "an exception hook of its own",
        b"import sys\nsys.excepthook = lambda *e: sys.stderr.write('mine %s\\n' % e[0].__name__)\n1 / 0\n",
        1,
        &["mine ZeroDivisionError"],
    ),
];

pub(crate) const WHOLE: [Program; 23] = [
    program("nothing", b"", ""),
    program("one byte", b"1", ""),
    program(
        "names",
        b"print(__name__, __file__, __spec__, __package__, __doc__, __builtins__.__name__)",
        "__main__ /run/postern/main.py None None None builtins\n",
    ),
    program(
        "no name too many",
        b"print(sorted(name for name in globals() if not name.startswith('__')))",
        "[]\n",
    ),
    program("the docstring", b"'''text'''\nprint(__doc__)", "text\n"),
    Program {
        arguments: &["a b", "", "-c", "--", "-m\n", "\u{e9}\u{20ac}", "*", "7"],
        ..program(
            "arguments",
            b"import sys; print(ascii(sys.argv))",
            "['/run/postern/main.py', 'a b', '', '-c', '--', '-m\\n', '\\xe9\\u20ac', '*', '7']\n",
        )
    },
    program("the path", b"import sys; print(sys.path[0], '' in sys.path)", "/run/postern False\n"),
    Program {
        stdin: b"\0\xff\r\n\n",
        ..program("stdin", b"import sys; print(sys.stdin.buffer.read())", "b'\\x00\\xff\\r\\n\\n'\n")
    },
    Program { stdin: b"one\ntwo", ..program("input", b"print(input(), input())", "one two\n") },
    program("CRLF", b"if True:\r\n    print('''a\r\nb''')\r\n", "a\nb\n"),
    program("CR", b"print(1)\rprint(2)\r", "1\n2\n"),
    program("a byte-order mark", b"\xef\xbb\xbfprint('\xc3\xa9')", "\u{e9}\n"),
    program("a cookie", b"# -*- coding: latin-1 -*-\nprint('\xe9')", "\u{e9}\n"),
    program("a future", b"from __future__ import annotations\nx: y = 1\nprint(__annotations__)", "{'x': 'y'}\n"),
    program(
        "its own source",
        b"import inspect\ndef f():\n    return 1  # here\nprint(inspect.getsource(f), end='')\nprint(inspect.getfile(f))",
        "def f():\n    return 1  # here\n/run/postern/main.py\n",
    ),
    program(
        "pickle",
        b"import pickle\nclass C:\n    def __init__(self): self.x = 7\nprint(pickle.loads(pickle.dumps(C())).x, C.__module__)",
        "7 __main__\n",
    ),
    program(
        "children by spawn",
        b"import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    \
          with m.get_context('spawn').Pool(2) as p: print(p.map(f, range(4)))\n",
        "[0, 1, 4, 9]\n",
    ),
    program(
        "children by fork",
        b"import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    \
          with m.get_context('fork').Pool(2) as p: print(p.map(f, range(4)))\n",
        "[0, 1, 4, 9]\n",
    ),
    program(
        "itself by runpy",
        b"import runpy\nif __name__ == '__main__':\n    print(runpy.run_path(__file__)['x'])\nx = __name__\n",
        "<run_path>\n",
    ),
    program(
        "the interpreter",
        b"import subprocess, sys\nprint(subprocess.check_output([sys.executable, '-c', 'print(6 * 7)']))",
        "b'42\\n'\n",
    ),
    program(
        "threads",
        b"from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as e: print(sum(e.map(int, '1234')))",
        "10\n",
    ),
    program(
        "asyncio",
        b"import asyncio\nasync def f(n):\n    await asyncio.sleep(0.01)\n    return n\nasync def all(): return await asyncio.gather(f(1), f(2))\nprint(asyncio.run(all()))",
        "[1, 2]\n",
    ),
    program(
        "dataclasses and typing",
        b"import dataclasses, typing\n@dataclasses.dataclass\nclass C:\n    x: 'int'\nprint(C(1), typing.get_type_hints(C))",
        "C(x=1) {'x': <class 'int'>}\n",
    ),
];

/// What a program can tell the two by: code, what it prints without a limit and with one. The lines
/// that set the limit are the outermost frame, and the interpreter's own hook is behind another.
pub(crate) const TOLD_APART: [(&str, &str, &str); 6] = [
    ("import inspect; print(len(inspect.stack()))", "1\n", "2\n"),
    ("import sys; print('-c' in sys.orig_argv)", "False\n", "True\n"),
    ("import sys; print('resource' in sys.modules)", "False\n", "True\n"),
    ("import sys; print(sys.excepthook is sys.__excepthook__)", "True\n", "False\n"),
    ("print('__cached__' in globals())", "True\n", "False\n"),
    ("print(type(__loader__).__name__)", "SourceFileLoader\n", "type\n"),
];
