"""
Reports
=======

:func:`coterie.report` creates a single HTML file that describes a clustering: what characterises the clusters, how
certain the assignment is, possible problems, and Python code that reproduces it. It can be opened offline in any
browser. The corresponding command is ``coterie cluster wine.csv --exclude cultivar --scale --report wine.html``.
"""

# sphinx_gallery_thumbnail_path = 'images/report.png'

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie.tables.table import sample

wine = sample("wine").drop(columns="cultivar")
model = make_pipeline(StandardScaler(), coterie.KMeans(3, n_init=10, random_state=0)).fit(wine)

# %%
# A notebook shows the report as below. You can scroll inside it and play the animation of the iterations.

coterie.report(model, wine, title="178 wines", refits=2, seconds=1.0)
