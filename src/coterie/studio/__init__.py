"""The studio: a local web application for clustering tables.

A server on the loopback address (``server``, behind ``guard``) serves the page in ``static`` and its API under
``/api/`` (``api``). Everything that touches data runs in a process of its own (started by ``jobs``, implemented by
``worker`` and ``tasks``), with limits on time, memory and number (``limits``). ``store`` knows where results are; no
name that a client sends is ever used as a path.
"""
