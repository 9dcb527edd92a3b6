# Sourced by a copy of bubblewrap's test-run.sh, which would stop at its first failure. Here every
# test is told of: a failure is kept until the next `ok`, which then says `not ok` and why.
set +e -E
failure=

fail() {
  [ -n "$failure" ] || failure=$*
}

trap 'fail "line $LINENO: status $?: $BASH_COMMAND"' ERR

# What the test library does to end the script.
fatal() { fail "$*"; }
assert_not_reached() { fail "$*"; }

# `! command` never ends a script that has `set -e`: the copy says this where it is meant.
refuses() {
  if "$@"; then fail "succeeded: $*"; fi
  return 0
}

ok() {
  test_count=$((test_count + 1))
  if [ -z "$failure" ]; then
    echo "ok $test_count $*"
  else
    echo "not ok $test_count $*"
    echo "# why: ${failure//$'\n'/ }"
  fi
  failure=
}
