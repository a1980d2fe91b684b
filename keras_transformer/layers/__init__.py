"""Keras layers: masks, embeddings and positions, attention and its caches, blocks. They load Keras and NumPy alone."""
