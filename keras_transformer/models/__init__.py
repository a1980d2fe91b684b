"""Models made of the layers: `Transformer`, an ensemble of several, and `model.fit` on several devices.

They load Keras and NumPy alone; TensorFlow only where several devices train together.
"""
