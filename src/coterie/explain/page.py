"""One self-contained HTML file: styles, scripts, plotly.js and all figures are inside."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

import plotly.graph_objects as go

from coterie import __version__
from coterie.explain.markup import Html, data, join, tag
from coterie.plot.themes import template


class Page:
    """Collects sections and figures, then writes them into one document."""

    def __init__(self, title: str, subtitle: str):
        self.title, self.subtitle = title, subtitle
        self._sections: list[tuple[str, str, Html]] = []
        self._data: list[Html] = []

    def figure(self, made: go.Figure, label: str, height: int = 0, group: str | None = None) -> Html:
        """A placeholder for the figure; its data are written at the end of the document."""
        identity = f"figure-{len(self._data)}"
        made.layout.template = None  # type: ignore[assignment]
        self._data.append(data(identity, str(made.to_json())))
        place = tag(
            "div",
            tag("p", "This figure needs JavaScript.", class_="empty"),
            data_figure=identity,
            data_height=height or None,
            data_group=group,
            role="img",
            aria_label=label,
            style=f"min-height:{height or int(made.layout.height or 320)}px",
        )
        name = "".join(letter if letter.isalnum() else "-" for letter in label.lower())[:40].strip("-")
        save = [
            tag("button", kind.upper(), type="button", class_="quiet", hidden="hidden", data_name=name, data_kind=kind,
                aria_label=f"Save as {kind.upper()}")
            for kind in ("png", "svg")
        ]  # fmt: skip
        return tag("figure", place, tag("div", save, class_="keep"), class_="figure")

    def values(self, identity: str, document: object) -> None:
        """Data for the script of the page."""
        self._data.append(data(identity, document))

    def section(self, title: str, body: Html | None) -> None:
        if body is not None:
            identity = "".join(letter if letter.isalnum() else "-" for letter in title.lower())
            self._sections.append((identity, title, body))

    def html(self) -> str:
        scripts = [_plotly(), _own("page.js")]
        allowed = " ".join(f"'{_hash(script)}'" for script in scripts)
        policy = (
            f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
            "font-src data:; base-uri 'none'; form-action 'none'"
        )
        links = [tag("li", tag("a", title, href=f"#{identity}")) for identity, title, _ in self._sections]
        sections = [
            tag("section", tag("h2", title), body, id=identity, aria_label=title)
            for identity, title, body in self._sections
        ]
        themes = data("themes", {name: template(name) for name in ("light", "dark")})
        head = join(
            tag("meta", charset="utf-8"),
            tag("meta", **{"http-equiv": "Content-Security-Policy", "content": policy}),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("meta", name="generator", content=f"coterie {__version__}"),
            tag("title", self.title),
            Html(f"<style>{_own('page.css')}</style>"),
        )
        body = join(
            tag("a", "Skip to the report", href="#report", class_="skip"),
            tag(
                "header",
                tag("h1", self.title),
                tag("p", self.subtitle),
                tag("nav", tag("ul", links), aria_label="Contents"),
            ),
            Html("<noscript><p>The figures need JavaScript; texts and tables do not.</p></noscript>"),
            tag("main", sections, id="report"),
            tag(
                "footer",
                tag(
                    "p",
                    f"Made by coterie {__version__}. This file loads nothing from the network.",
                ),
            ),
            themes,
            self._data,
            [Html(f"<script>{script}</script>") for script in scripts],
        )
        return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>{body}</body>\n</html>\n'


@cache
def _plotly() -> str:
    """plotly.js from the plotly package, in a form that is valid inside a script element."""
    from plotly.offline import get_plotlyjs

    return get_plotlyjs().replace("</script", "<\\/script").replace("<!--", "<\\!--")


@cache
def _own(name: str) -> str:
    return files("coterie.explain").joinpath(name).read_text(encoding="utf-8")


@cache
def _hash(script: str) -> str:
    """The hash by which the content security policy of the page allows this script, and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
