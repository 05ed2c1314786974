#!/usr/bin/env bash
# meanwhile.sh COMMAND OTHER [ARGUMENT...]: runs OTHER, and COMMAND with the processor time that it leaves. When OTHER has
# ended, ends COMMAND too, and leaves it to the caller to run it again, so it has to be one that goes on where it was.
set -euo pipefail

# COMMAND has a session of its own, so that it can be ended with all that it has started, even if OTHER is killed. Linux may share
# the processors among sessions first (autogroup), and then a nice value counts within one session only: the session yields as
# well. A container may not allow that; then only `nice` is left.
setsid bash -c '
  command=$1 other=$2
  echo 19 >/proc/self/autogroup
  nice -n 19 $command &
  while kill -0 "$other"; do sleep 0.2; done
  kill -TERM -- "-$$"
' meanwhile "$1" $$ </dev/null >/dev/null 2>&1 &
exec "${@:2}"
