from setuptools import find_packages, setup

# Beside `keras_transformer/`: the training script, installed as it is; and `export/`, which becomes a subpackage, so
# that nothing called "export" lands in site-packages. Everything else is in pyproject.toml.
setup(
    packages=[
        *find_packages(include=["keras_transformer*"]),
        "keras_transformer.export",
        "keras_transformer.export.serving",
        "keras_transformer.export.web",
    ],
    package_dir={"keras_transformer": "keras_transformer", "keras_transformer.export": "export"},
    package_data={
        "keras_transformer": ["py.typed"],
        "keras_transformer.pictures": ["explorer.html"],
        "keras_transformer.export.serving": ["*.yaml", "config/*"],
        "keras_transformer.export.web": ["LICENSE.litert", "README.md", "*.js", "*.json", "page/*", "src/*"],
    },
    py_modules=["train_keras"],
)
