"""Deployment targets of a trained run, each verified against the Python translator."""
