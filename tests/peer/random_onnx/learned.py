# SPDX-License-Identifier: Apache-2.0
"""Nodes of ai.onnx.ml: features, labels, linear models, support vectors, trees."""
import numpy as np

ML = "ai.onnx.ml"
TRANSFORMS = ["NONE", "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


def floats(m, count, scale=1.0):
    return [float(x) for x in np.round(m.rng.normal(0, scale, count), 2).astype(np.float32)]


def offsets(m, count):
    """Of scores: those of features with few digits are not exactly 0, where rounding would choose a class."""
    return [float(np.float32(x + 0.0037)) for x in floats(m, count)]


def uneven(m, count):
    """Votes: no sums of them are equal but for rounding, which would choose a class."""
    return [float(x) for x in m.rng.normal(0, 1, count).astype(np.float32)]


def table(m, types, width=None):
    """Rows of features, a few of them, whose number the file says."""
    def fits(v):
        return m.is_lit(v.dims[-1]) and 0 < v.dims[-1][0] <= 8 and v.mag < 100 and not v.wild and (width is None or v.dims[-1][0] == width)

    found = [v for v in m.pool() if v.dtype in types and v.rank == 2 and fits(v)]
    if found and m.chance(0.7):
        return m.one(found)
    made = m.input(m.one(sorted(types)), [m.any_dim(), m.lit(width or m.int(1, 5))])
    m.need(not made.wild)
    return made


def scaler(m):
    x = table(m, {"f32", "i64", "f64", "i32"})
    width = x.dims[-1][0]
    count = m.one([1, width])
    m.node("Scaler", [x], [("f32", x.dims)], ML, offset=floats(m, count), scale=floats(m, count))


def normalizer(m):
    x = table(m, {"f32", "i64", "f64", "i32"})
    m.node("Normalizer", [x], [("f32", x.dims, {"mag": 2.0})], ML, norm=m.one(["MAX", "L1", "L2"]))


def binarizer(m):
    x = m.pick({"f32"}, rank=(1, 3))
    m.node("Binarizer", [x], [("f32", x.dims, {"mag": 1.0})], ML, threshold=m.one([None, 0.0, 0.5, -1.0]))


def imputer(m):
    x = table(m, {"f32", "i64"})
    count = m.one([1, x.dims[-1][0]])
    if x.dtype == "f32":
        m.node("Imputer", [x], [("f32", x.dims)], ML, imputed_value_floats=floats(m, count), replaced_value_float=m.one([0.0, 1.0, float("nan")]))
    else:
        m.node("Imputer", [x], [("i64", x.dims)], ML, imputed_value_int64s=[m.int(-9, 9) for _ in range(count)], replaced_value_int64=m.int(-2, 2))


def extractor(m):
    x = m.pick({"f32", "f64", "i32", "i64"}, rank=(1, 3), where=lambda v: m.is_lit(v.dims[-1]) and v.dims[-1][0] > 0)
    count = m.int(1, 4)
    index = m.const(m.rng.integers(0, x.dims[-1][0], count))
    dims = [m.lit(1)] * (x.rank == 1) + x.dims[:-1] + [m.lit(count)]
    m.node("ArrayFeatureExtractor", [x, index], [(x.dtype, dims)], ML)


def vectorizer(m):
    parts = [table(m, {"f32"})]
    parts += [m.input("f32", [parts[0].dims[0], m.lit(m.int(1, 3))]) for _ in range(m.int(0, 2))]
    m.need(len({part.dims[0] for part in parts}) == 1)
    m.avoid("crash", parts[0].dims[0])
    widths = [part.dims[1][0] for part in parts]
    m.node("FeatureVectorizer", parts, [("f32", [parts[0].dims[0], m.lit(sum(widths))])], ML, inputdimensions=widths)


def label_encoder(m):
    old = m.graph.learned_opset() < 4
    kinds = [("f32", "i64"), ("i64", "f32"), ("i64", "i64"), ("f32", "f32")] + ([] if old else [("f64", "i64"), ("i64", "f64"), ("f64", "f64")])
    key, value = m.one(kinds)
    count = m.int(1, 6)
    x = m.pick({key}, rank=(0, 3), where=lambda v: v.exact and not v.wild)
    keys = m.rng.permutation(np.arange(-8, 9))[:count]  # an encoder with a key twice: which of them counts is open
    values = m.rng.integers(-9, 10, count)
    attrs = {}
    for side, dtype, numbers in (("keys", key, keys), ("values", value, values)):
        if dtype == "f64" or (not old and m.chance(0.3)):
            attrs[side + "_tensor"] = np.array(numbers, {"f32": np.float32, "f64": np.float64, "i64": np.int64}[dtype])
        else:
            attrs[f"{side}_{'floats' if dtype == 'f32' else 'int64s'}"] = [float(n) if dtype == "f32" else int(n) for n in numbers]
    if value == "f64" or "values_tensor" in attrs:
        attrs["default_tensor"] = np.array([7], attrs["values_tensor"].dtype)
    elif m.chance(0.6):
        attrs["default_float" if value == "f32" else "default_int64"] = 5.0 if value == "f32" else 5
    m.node("LabelEncoder", [x], [(value, x.dims)], ML, **attrs)


def one_hot_encoder(m):
    x = m.pick({"i64", "f32", "f64"}, rank=(1, 3), where=lambda v: v.exact and not v.wild and v.mag < 1e6)
    count = m.int(1, 6)
    m.node("OneHotEncoder", [x], [("f32", m.small(x.dims + [m.lit(count)]), {"mag": 1.0})], ML, zeros=1,
           cats_int64s=[int(n) for n in m.rng.permutation(np.arange(-6, 7))[:count]])


def linear_regressor(m):
    x = table(m, {"f32"})
    width, targets = x.dims[1][0], m.int(1, 3)
    m.node("LinearRegressor", [x], [("f32", [x.dims[0], m.lit(targets)])], ML, coefficients=floats(m, targets * width), targets=targets,
           intercepts=offsets(m, targets) if m.chance(0.7) else None, post_transform=m.one(TRANSFORMS))


def labels(m, count):
    return [int(n) for n in m.rng.permutation(np.arange(-20, 20))[:count]]


def classified(m, op, x, classes, **attrs):
    m.node(op, [x], [("i64", [x.dims[0]]), ("f32", [x.dims[0], m.lit(classes)])], ML, **attrs)


def linear_classifier(m):
    x = table(m, {"f32", "f64", "i32", "i64"})
    width, classes = x.dims[1][0], m.int(2, 4)
    rows = 1 if classes == 2 and m.chance(0.5) else classes
    classified(m, "LinearClassifier", x, classes, coefficients=floats(m, rows * width), intercepts=offsets(m, rows), classlabels_ints=labels(m, classes),
               post_transform=m.one(TRANSFORMS), multi_class=m.one([None, 0, 1]))


def kernel(m, kinds=("LINEAR", "POLY", "RBF", "SIGMOID")):
    kind = m.one(kinds)
    return {"kernel_type": kind, "kernel_params": [m.one([0.1, 0.5]), m.one([0.0, 1.0]), float(m.int(1, 3))]}


def svm_regressor(m):
    x = table(m, {"f32"})
    width, count = x.dims[1][0], m.int(1, 4)
    attrs = {"support_vectors": floats(m, count * width), "coefficients": floats(m, count), "n_supports": count}
    if m.chance(0.3):
        attrs = {"coefficients": floats(m, width), "n_supports": 0}
    m.node("SVMRegressor", [x], [("f32", [x.dims[0], m.lit(1)])], ML, rho=offsets(m, 1), one_class=m.one([None, 0, 1]),
           **attrs, **(kernel(m) if attrs["n_supports"] else kernel(m, ["LINEAR"])))


def svm_classifier(m):
    x = table(m, {"f32", "f64", "i64", "i32"})
    width, classes = x.dims[1][0], m.int(2, 4)
    if m.chance(0.2):
        classified(m, "SVMClassifier", x, classes, **kernel(m, ["LINEAR"]), coefficients=floats(m, classes * width), rho=offsets(m, 1),
                   classlabels_ints=labels(m, classes), post_transform=m.one(TRANSFORMS))
        return
    each = [m.int(1, 3) for _ in range(classes)]
    pairs = classes * (classes - 1) // 2
    odds = {"prob_a": floats(m, pairs), "prob_b": floats(m, pairs)} if m.chance(0.5) else {}
    scores = classes if odds or classes == 2 else pairs
    classified(m, "SVMClassifier", x, scores, support_vectors=floats(m, sum(each) * width), coefficients=floats(m, (classes - 1) * sum(each)),
               vectors_per_class=each, rho=offsets(m, pairs), classlabels_ints=labels(m, classes), post_transform=m.one(TRANSFORMS), **odds,
               **kernel(m))


def grown(m, width, trees, modes):
    """The nodes of some trees, as lists; and the leaves of each, (tree, node)."""
    rows = {name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = []
    for tree in range(trees):
        size, open_ = 1, [(0, 0)]
        while open_:
            node, depth = open_.pop(0)
            is_leaf = depth == 3 or (depth and m.chance(0.4))
            rows["treeids"].append(tree)
            rows["nodeids"].append(node)
            rows["featureids"].append(0 if is_leaf else m.int(0, width - 1))
            rows["values"].append(0.0 if is_leaf else float(m.one([m.int(-3, 3), *floats(m, 1)])))
            rows["modes"].append("LEAF" if is_leaf else m.one(modes))
            rows["truenodeids"].append(0 if is_leaf else size)
            rows["falsenodeids"].append(0 if is_leaf else size + 1)
            rows["missing_value_tracks_true"].append(0 if is_leaf else m.int(0, 1))
            if is_leaf:
                leaves.append((tree, node))
            else:
                open_ += [(size, depth + 1), (size + 1, depth + 1)]
                size += 2
    return {"nodes_" + name: row for name, row in rows.items()}, leaves


def branches(m):
    every = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    return [m.one(every)] if m.chance(0.7) else every


def votes(m, prefix, leaves, targets, positive=False, every=False):
    """every: a leaf votes for all targets."""
    given = [(leaf, target) for leaf in leaves for target in m.rng.permutation(targets)[:targets if every else m.int(1, targets)]]
    weights = uneven(m, len(given))
    return {prefix + "_treeids": [tree for (tree, _), _ in given], prefix + "_nodeids": [node for (_, node), _ in given],
            prefix + "_ids": [int(target) for _, target in given], prefix + "_weights": [abs(w) for w in weights] if positive else weights}


def tree_regressor(m):
    """Without votes for a target, ONNX Runtime forgets its base value."""
    m.need(m.graph.learned_opset() < 5)
    x = table(m, {"f32", "f64"})
    targets = m.int(1, 3)
    nodes, leaves = grown(m, x.dims[1][0], m.int(1, 3), branches(m))
    base = uneven(m, targets) if m.chance(0.3) else None
    m.node("TreeEnsembleRegressor", [x], [("f32", [x.dims[0], m.lit(targets)])], ML, n_targets=targets, **nodes,
           **votes(m, "target", leaves, targets, every=base is not None), aggregate_function=m.one([None, "SUM", "AVERAGE", "MIN", "MAX"]),
           base_values=base, post_transform=m.one(TRANSFORMS))


def tree_classifier(m):
    """For two labels ONNX Runtime is right only where all votes are for one of them, and there is no base value but a single one."""
    m.need(m.graph.learned_opset() < 5)
    x = table(m, {"f32", "f64", "i32", "i64"})
    classes = m.int(2, 4)
    nodes, leaves = grown(m, x.dims[1][0], m.int(1, 3), branches(m))
    base = uneven(m, 1 if classes == 2 else classes) if m.chance(0.3) else None
    if classes == 2:
        given = votes(m, "class", leaves, 1, m.chance(0.5))
        given["class_ids"] = [0 if base else m.int(0, 1)] * len(given["class_ids"])
    else:
        given = votes(m, "class", leaves, classes, m.chance(0.5), every=True)
    classified(m, "TreeEnsembleClassifier", x, classes, **nodes, **given, classlabels_int64s=labels(m, classes), base_values=base,
               post_transform=m.one(TRANSFORMS))


def tree_ensemble(m):
    """ONNX Runtime takes transform 1 for 2, and 2 for 1, and transforms doubles as floats."""
    m.need(m.graph.learned_opset() >= 5)
    x = table(m, {"f32", "f64"})
    kind = {"f32": np.float32, "f64": np.float64}[x.dtype]
    targets, roots, weights = m.int(1, 3), [], []
    rows = {name: [] for name in ("splits", "modes", "featureids", "tracks", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")}

    def grow(depth):
        at = len(rows["splits"])
        for name, number in (("splits", floats(m, 1)[0]), ("modes", m.int(0, 5)), ("featureids", m.int(0, x.dims[1][0] - 1)),
                             ("tracks", m.int(0, 1)), ("truenodeids", 0), ("falsenodeids", 0), ("trueleafs", 0), ("falseleafs", 0)):
            rows[name].append(number)
        for side in ("true", "false"):
            is_leaf = depth == 2 or m.chance(0.4)
            rows[side + "leafs"][at] = int(is_leaf)
            rows[side + "nodeids"][at] = len(weights) if is_leaf else grow(depth + 1)
            if is_leaf:
                weights.append(uneven(m, 1)[0])
        return at

    for _ in range(m.int(1, 3)):
        roots.append(grow(0))
    m.node("TreeEnsemble", [x], [(x.dtype, [x.dims[0], m.lit(targets)])], ML, n_targets=targets, tree_roots=roots,
           nodes_splits=np.array(rows["splits"], kind), nodes_modes=np.array(rows["modes"], np.uint8), nodes_featureids=rows["featureids"],
           nodes_missing_value_tracks_true=rows["tracks"] if m.chance(0.7) else None, nodes_truenodeids=rows["truenodeids"],
           nodes_falsenodeids=rows["falsenodeids"], nodes_trueleafs=rows["trueleafs"], nodes_falseleafs=rows["falseleafs"],
           leaf_targetids=[m.int(0, targets - 1) for _ in weights], leaf_weights=np.array(weights, kind),
           aggregate_function=m.one([None, 0, 1, 2, 3]), post_transform=m.one([None, 0, 3 if x.dtype == "f32" else 0]))


FAMILY = [(1, scaler), (1, normalizer), (1, binarizer), (1, imputer), (1, extractor), (1, vectorizer), (2, label_encoder), (1, one_hot_encoder),
          (1, linear_regressor), (2, linear_classifier), (1, svm_regressor), (2, svm_classifier), (2, tree_regressor), (3, tree_classifier),
          (2, tree_ensemble)]
