"""A translator in TensorFlow Serving: clients, and beside them the files to deploy it with."""
