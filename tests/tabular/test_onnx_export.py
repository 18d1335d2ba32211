"""An ONNX graph gives what the model gives, run by onnxruntime or, where that is missing, by onnx itself."""

import numpy as np
import pandas as pd
import pytest

import coterie
from coterie.tabular import EncodedTable, SettingError, TableModel
from coterie.tabular.onnx_export import export_onnx

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'coterie[onnx]'")

ESTIMATORS = [
    coterie.KMeans(3, random_state=0),
    coterie.SoftKMeans(3, random_state=0),
    coterie.SphericalKMeans(3, random_state=0),
    coterie.TrimmedKMeans(3, outliers=0.1, random_state=0),
    coterie.RobustKMeans(3, random_state=0),
    coterie.KMedoids(3, max_iter=20, random_state=0),
]


def run(path, rows):
    try:
        from onnxruntime import InferenceSession

        session = InferenceSession(str(path))
        return dict(zip([one.name for one in session.get_outputs()], session.run(None, {"X": rows})))
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(str(path))
        return dict(zip(evaluator.output_names, evaluator.run(None, {"X": rows})))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_the_graph_gives_what_the_model_gives(tmp_path, estimator, scale):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 4)) + 6 * np.eye(4)[np.arange(200) % 3], columns=list("abcd"))
    frame = frame.astype(np.float32)
    rows = EncodedTable.learn(frame, scale=scale)
    model = TableModel(estimator.fit(rows.points), rows.encoding, {0: "first"})
    found = run(export_onnx(model, tmp_path / "m.onnx"), frame.to_numpy())
    np.testing.assert_array_equal(found["labels"], model.predict_encoded(rows))
    distances = estimator.transform(rows.points)
    expected = distances if isinstance(estimator, coterie.SphericalKMeans) else distances**2
    np.testing.assert_allclose(found["distances"], expected, rtol=1e-3, atol=1e-4)
    if hasattr(estimator, "predict_proba"):
        np.testing.assert_allclose(found["probabilities"], estimator.predict_proba(rows.points), atol=1e-4)


def test_models_without_a_graph_say_so(tmp_path):
    frame = pd.DataFrame({"a": np.sqrt(np.arange(20.0)), "b": ["x", "y"] * 10})
    rows = EncodedTable.learn(frame, encode=True)
    with pytest.raises(SettingError, match="encoded columns"):
        export_onnx(TableModel(coterie.KMeans(2).fit(rows.points), rows.encoding), tmp_path / "m.onnx")
    other = coterie.FlowMixture()
    with pytest.raises(SettingError, match="no ONNX form"):
        export_onnx(TableModel(other, EncodedTable.learn(frame[["a"]]).encoding), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
