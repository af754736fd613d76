"""Trackers: log runs to TensorBoard, MLflow, Weights & Biases."""

from cones.integrations.trackers.mlflow import MLflow
from cones.integrations.trackers.tensorboard import TensorBoard
from cones.integrations.trackers.tracker import Tracker
from cones.integrations.trackers.wandb import WandB

__all__ = ["MLflow", "TensorBoard", "Tracker", "WandB"]
