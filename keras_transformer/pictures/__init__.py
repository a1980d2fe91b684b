"""Figures of every part of the model, from arrays or from a run."""

# What `plot` draws, and the kinds that need no trained run.
PICTURES = ("positions", "embeddings", "masks", "attention", "schedule", "curves", "beam")
PICTURES_WITHOUT_RUN = ("positions", "masks", "schedule")
