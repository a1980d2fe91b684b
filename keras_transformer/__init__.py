"""A Transformer for translation, built on Keras."""
