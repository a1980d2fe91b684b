"""Runs a SavedModel as a stock TensorFlow Serving does: in a session, with XLA disabled, with none of this package.

    python serve_without_python.py MODEL_DIR SENTENCES.json      prints {"translation": [...], "score": [...]}

Disabling XLA is global to a process, hence this is a script of its own.
"""

import ctypes
import json
import os
import sys
import sysconfig

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizers' ops, which TensorFlow Serving links)

library = os.path.join(sysconfig.get_paths()["purelib"], "tensorflow", "libtensorflow_cc.so.2")
# tensorflow::DisableXlaCompilation(), which TensorFlow Serving's main.cc calls unless told otherwise.
ctypes.CDLL(library)["_ZN10tensorflow21DisableXlaCompilationEv"]()

model_dir = sys.argv[1]
with open(sys.argv[2], encoding="utf-8") as file:
    sentences = json.load(file)
with tf.compat.v1.Session(graph=tf.Graph()) as session:
    graph = tf.compat.v1.saved_model.loader.load(session, ["serve"], model_dir)
    signature = graph.signature_def["serving_default"]
    outputs = {name: tensor.name for name, tensor in signature.outputs.items()}
    found = session.run(outputs, {signature.inputs["text"].name: np.array(sentences, object)})
    operations = {node.op for node in graph.graph_def.node}
    operations |= {node.op for function in graph.graph_def.library.function for node in function.node_def}

assert not any(name.startswith("keras_transformer") or name == "keras_transformer" for name in sys.modules)
json.dump(
    {
        "translation": [text.decode("utf-8") for text in found["translation"]],
        "score": found["score"].tolist(),
        "operations": sorted(operations),
    },
    sys.stdout,
)
