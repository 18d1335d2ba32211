"""One self-contained HTML file: styles, scripts, plotly.js and all figures are inside."""

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import plotly.graph_objects as go
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from coterie import __version__
from coterie.palette import PALETTE, color
from coterie.plot.themes import template
from coterie.wording import number, plural, short


class Place(NamedTuple):
    """Where a figure is drawn, and what it shows."""

    identity: str
    label: str
    height: int
    tall: int  # at least, before it is drawn
    group: str | None
    name: str  # of the file in which a reader saves it


class Page:
    """Collects the data of figures, then writes everything into one document."""

    def __init__(self) -> None:
        self._data = [("themes", escaped_json({name: template(name) for name in ("light", "dark")}))]

    def figure(self, made: go.Figure, label: str, height: int = 0, group: str | None = None) -> Place:
        """A place for the figure; its data are written at the end of the document."""
        identity = f"figure-{len(self._data)}"
        made.layout.template = None  # type: ignore[assignment]
        self._data.append((identity, escaped_json(str(made.to_json()))))
        name = "".join(letter if letter.isalnum() else "-" for letter in label.lower())[:40].strip("-")
        return Place(identity, label, height, height or int(made.layout.height or 320), group, name)

    def values(self, identity: str, document: object) -> None:
        """Data for the script of the page."""
        self._data.append((identity, escaped_json(document)))

    def html(self, name: str, **said: Any) -> str:
        """The document that a template makes; ``said`` is what the template names."""
        scripts = [_plotly(), _own("page.js")]
        allowed = " ".join(f"'{_hash(script)}'" for script in scripts)
        policy = (
            f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
            "font-src data:; base-uri 'none'; form-action 'none'"
        )
        return _templates().get_template(name).render(
            policy=policy, version=__version__, style=Markup(_own("page.css")), data=self._data,  # noqa: S704
            scripts=[Markup(script) for script in scripts], **said,  # noqa: S704 - both are files of packages
        )  # fmt: skip


@cache
def _templates() -> Environment:
    """The templates. A name that is missing is an error, and every value is escaped unless it is Markup."""
    made = Environment(autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(_own))
    made.globals.update(chip=chip, bar=bar, color=color, number=number, plural=plural, short=short)
    made.filters["short"] = short
    return made


def chip(label: int, name: str = "") -> Markup:
    """The colour of a cluster, and its name."""
    kind = "chip out" if label < 0 else "chip square" if label // len(PALETTE) % 2 else "chip"
    shape = Markup('<span class="{}" style="background:{}" aria-hidden="true"></span>{}')
    return shape.format(kind, color(label), name)


def bar(label: int, share: float) -> Markup:
    """A bar in the colour of a cluster, ``share`` of the width of its cell."""
    shape = Markup('<span class="track"><span class="bar" style="width:{:.1f}%;background:{}"></span></span>')
    return shape.format(100 * share, color(label))


def escaped_json(document: Any) -> Markup:
    """JSON (a text, or a value) for the script of the page. No character in it can end the element."""
    text = document if isinstance(document, str) else json.dumps(document, allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)  # noqa: S704 - the letters that HTML interprets are gone


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
