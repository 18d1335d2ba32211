"""``python -m tests.tabular.without_pandas WORDS`` runs ``coterie WORDS`` as if pandas were not installed.

scikit-learn imports pandas where it can, so that its absence cannot be seen in ``sys.modules``.
"""

import sys


class Absent:
    """An importer that has no pandas."""

    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ImportError("pandas is not installed")


if __name__ == "__main__":
    sys.meta_path.insert(0, Absent())
    from coterie.cli import main

    main()
