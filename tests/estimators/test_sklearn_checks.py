"""scikit-learn's own checks, over all estimators, with an empty list of expected failures."""

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import estimators

# Some checks have fewer distinct rows than the default of 8 clusters, about which scikit-learn's KMeans warns as well.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The number of distinct clusters"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),  # few iterations
]

# Networks as small as they can be: the checks ask for manners, not for quality.
SMALL = {
    "VAEMixture": {"n_clusters": 2, "max_iter": 1, "hidden_size": 2, "latent_size": 1},
    "InContextClusterer": {"n_clusters": 2, "n_init": 1},
}
ALL = [getattr(estimators, name)(**SMALL.get(name, {})) for name in estimators.__all__ if name != "load"]

# Checks that parametrize_with_checks leaves out.
FURTHER = [
    "check_dataframe_column_names_consistency",
    "check_param_validation",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_global_output_transform_pandas",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_n_features_in",
    "check_positive_only_tag_during_fit",
]


@parametrize_with_checks(ALL)
def test_estimators_pass_scikit_learns_checks(estimator, check, request):
    if check.func.__name__ != "check_clustering":  # which asks for good clusters
        request.getfixturevalue("brief_training")
    check(estimator)


@pytest.mark.filterwarnings("ignore:X (does not have|has)")  # these checks mix frames and arrays
@pytest.mark.usefixtures("brief_training")
@pytest.mark.parametrize("name", FURTHER)
@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_estimators_pass_the_checks_that_are_left_out(estimator, name):
    getattr(estimator_checks, name)(type(estimator).__name__, estimator)
