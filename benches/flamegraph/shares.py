#!/usr/bin/env python3
"""shares.py [--document FILE] FOLDED...: prints which part of the operator took which share of the samples.

A sample belongs to the kernel or to a plan if any of its frames does, and otherwise to the part of its innermost frame that
a part claims: time that the C library spends for the decoding of JSON is JSON. With a document, the table goes between its
comments `shares` and `end of shares`.
"""

import argparse
import collections
import pathlib
import re

# A frame of these claims its whole sample; the first that fits counts.
WHOLE = [
    ("kernel", r"_\[k\]$"),
    ("plans of pools: snapshot, plan, commit", r"^warmpool::controllers::pool::step"),
    ("plans of claims", r"^warmpool::controllers::claim::step"),
]
# Of these, the innermost frame that any of them claims.
INNERMOST = [
    ("JSON of events and answers", r"^(serde|json_patch|k8s_openapi|warmpool::model::stored)"),
    ("cache: events and answers", r"^warmpool::(cache|model|planner|controllers)"),
    ("metrics and log", r"^(warmpool::telemetry|tracing|prometheus|warmpool::client::count)"),
    ("TLS", r"^(rustls|ring|tokio_rustls|hyper_rustls|aes|_?chacha|_?gcm)"),
    ("HTTP and the client", r"^(hyper|http|tower|kube_client|kube_core|warmpool::(client|executor)|url|form_urlencoded)"),
    ("watches and queues of controllers", r"^(kube_runtime|futures|async_|pin_project)"),
    ("runtime", r"^(tokio|mio|std::sync)"),
]
# Functions of the C library keep no frame pointers, so their callers are often unknown.
ALLOCATION = ("allocation, of which the caller is unknown", r"^(malloc|realloc|calloc|cfree|free|_int_|unlink_chunk|__GI___libc)")
OTHER = "other"
NAMES = [name for name, _ in [*WHOLE, *INNERMOST, ALLOCATION]] + [OTHER]


def part_of(stack):
    """The part that a sample belongs to."""
    frames = stack.split(";")
    for part, pattern in WHOLE:
        if any(re.search(pattern, frame) for frame in frames):
            return part
    for frame in reversed(frames):
        for part, pattern in INNERMOST:
            if re.search(pattern, frame):
                return part
    return ALLOCATION[0] if re.search(ALLOCATION[1], frames[-1]) else OTHER


def shares(path):
    """The share of each part, and the number of samples."""
    counts = collections.Counter()
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        counts[part_of(stack)] += int(count)
    total = max(1, sum(counts.values()))
    return {part: count * 100 / total for part, count in counts.items()}, total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--document", type=pathlib.Path)
    parser.add_argument("folded", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    measured = [shares(path) for path in arguments.folded]
    titles = [f"{path.stem}, % of {total:,} samples" for path, (_, total) in zip(arguments.folded, measured)]
    lines = ["| part | " + " | ".join(titles) + " |", "|---|" + "---|" * len(titles)]
    for part in NAMES:
        cells = [f"{of_part.get(part, 0):.0f}" for of_part, _ in measured]
        lines.append(f"| {part} | " + " | ".join(cells) + " |")
    table = "\n".join(lines)
    print(table)
    if arguments.document:
        text = arguments.document.read_text()
        before, _, rest = text.partition("<!-- shares -->")
        _, end, after = rest.partition("<!-- end of shares -->")
        if not end:
            raise SystemExit(f"{arguments.document} has no place for shares")
        arguments.document.write_text(f"{before}<!-- shares -->\n\n{table}\n\n{end}{after}")


if __name__ == "__main__":
    main()
