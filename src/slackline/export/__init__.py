"""Trained policies for other runtimes: an ONNX model or a C header."""

from slackline.export.export import KINDS, export

__all__ = ["KINDS", "export"]
