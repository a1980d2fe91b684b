from setuptools import setup

# Beside `keras_transformer/`: the training script, installed as it is, and `export/`, which becomes a subpackage, so
# that nothing called "export" lands in site-packages. Everything else is in pyproject.toml.
setup(
    packages=["keras_transformer", "keras_transformer.export", "keras_transformer.export.serving"],
    package_dir={"keras_transformer": "keras_transformer", "keras_transformer.export": "export"},
    package_data={
        "keras_transformer": ["explorer.html"],
        "keras_transformer.export": ["site/*", "site/litert/*"],
        "keras_transformer.export.serving": ["*.yaml", "config/*"],
    },
    py_modules=["train_keras"],
)
