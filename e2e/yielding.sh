#!/usr/bin/env bash
# yielding.sh COMMAND...: runs COMMAND with the processor time that everything else leaves.
#
# Linux may share the processors among sessions first (autogroup), and then a nice value counts within one session only. So the
# session of the caller yields as well, until COMMAND ends.
set -euo pipefail

session_yields() {
  # Nobody but root may change it more than ten times a second, and a container may not allow it. Then only `nice` is left.
  { echo "$1" >/proc/self/autogroup; } 2>/dev/null || true
}

trap 'session_yields 0' EXIT
session_yields 19
nice -n 19 "$@"
