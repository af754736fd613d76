"""Pipelines of scikit-learn with eight parameters to choose: a score by cross-validation, on data that come with it.

`svm`: scaler, principal components and a support vector machine on 600 digits, share of errors. `boosting`: gradient
boosting on the diabetes data, 1 - R². `network`: scaler and a small neural network on the wine data, log loss. Each has
numbers on linear or logarithmic scales, integers, and choices or flags. Scores are deterministic: folds and random
states are fixed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cones

__all__ = ["PIPELINES", "pipeline"]

WORST = 10.0  # log loss of a network that diverges
SCALERS = ("none", "standard", "range", "robust")


def pipeline(name: str) -> tuple[cones.Space, Callable[[dict[str, Any]], float]]:
    """Space and loss of a pipeline."""
    space, make = PIPELINES[name]
    loss = make()

    def quiet(values: dict[str, Any]) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return loss(values)

    return space, quiet


def _scaler(name: str) -> Any:
    from sklearn import preprocessing

    return {
        "none": "passthrough",
        "standard": preprocessing.StandardScaler(),
        "range": preprocessing.MinMaxScaler(),
        "robust": preprocessing.RobustScaler(),
    }[name]


SVM = cones.Space(
    scaler=cones.Choice(*SCALERS),
    components=cones.Integer(2, 60),
    whiten=cones.Flag(),
    kernel=cones.Choice("rbf", "poly", "sigmoid"),
    C=cones.Float(1e-3, 1e3, log=True),
    gamma=cones.Float(1e-5, 1e1, log=True),
    degree=cones.Integer(2, 5),
    coef0=cones.Float(-1.0, 1.0),
)


def svm() -> Callable[[dict[str, Any]], float]:
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    inputs, labels = load_digits(return_X_y=True)
    inputs, labels = inputs[:600], labels[:600]
    folds = StratifiedKFold(3, shuffle=True, random_state=0)

    def loss(v: dict[str, Any]) -> float:
        model = make_pipeline(
            _scaler(v["scaler"]),
            PCA(v["components"], whiten=v["whiten"], random_state=0),
            SVC(C=v["C"], kernel=v["kernel"], gamma=v["gamma"], degree=v["degree"], coef0=v["coef0"]),
        )
        return 1.0 - float(cross_val_score(model, inputs, labels, cv=folds).mean())

    return loss


BOOSTING = cones.Space(
    trees=cones.Integer(5, 100, log=True),
    rate=cones.Float(1e-3, 1.0, log=True),
    depth=cones.Integer(1, 8),
    subsample=cones.Float(0.2, 1.0),
    leaf=cones.Integer(1, 50),
    features=cones.Float(0.1, 1.0),
    loss=cones.Choice("squared_error", "absolute_error", "huber"),
    criterion=cones.Choice("friedman_mse", "squared_error"),
)


def boosting() -> Callable[[dict[str, Any]], float]:
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.model_selection import KFold, cross_val_score

    inputs, targets = load_diabetes(return_X_y=True)
    folds = KFold(3, shuffle=True, random_state=0)

    def loss(v: dict[str, Any]) -> float:
        model = GradientBoostingRegressor(
            n_estimators=v["trees"], learning_rate=v["rate"], max_depth=v["depth"], subsample=v["subsample"],
            min_samples_leaf=v["leaf"], max_features=v["features"], loss=v["loss"], criterion=v["criterion"],
            random_state=0,
        )  # fmt: skip
        return 1.0 - float(cross_val_score(model, inputs, targets, cv=folds).mean())

    return loss


NETWORK = cones.Space(
    scaler=cones.Choice(*SCALERS),
    width=cones.Integer(2, 64, log=True),
    layers=cones.Integer(1, 3),
    activation=cones.Choice("relu", "tanh", "logistic"),
    nesterov=cones.Flag(),
    rate=cones.Float(1e-5, 1.0, log=True),
    decay=cones.Float(1e-8, 1e1, log=True),
    momentum=cones.Float(0.0, 0.99),
)


def network() -> Callable[[dict[str, Any]], float]:
    from sklearn.datasets import load_wine
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline

    inputs, labels = load_wine(return_X_y=True)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)

    def loss(v: dict[str, Any]) -> float:
        model = make_pipeline(
            _scaler(v["scaler"]),
            MLPClassifier(
                (v["width"],) * v["layers"], activation=v["activation"], solver="sgd", alpha=v["decay"],
                learning_rate_init=v["rate"], momentum=v["momentum"], nesterovs_momentum=v["nesterov"],
                batch_size=32, max_iter=15, random_state=0,
            ),
        )  # fmt: skip
        try:
            scores = cross_val_score(model, inputs, labels, cv=folds, scoring="neg_log_loss", error_score=-WORST)
        except ValueError:  # the network diverged in all folds
            return WORST
        return min(-float(scores.mean()), WORST)

    return loss


PIPELINES: dict[str, tuple[cones.Space, Callable[[], Callable[[dict[str, Any]], float]]]] = {
    "svm": (SVM, svm),
    "boosting": (BOOSTING, boosting),
    "network": (NETWORK, network),
}
