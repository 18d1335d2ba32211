"""Training that takes no time, for tests that ask networks for manners and not for quality."""

from dataclasses import replace

import pytest


@pytest.fixture
def brief_training(monkeypatch):
    """VAEMixture trains its networks for a few steps in every M-step."""
    from coterie import VAEMixture  # here, because it loads torch

    usual = VAEMixture._settings

    def brief(self, *given):
        return replace(usual(self, *given), least_steps=1, first_epochs=2.0)

    monkeypatch.setattr(VAEMixture, "_settings", brief)
