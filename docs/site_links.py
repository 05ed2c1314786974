"""A hook of MkDocs: links to files of the repository that are not pages of the site."""

from __future__ import annotations

import posixpath
import re

LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)#\s]*)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page, config, **_: object) -> str:
    """Points them to the repository, or leaves their words alone where `extra.source` does not say where it is."""
    source = config["extra"]["source"].rstrip("/")

    def point(link: re.Match[str]) -> str:
        words, path, anchor = link[1], link[2], link[3] or ""
        inside = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), path))
        if inside.startswith("docs/"):
            return link[0]
        return f"[{words}]({source}/{inside}{anchor})" if source else words

    return LINK.sub(point, markdown)
