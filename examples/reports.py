"""
A report for people
===================

:func:`coterie.report` writes one HTML file that explains a clustering to those who were not there: what the clusters
are like, how sure the assignment is, what to be careful about, and the lines of Python that do it again. It opens
anywhere, offline. On the command line it is ``coterie cluster wine.csv --exclude cultivar --scale --report wine.html``.
"""

# sphinx_gallery_thumbnail_path = 'images/report.png'

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie.data.tables import sample

wine = sample("wine").drop(columns="cultivar")
model = make_pipeline(StandardScaler(), coterie.KMeans(3, n_init=10, random_state=0)).fit(wine)

# %%
# Here it is, as a notebook shows it. Scroll inside, and play the layers.

coterie.report(model, wine, title="178 wines", refits=2, seconds=1.0)
