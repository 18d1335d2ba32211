"""HTML in which every text is escaped, unless it is HTML already."""

import html
import json
from typing import Any


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(value: Any) -> Html:
    return value if isinstance(value, Html) else Html(html.escape(str(value), quote=True))


def join(*parts: Any) -> Html:
    """The parts in order; lists are flattened and None is skipped."""
    flat: list[str] = []
    for part in parts:
        if isinstance(part, list | tuple):
            flat.append(join(*part))
        elif part is not None:
            flat.append(escape(part))
    return Html("".join(flat))


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """An element. ``class_`` is the attribute class, ``aria_label`` is aria-label; None omits an attribute."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in ("input", "br", "meta"):
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def data(identity: str, document: str | Any) -> Html:
    """JSON (a text, or a value) for the script of the page. No character in it can end the element."""
    text = document if isinstance(document, str) else json.dumps(document, allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Html(f'<script type="application/json" id="{html.escape(identity)}">{text}</script>')


def table(heads: list[Any], rows: list[list[Any]], *, caption: str = "", text_columns: int = 1) -> Html:
    """A table whose first columns contain texts and whose other columns contain numbers; a wide table scrolls."""
    kinds = ["word" if i < text_columns else "number" for i in range(len(heads))]
    top = tag("tr", [tag("th", head, scope="col", class_=kind) for head, kind in zip(heads, kinds)])
    body = [tag("tr", [tag("td", cell, class_=_kind(cell, kind)) for cell, kind in zip(row, kinds)]) for row in rows]
    inner = tag("table", tag("caption", caption) if caption else None, tag("thead", top), tag("tbody", body))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption or "table")


def _kind(cell: Any, kind: str) -> str:
    """A short text is not wrapped; text that is HTML already is short."""
    return "word brief" if kind == "word" and (isinstance(cell, Html) or len(str(cell)) <= 24) else kind
