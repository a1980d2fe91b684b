"""Figures of every part of the model, from arrays or from a run."""
