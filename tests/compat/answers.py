"""The answers of an export, as JSON. It runs in environments without this package, of other versions.

python answers.py saved_model FOLDER SENTENCES.json
python answers.py tflite FOLDER SENTENCES.json
"""

import json
import sys
from pathlib import Path

import numpy as np


def of_saved_model(folder, sentences):
    """Of all signatures, in a session, as TensorFlow Serving runs them."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 (registers its operations, which TensorFlow Serving links)

    answers = {}
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        signatures = tf.compat.v1.saved_model.load(session, ["serve"], folder).signature_def

        def answer(name, **inputs):
            signature = signatures[name]
            outputs = {output: tensor.name for output, tensor in signature.outputs.items()}
            found = session.run(outputs, {signature.inputs[key].name: value for key, value in inputs.items()})
            answers[name] = {output: value.tolist() for output, value in found.items()}
            return found

        text = np.array(sentences, object)
        ids = answer("tokenize", text=text)["token_ids"]
        translation = answer("translate", text=text)["translation"]
        answer("translate_ids", token_ids=ids)
        answer("detokenize", token_ids=ids)
        answer("score", source=text, target=translation)
        for name in sorted(set(signatures) - {*answers, "serving_default", "__saved_model_init_op"}):
            inputs = {"source": text, "target": translation} if "source" in signatures[name].inputs else {"text": text}
            language = {"target_language": np.full(len(text), b"en", object)} if name.endswith("_to") else {}
            answer(name, **inputs, **language)
    return answers


def of_tflite(folder, sentences):
    """Of the signatures that take text and token ids, as an application runs them: see docs/deployment.md."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(Path(folder, "translator.tflite")))
    settings = json.loads(Path(folder, "translator.json").read_text(encoding="utf-8"))
    answers = {}

    def answer(name, number, **inputs):
        found = interpreter.get_signature_runner(name)(**inputs)
        answers[f"{name} {number}"] = {output: value.tolist() for output, value in found.items()}
        return found

    for number, sentence in enumerate(sentences):
        text = np.zeros((1, settings["source_bytes"]), "uint8")
        text[0, : len(sentence.encode())] = list(sentence.encode())
        answer("translate_text", number, text=text)
        answer("tokenize", number, text=text)
    return answers


def jsonable(value):
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    kind, folder, sentences = sys.argv[1:]
    of = {"saved_model": of_saved_model, "tflite": of_tflite}[kind]
    json.dump(of(folder, json.loads(Path(sentences).read_text(encoding="utf-8"))), sys.stdout, default=jsonable)
