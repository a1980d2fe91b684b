"""A translator in TensorFlow Serving: clients, and files for its deployment in the same folder."""
