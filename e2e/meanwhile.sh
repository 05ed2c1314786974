#!/usr/bin/env bash
# meanwhile.sh COMMAND OTHER [ARGUMENT...]: runs OTHER, and COMMAND with the processor time that it leaves. When OTHER has
# ended, ends COMMAND too, and leaves it to the caller to run it again, so it has to be one that goes on where it was.
set -euo pipefail

# In a session of its own it can be ended with all that it has started, even if OTHER is killed.
setsid bash -c '
  $0 $1 &
  while kill -0 "$2"; do sleep 0.2; done
  kill -TERM -- "-$$"
' "$(dirname "${BASH_SOURCE[0]}")/yielding.sh" "$1" $$ </dev/null >/dev/null 2>&1 &
exec "${@:2}"
