"""Reading a report: its elements, its texts, and the data of its figures."""

import json
from html.parser import HTMLParser


class Reader(HTMLParser):
    """Every element with its attributes, every text outside scripts and styles, and every JSON block."""

    def __init__(self, document: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.data: dict[str, object] = {}
        self._inside = ""
        self._identity = ""
        self._parts: list[str] = []
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside, self._parts = tag, []
            self._identity = dict(attrs).get("id", "") if dict(attrs).get("type") == "application/json" else ""

    def handle_endtag(self, tag):
        if tag == self._inside == "script":
            text = "".join(self._parts)
            if self._identity:
                self.data[self._identity] = json.loads(text)
            else:
                self.scripts.append(text)
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data):
        (self._parts if self._inside else self.texts).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def titles(self) -> list[str]:
        return [attributes["aria-label"] for tag, attributes in self.elements if tag == "section"]

    @property
    def figures(self) -> dict[str, dict]:
        """Figures by what they show."""
        return {
            attributes["aria-label"]: self.data[attributes["data-figure"]]
            for tag, attributes in self.elements
            if "data-figure" in attributes
        }
