#!/usr/bin/env python3
"""shorten.py: removes generic parameters and hashes from the names in folded stacks, from stdin to stdout.

`<A as B>::c` becomes `A::c`, and `a::b<C>::d` becomes `a::b::d`. Frames that say nothing, such as the closures that
start a program, are left out, and equal stacks are added up.
"""

import collections
import re
import sys

HASH = re.compile(r"::h[0-9a-f]{16}\b")
BRACKETS = re.compile(r"(\w|::)?<([^<>]*)>")
# Frames of Rust's runtime, and wrappers that only call what they wrap.
SILENT = re.compile(
    r"^(core::ops::function::|std::rt::|std::sys::backtrace|std::panic|__libc_start|_start$|main$|__rust_|"
    r"<?core::pin::Pin|<?&mut |core::future::poll_fn|<?alloc::boxed::Box)"
)


def without_brackets(found):
    """A parameter list after a name goes; of the type that begins a path, the type stays and its trait goes."""
    before, inside = found.groups()
    return before or re.sub(r"^(&mut |&|dyn |impl .* for )+", "", inside.split(" as ")[0])


def without_generics(name):
    """The name without what stands in angle brackets, from the inside out."""
    name, shorter = None, HASH.sub("", name).replace("->", "")
    while name != shorter:
        name, shorter = shorter, BRACKETS.sub(without_brackets, shorter)
    return re.sub(r"(::)+", "::", name).rstrip(":")


def main():
    counts = collections.Counter()
    for line in sys.stdin:
        stack, _, count = line.rstrip("\n").rpartition(" ")
        frames = [without_generics(frame) for frame in stack.split(";")]
        frames = [frame for frame in frames if not SILENT.search(frame)]
        # A wrapper of the same name above itself adds height only.
        kept = [frame for index, frame in enumerate(frames) if index == 0 or frame != frames[index - 1]]
        counts[";".join(kept)] += int(count)
    for stack, count in sorted(counts.items()):
        print(stack, count)


if __name__ == "__main__":
    main()
