"""A centre-based model as an ONNX graph, for programs that run without Python.

The graph takes rows in the units of the table, one column per feature, and gives what ``predict`` and ``transform``
give: labels (-1 for an outlier of a trimmed fit), and the squared distance to every centre (1 - cosine for
:class:`coterie.SphericalKMeans`). Soft clusterings also give the probability of every cluster. It computes in double
precision.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np

from coterie.estimators.base import algorithm_of
from coterie.files import check_writable, replacing
from coterie.tabular.make_estimator import SettingError
from coterie.tabular.model import TableModel

OPSET = 17
ROUNDING = 1e-6  # the row at the limit of trimming is inside, whichever way its distance is computed
EXTRA = "ONNX files need the package onnx: pip install 'coterie[onnx]'"


def export_onnx(model: TableModel, path: str | os.PathLike) -> Path:
    """Write a model as an ONNX file, which is replaced as a whole."""
    path = check_writable(path)
    content = onnx_model(model).SerializeToString()
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return Path(path)


def onnx_model(model: TableModel) -> Any:
    """The model as an ``onnx.ModelProto``."""
    try:
        from onnx import TensorProto, checker, helper
    except ImportError:
        raise SettingError(EXTRA) from None
    nodes, constants, outputs = _graph(model, helper)
    features = [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, len(model.encoding.names)])]
    kinds = {"labels": TensorProto.INT64, "distances": TensorProto.FLOAT, "probabilities": TensorProto.FLOAT}
    k = len(model.estimator.cluster_centers_)
    made = [
        helper.make_tensor_value_info(name, kinds[name], [None] if name == "labels" else [None, k]) for name in outputs
    ]
    graph = helper.make_graph(nodes, type(model.estimator).__name__, features, made, constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="coterie")
    proto.ir_version = 8  # read by runtimes since 2022
    about = {"columns": ",".join(model.encoding.names)}
    about |= {"names": ",".join(f"{label}={name}" for label, name in model.names.items())} if model.names else {}
    helper.set_model_props(proto, about)
    checker.check_model(proto)
    return proto


def _graph(model: TableModel, helper: Any) -> tuple[list, list, list[str]]:
    """Nodes, constants and names of the outputs."""
    from onnx import TensorProto, numpy_helper

    algorithm = algorithm_of(model.estimator)
    encoding = model.encoding
    if algorithm is None:
        kind = type(model.estimator).__name__
        raise SettingError(f"{kind} has no ONNX form: only k-means and its variants are a few matrix products.")
    if not encoding.complete:
        raise SettingError("A model of encoded columns has no ONNX form: fit it with --scale to columns of numbers.")
    constants: list[Any] = []
    nodes: list[Any] = []

    def constant(name: str, value: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    centers = np.asarray(model.estimator.cluster_centers_, dtype=np.float64)
    rows = node("Cast", ["X"], "double", to=TensorProto.DOUBLE)
    rows = node("Sub", [rows, constant("mean", encoding.middle.astype(np.float64))], "centred")
    rows = node("Div", [rows, constant("scale", encoding.spread.astype(np.float64))], "scaled")
    if algorithm.spherical:
        length = node("ReduceL2", [rows], "length", axes=[1], keepdims=1)
        length = node("Max", [length, constant("tiny", np.array([1e-300]))], "safe_length")
        rows = node("Div", [rows, length], "unit")
    product = node("MatMul", [rows, constant("centers", centers.T.copy())], "product")
    own = node("ReduceSumSquare", [rows], "own", axes=[1], keepdims=1)
    crossed = node("Mul", [product, constant("two", np.array([2.0]))], "crossed")
    cost = node("Sub", [own, crossed], "part")
    cost = node("Add", [cost, constant("sq_centers", (centers**2).sum(axis=1))], "sq")
    cost = node("Max", [cost, constant("zero", np.array([0.0]))], "positive")
    if algorithm.spherical:
        cost = node("Mul", [cost, constant("half", np.array([0.5]))], "cosine_distance")
    outputs = ["labels", "distances"]
    if algorithm.variant.soft:
        weights = getattr(model.estimator, "weights_", np.ones(len(centers)))
        score = node("Mul", [cost, constant("minus_gamma", np.array([-float(algorithm.gamma or 1.0)]))], "sharp")
        score = node("Add", [score, constant("log_weights", np.log(np.maximum(weights, 1e-300)))], "score")
        node("ArgMax", [score], "labels", axis=1, keepdims=0)
        node("Cast", [node("Softmax", [score], "shares", axis=1)], "probabilities", to=TensorProto.FLOAT)
        outputs.append("probabilities")
    else:
        limits = getattr(model.estimator, "threshold_", None)
        prices = np.zeros(len(centers)) if algorithm.prices is None else algorithm.prices
        priced = node("Add", [cost, constant("prices", prices)], "priced")
        nearest = node("ArgMin", [priced], "labels" if limits is None else "nearest", axis=1, keepdims=0)
        if limits is not None:
            kept = constant("limits", (1 + ROUNDING) * (limits + prices))
            limit = node("Gather", [kept, nearest], "limit")
            lowest = node("ReduceMin", [priced], "lowest", axes=[1], keepdims=0)
            near = node("LessOrEqual", [lowest, limit], "near")
            node("Where", [near, nearest, constant("outlier", np.array(-1))], "labels")
    node("Cast", [cost], "distances", to=TensorProto.FLOAT)
    return nodes, constants, outputs
