"""Runs CPython's own tests and prints one line per case: verdict, name, and why it did not pass.

Whether a verdict is right is for the reader: the same tests run outside a sandbox and inside.
"""

import os
import sys
import unittest


class Verdicts(unittest.TestResult):
    """Prints each verdict at once, so that a crash costs one case and not all."""

    def __init__(self, out):
        super().__init__()
        self.out = out
        self.worst = None

    def startTest(self, test):
        super().startTest(test)
        self.worst = None

    def stopTest(self, test):
        verdict, why = self.worst or ("passed", "")
        self.line(verdict, test.id(), why)
        super().stopTest(test)

    def line(self, verdict, name, why):
        why = " ".join(str(why).split())[:400]
        os.write(self.out, f"{verdict}\t{name}\t{why}\n".encode(errors="replace"))

    def meet(self, verdict, test, why):
        # Fixtures of classes and modules fail without having been started.
        if isinstance(test, unittest.TestCase):
            if self.worst is None or verdict != "skipped":
                self.worst = (verdict, why)
        else:
            self.line(verdict, test.id(), why)

    def addError(self, test, err):
        self.meet("failed", test, f"{err[0].__name__}: {err[1]}")

    def addFailure(self, test, err):
        self.meet("failed", test, f"{err[0].__name__}: {err[1]}")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.meet("failed", test, f"{err[0].__name__}: {err[1]}")

    def addSkip(self, test, reason):
        self.meet("skipped", getattr(test, "test_case", test), reason)

    def addExpectedFailure(self, test, err):
        self.meet("passed", test, "")

    def addUnexpectedSuccess(self, test):
        self.meet("failed", test, "it was expected to fail")


def main():
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    from test import support
    from test.support import os_helper

    # None of the network, the display and the like.
    support.use_resources = []
    support.verbose = 0
    names = [f"test.{name}" for name in sys.argv[1:]]
    verdicts = Verdicts(out)
    try:
        with os_helper.temp_cwd(name=None):
            tests = unittest.defaultTestLoader.loadTestsFromNames(names)
            tests.run(verdicts)
    except Exception as error:
        # Standard error is nobody's by now.
        verdicts.line("failed", "the whole", repr(error))
        raise


if __name__ == "__main__":
    main()
