"""Most tests read pages without plotly.js, which is most of a page and always the same."""

import pytest

from coterie.explain import page


@pytest.fixture
def whole_pages():
    """Ask for it to get pages with plotly.js."""


@pytest.fixture(autouse=True)
def light_pages(request, monkeypatch):
    if "whole_pages" not in request.fixturenames:
        monkeypatch.setattr(page, "_plotly", lambda: "/* plotly.js */")
