"""``python -m tests.tabular.without_pandas COMMANDS`` runs ``coterie`` as if pandas were not installed.

``COMMANDS`` is a JSON list of lists of words.

scikit-learn imports pandas where it can, so that its absence cannot be seen in ``sys.modules``.
"""

import json
import sys


class Absent:
    """An importer that has no pandas."""

    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ImportError("pandas is not installed")


if __name__ == "__main__":
    sys.meta_path.insert(0, Absent())
    from coterie.cli import main

    for words in json.loads(sys.argv[1]):
        sys.argv[1:] = words
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
