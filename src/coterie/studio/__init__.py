"""The studio: a local web page for clustering a table by hand.

A server on the loopback address (``server``, behind ``guard``) gives out the page in ``static`` and answers it under
``/api/`` (``api``). Whatever touches a user's data runs in a process of its own (``jobs`` starts it, ``worker`` is it,
``tasks`` is what it does), bounded in time, memory and number (``limits``). ``store`` knows where results lie; no name
that a client sends ever becomes a path.
"""
