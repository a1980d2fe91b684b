from setuptools import setup

# Beside `keras_transformer/`: the training script, installed as it is; `export/`, which becomes a subpackage, so that
# nothing called "export" lands in site-packages; and `web/`, the sources of the page that `export web` builds, which
# become a folder of the package. Everything else is in pyproject.toml.
setup(
    packages=[
        "keras_transformer",
        "keras_transformer.export",
        "keras_transformer.export.serving",
        "keras_transformer.importing",
        "keras_transformer.web",
    ],
    package_dir={
        "keras_transformer": "keras_transformer",
        "keras_transformer.export": "export",
        "keras_transformer.web": "web",
    },
    package_data={
        "keras_transformer": ["explorer.html"],
        "keras_transformer.export.serving": ["*.yaml", "config/*"],
        "keras_transformer.web": ["LICENSE.litert", "*.js", "*.json", "page/*", "src/*"],
    },
    py_modules=["train_keras"],
)
