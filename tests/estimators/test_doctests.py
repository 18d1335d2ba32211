"""The examples in the documentation of the estimators run and print what they say."""

import doctest
from importlib import import_module

import pytest

from coterie.catalogue import CATALOGUE


@pytest.mark.parametrize("module", [row.module for row in CATALOGUE.values()])
def test_examples_print_what_they_say(module):
    failed, tried = doctest.testmod(import_module(f"coterie.estimators.{module}"), optionflags=doctest.ELLIPSIS)
    assert failed == 0
    assert tried
