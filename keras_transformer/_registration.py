"""Registers every class with Keras, as soon as Keras is imported.

Keras loads a saved model only if the classes in it are registered, which happens when their modules are imported. These
modules import Keras, and Keras imports its backend. That takes seconds, and `--help` or a serving client must not wait
for it. So they are imported only when Keras is imported anyway: now, if it already is, else after its import. Keras has
no entry point for other packages, hence the finder.
"""

import copy
import importlib
import importlib.abc
import importlib.util
import sys


def _register():
    # They import every module with a registered class.
    for module in ("models.transformer", "training.losses", "training.metrics", "training.schedules"):
        importlib.import_module(f"{__package__}.{module}")


class _RegisterAfterKeras(importlib.abc.MetaPathFinder):
    """Calls `_register` after the first import that loads Keras: that of Keras itself, or of one of our modules.

    It waits for the outermost import to end: our modules cannot import each other while one of them is half imported.
    """

    busy = False

    def find_spec(self, name, path=None, target=None):
        if self.busy or not (name == "keras" or name.startswith(f"{__package__}.")):
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        if spec is None or spec.loader is None:
            return spec
        loader, spec.loader = spec.loader, copy.copy(spec.loader)

        def exec_module(module):
            self.busy = True
            try:
                loader.exec_module(module)
            finally:
                self.busy = False
            if "keras" in sys.modules and self in sys.meta_path:
                sys.meta_path.remove(self)
                _register()

        spec.loader.exec_module = exec_module
        return spec


def begin():
    """Registers the classes now or after the import of Keras."""
    if "keras" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _RegisterAfterKeras())
