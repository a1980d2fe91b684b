"""Translation speed compared with the alternatives, with the same weights and in one run.

    python benchmarks/decode.py                                        # random weights, fixed length, equal work
    python benchmarks/decode.py --run runs/multi30k-tiny --text test.en.gz   # a trained run on real sentences

The peers take turns with the same batch, round after round, so that a slow minute of the machine affects all of them.
Each peer has its own process: in one process their thread pools would compete for the cores. Figures are medians with
minimum and maximum; the ratio is the speed relative to CTranslate2 in float32. With random weights, the end token's row
of the embedding is zero, so that every hypothesis has the full length and all peers do the same work.
"""

import argparse
import json
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from operator import eq
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
# How CTranslate2 uses the cores: all for one batch, or one for each of several batches.
MODES = {"float32": ("float32", 1), "float32, batch per core": ("float32", CORES), "int8": ("int8", 1)}
SAVED_MODELS = {"ours, SavedModel": False, "ours, SavedModel with XLA": True}
TFLITE = {"ours, TFLite": "none", "ours, TFLite int8": "int8"}
PEERS = (
    *("ours", "ours, SavedModel", *(f"CTranslate2 {mode}" for mode in MODES)),
    *("ours, SavedModel with XLA", *TFLITE, "keras-hub, XLA", "uncached loop"),
)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--presets", default="tiny,base", metavar="NAMES", help="(default: tiny,base)")
    parser.add_argument("--num-beams", default="1,4", metavar="NUMBERS", help="(default: 1,4)")
    parser.add_argument("--batch-sizes", default="1,64", metavar="NUMBERS", help="(default: 1,64)")
    parser.add_argument("--length", type=int, default=24, metavar="N", help="tokens of source and target (default: 24)")
    parser.add_argument("--vocabulary-size", type=int, default=8000, metavar="N", help="(default: 8000)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="timed rounds of all peers (default: 5)")
    parser.add_argument("--peers", default=";".join(PEERS[:5]), help=f"{';'.join(PEERS)}; or all", metavar="NAMES")
    parser.add_argument(
        "--device", choices=["cpu", "gpu"], default="cpu", help="gpu: ours on JAX, CTranslate2 on CUDA (default: cpu)"
    )
    parser.add_argument("--run", metavar="DIR", help="a trained run, for real sentences")
    parser.add_argument("--text", metavar="FILE", help="file of sentences, one per line, plain or .gz")
    help = "with --run, a call for each sentence; of ours, also the time outside of the search"
    parser.add_argument("--one-by-one", action="store_true", help=help)
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    arguments = parser.parse_args(argv)
    peers = PEERS if arguments.peers == "all" else arguments.peers.split(";")
    if unknown := sorted(set(peers) - set(PEERS)):
        parser.error(f"there is no peer {unknown[0]!r}; there are: {'; '.join(PEERS)}")
    if arguments.device == "gpu":  # The peers' processes inherit this. Peers that need TensorFlow are left out.
        os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cuda", BENCHMARK_DEVICE="cuda")
        peers = [peer for peer in peers if peer == "ours" or peer.startswith("CTranslate2")]
    workers = {peer: Worker(peer) for peer in peers}
    rows = []
    for num_beams in map(int, arguments.num_beams.split(",")):
        if arguments.run:
            title = f"{arguments.run}, {Path(arguments.text).name}, beams {num_beams}"
            settings = arguments.run, arguments.text, num_beams, arguments.one_by_one
            rows += measure(title, workers, arguments.rounds, real, *settings)
            continue
        for preset in arguments.presets.split(","):
            for batch_size in map(int, arguments.batch_sizes.split(",")):
                sizes = (batch_size, arguments.length, arguments.vocabulary_size)
                title = f"{preset}, beams {num_beams}, batch {batch_size}, {arguments.length} tokens"
                rows += measure(title, workers, arguments.rounds, fixed, preset, num_beams, *sizes)
    for worker in workers.values():
        worker.process.terminate()
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


def measure(title, workers, rounds, prepare, *arguments):
    """Times all peers in turn; prints the table and returns its rows."""
    ready = {peer: worker.ask("prepare", prepare, *arguments) for peer, worker in workers.items()}
    ready = {peer: counts for peer, counts in ready.items() if counts}
    first = next(iter(ready))
    times, peaks = {peer: [] for peer in ready}, {}
    for _ in range(rounds):
        for peer in ready:
            seconds, peaks[peer], _ = workers[peer].ask("time")
            times[peer].append(seconds)
    reference = statistics.median(times.get("CTranslate2 float32", [float("nan")]))
    print(
        f"\n{title}\n{'':37}{'ms':>10}{'min':>9}{'max':>9}{'sent/s':>9}{'tok/s':>9}{'ms/sent':>9}{'MiB':>7}{'ratio':>7}"
    )
    rows = []
    for peer, values in times.items():
        median, (sentences, tokens, _) = statistics.median(values), ready[peer]
        row = {
            "cell": title,
            "peer": peer,
            "ms": [1e3 * x for x in (median, min(values), max(values))],
            "sentences_per_second": sentences / median,
            "tokens_per_second": tokens / median,
            "ms_per_sentence": 1e3 * median / sentences,
            "peak_memory_mib": peaks[peer],
            "ratio": reference / median,
            "same_as_first": sum(map(eq, ready[peer][2], ready[first][2])) / sentences,
        }
        rows.append(row)
        ms = "".join(f"{x:{width}.1f}" for x, width in zip(row["ms"], (10, 9, 9), strict=True))
        print(
            f"  {peer:35}{ms}{row['sentences_per_second']:9.1f}{row['tokens_per_second']:9.0f}"
            f"{row['ms_per_sentence']:9.2f}{row['peak_memory_mib']:7.0f}{row['ratio']:7.2f}"
            f"   {row['same_as_first']:.1%} as {first}",
            flush=True,
        )
    return rows


class Worker:
    """A process that prepares and times one peer."""

    def __init__(self, peer):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, peer), daemon=True)
        self.process.start()

    def ask(self, *message):
        self.connection.send(message)
        return self.connection.recv()


def work(connection, peer):
    call = None
    while True:
        kind, *arguments = connection.recv()
        if kind == "prepare":
            prepare, *arguments = arguments
            call, sentences, count_tokens = prepare(peer, *arguments)
            found = call() if call else []  # Compiles, or fills caches.
            connection.send((sentences, count_tokens(found), found) if call else None)
        else:
            call()  # Not timed: meanwhile other peers have used caches and memory.
            Path("/proc/self/clear_refs").write_text("5")  # Resets the peak of memory.
            before, began, repeats = os.times(), time.perf_counter(), 0
            while repeats == 0 or time.perf_counter() - began < 0.3:
                call()
                repeats += 1
            seconds, after = (time.perf_counter() - began) / repeats, os.times()
            user, kernel = after.user - before.user, after.system - before.system
            connection.send((seconds, peak_memory(Path("/proc/self")), kernel / max(user + kernel, 0.01)))
            time.sleep(0.3)  # OpenMP threads spin for 200 ms after a call, while the next peer begins.


def peak_memory(process):
    """The peak memory of a process, in MiB, from its folder in /proc."""
    return int((process / "status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def fixed(peer, preset, num_beams, batch_size, length, vocabulary_size):
    """Prepares the translation of random ids of fixed length with random weights."""
    import numpy as np

    from keras_transformer.training.presets import PRESETS

    serve_as_deployed(peer, PRESETS[preset]["hidden_dim"])
    ids = np.random.default_rng(0).integers(4, vocabulary_size, (batch_size, length - 1))
    texts = [" ".join(map(str, row)) for row in ids]
    makers = {"keras-hub, XLA": keras_hub, "uncached loop": uncached}
    translator = random_translator(preset, vocabulary_size, num_beams, length)
    if peer in makers:
        decode = makers[peer](translator, np.pad(ids, [[0, 0], [0, 1]], constant_values=3).astype("int32"), length)
        call = decode and (lambda: translator.target_tokenizer.detokenize(decode()))
    else:
        call = ours_or_ctranslate2(peer, translator, texts, max(1, batch_size // parallel_batches(peer)))
    return call, batch_size, lambda found: batch_size * length


def serve_as_deployed(peer, hidden_dim):
    """Gives the process of a SavedModel the environment of a server, before TensorFlow is loaded."""
    from keras_transformer.export.serving import server_environment

    if peer in SAVED_MODELS:
        os.environ.update(server_environment(hidden_dim))


def real(peer, run, text, num_beams, one_by_one):
    """Prepares the translation of real sentences with a trained run, tokenization included."""
    from keras_transformer.training.run import Run

    serve_as_deployed(peer, Run(run).config().model.hidden_dim)
    from keras_transformer.text.lines import read_lines
    from keras_transformer.translation.translator import Translator

    lines = read_lines(text)
    translator = Translator.load(run, num_beams=num_beams, length_penalty=0.0, jit_compile=True)
    target = translator.target_tokenizer

    def tokens(found):
        return sum(len(ids) + 1 for ids in target.tokenize(found))

    if not one_by_one:
        return ours_or_ctranslate2(peer, translator, lines, 64 // parallel_batches(peer)), len(lines), tokens
    texts = [""]  # The functions of peers translate what is in this list.
    call = ours_or_ctranslate2(peer, translator, texts, 1)
    searched = time_of_searches() if peer == "ours" else None

    def each():
        found, began = [], time.perf_counter()
        for texts[0] in lines:
            found += call()
        if searched:
            seconds = time.perf_counter() - began
            outside = (seconds - sum(searched)) / len(lines)
            print(f"outside of the search: {1e3 * outside:.2f} ms of {1e3 * seconds / len(lines):.2f}", file=sys.stderr)
            searched.clear()
        return found

    return each, len(lines), tokens


def time_of_searches():
    """A list to which each search of this process adds its seconds."""
    from keras import ops

    from keras_transformer.translation import compiled

    seconds, compile_function = [], compiled.compile_function

    def compile_and_time(*arguments, **settings):
        call = compile_function(*arguments, **settings)

        def timed(*inputs):
            began = time.perf_counter()
            found = tuple(map(ops.convert_to_numpy, call(*inputs)))
            seconds.append(time.perf_counter() - began)
            return found

        return timed

    compiled.compile_function = compile_and_time
    return seconds


def ours_or_ctranslate2(peer, translator, texts, batch_size):
    """A function that translates the texts; None for other peers."""
    if peer == "ours":
        return lambda: translator.translate(texts)
    if peer in SAVED_MODELS:
        return saved_model(translator, texts, batch_size, SAVED_MODELS[peer])
    if peer in TFLITE:
        return tflite(translator, texts, TFLITE[peer])
    if peer.startswith("CTranslate2"):
        return ctranslate2(translator, texts, peer.removeprefix("CTranslate2 "), batch_size)
    return None


def parallel_batches(peer):
    """The number of batches that a peer translates at the same time."""
    return MODES[peer.removeprefix("CTranslate2 ")][1] if peer.startswith("CTranslate2") else CORES


def random_translator(preset, vocabulary_size, num_beams, length):
    """A translator whose tokenizer reads and writes numbers, and whose model never chooses the end token."""
    import keras
    import tensorflow as tf

    from keras_transformer.models.transformer import Transformer
    from keras_transformer.text.special_ids import without_special
    from keras_transformer.text.tokenizer import Tokenizer
    from keras_transformer.training.presets import PRESETS
    from keras_transformer.translation.translator import Translator

    class Ids(Tokenizer):
        kind = suffix = ""

        def __init__(self):
            self.vocabulary_size = vocabulary_size

        def tokenize(self, texts):
            rows = [[word for word in text.split() if re.fullmatch("[0-9]{1,6}", word)] for text in texts]
            return [[min(int(word), vocabulary_size - 1) for word in row] for row in rows]

        def detokenize(self, rows):
            return [" ".join(str(i) for i in ids if i > 3) for ids in rows]

        def pieces(self, ids):
            return [f"t{i}" for i in ids]

        def graph_tokenize(self, texts):
            words = tf.strings.split(texts)
            words = tf.ragged.boolean_mask(
                words, words.with_values(tf.strings.regex_full_match(words.values, "[0-9]{1,6}"))
            )
            return tf.minimum(tf.strings.to_number(words, tf.int32), vocabulary_size - 1)

        def graph_detokenize(self, token_ids):
            words = tf.ragged.map_flat_values(tf.strings.as_string, without_special(token_ids))
            return tf.strings.reduce_join(words, axis=-1, separator=" ")

        def graph_resources(self):
            return []

        def save(self, path):
            path.touch()
            return path

    keras.utils.set_random_seed(0)
    model = Transformer(vocabulary_size, **{**PRESETS[preset], "dropout": 0.0})
    embeddings = model.decoder_embedding.token_embedding.embeddings
    array = keras.ops.convert_to_numpy(embeddings).copy()
    array[3] = 0.0
    embeddings.assign(array)
    settings = {"num_beams": num_beams, "length_penalty": 0.0, "max_target_length": length}
    return Translator(model, Ids(), jit_compile=True, **settings)


def saved_model(translator, texts, batch_size, xla):
    """The exported SavedModel as TensorFlow Serving runs it: in a session, one batch per thread."""
    import numpy as np

    from keras_transformer.export.saved_model import export_saved_model
    from keras_transformer.export.verify import ServedModel, disable_xla

    if not xla:
        disable_xla()
        translator.search.jit_compile = (
            False  # For the export's verification: XLA is now disabled in the whole process.
        )
    with tempfile.TemporaryDirectory() as folder:
        served = ServedModel(
            export_saved_model(translator, Path(folder) / "servable", num_hypotheses=1, jit_compile=xla)
        )
    pool = ThreadPoolExecutor(min(CORES, -(-len(texts) // batch_size)))

    def call():
        batches = [np.array(texts[i : i + batch_size], object) for i in range(0, len(texts), batch_size)]
        found = pool.map(lambda batch: served("translate", text=batch)["translation"], batches)
        return [line.decode() for lines in found for line in lines]

    return call


def tflite(translator, texts, quantize):
    """The exported TFLite file, sentence by sentence in one thread, as on a device."""
    from keras_transformer.export.run_tflite import TFLiteTranslator
    from keras_transformer.export.tflite import export_tflite

    length = translator.settings.max_target_length or 64
    with tempfile.TemporaryDirectory() as folder:
        lengths = {"source_length": length, "target_length": length}
        exported, _ = export_tflite(translator, Path(folder) / "tflite", quantize, **lengths)
        device = TFLiteTranslator(exported / "translator.tflite")
        print(f"{quantize}: {(exported / 'translator.tflite').stat().st_size / 1e6:.1f} MB", file=sys.stderr)
    source, target = translator.source_tokenizer, translator.target_tokenizer
    beam, tag = translator.settings.num_beams > 1, source.tag(translator.codec.target_language)

    def call():
        found = [device.translate_ids(tag + ids, beam)[0][0] for ids in source.tokenize(texts)]
        return target.detokenize([[i for i in ids if i != 3] for ids in found])

    return call


def ctranslate2(translator, texts, mode, batch_size):
    import ctranslate2 as peer

    from keras_transformer.export.ctranslate2 import export_ctranslate2

    compute_type, batches = MODES[mode]
    with tempfile.TemporaryDirectory() as folder:
        theirs = peer.Translator(
            str(export_ctranslate2(translator, Path(folder) / "model")),
            device=os.environ.get("BENCHMARK_DEVICE", "cpu"),
            compute_type=compute_type,
            inter_threads=batches,
            intra_threads=max(1, CORES // batches),
        )
    source, target, settings = translator.source_tokenizer, translator.target_tokenizer, translator.settings
    limits = {"max_decoding_length": settings.max_target_length} if settings.max_target_length else {}
    ids_of = {piece: i for i, piece in enumerate(target.pieces(range(target.vocabulary_size)))}
    tag = source.tag(translator.codec.target_language)

    def call():
        pieces = [source.pieces(tag + ids) for ids in source.tokenize(texts)]
        found = theirs.translate_batch(
            pieces, beam_size=settings.num_beams, length_penalty=0, max_batch_size=batch_size, **limits
        )
        return target.detokenize([[ids_of[piece] for piece in x.hypotheses[0]] for x in found])

    return call


def keras_hub(translator, ids, length):
    """keras-hub's own layers of the same sizes, with its cache and its samplers, in one function compiled by XLA.

    Its weights are random ones of its own, so its translations are others.
    """
    import keras
    import keras_nlp
    import numpy as np
    import tensorflow as tf

    config = translator.model.get_config()
    sizes = {"intermediate_dim": config["intermediate_dim"], "num_heads": config["num_heads"]}
    hidden_dim, vocabulary_size = config["hidden_dim"], config["vocabulary_size"]
    embedding = keras_nlp.layers.TokenAndPositionEmbedding(vocabulary_size, length + 1, hidden_dim)
    encoders = [keras_nlp.layers.TransformerEncoder(**sizes) for _ in range(config["num_layers"])]
    decoders = [keras_nlp.layers.TransformerDecoder(**sizes) for _ in range(config["num_layers"])]
    heads, key_dim = config["num_heads"], hidden_dim // config["num_heads"]
    num_beams = translator.settings.num_beams
    sampler = keras_nlp.samplers.GreedySampler() if num_beams == 1 else keras_nlp.samplers.BeamSampler(num_beams)

    def encode(token_ids):
        x = embedding(token_ids)
        for layer in encoders:
            x = layer(x)
        return x

    def generate(token_ids):
        encoded = encode(token_ids)
        rows = len(ids)
        cache = tf.zeros((rows, len(decoders), 2, length + 1, heads, key_dim))
        cross = []
        for layer in decoders:  # Computed once: the cache of the keys and values of the source.
            _, _, one = layer(
                tf.zeros((rows, 1, hidden_dim)), encoded, self_attention_cache=cache[:, 0],
                self_attention_cache_update_index=0,
                cross_attention_cache=tf.zeros((rows, 2, token_ids.shape[1], heads, key_dim)),
                cross_attention_cache_update_index=0,
            )  # fmt: skip
            cross.append(one)
        cross = tf.stack(cross, axis=1)

        def next(prompt, state, index):
            cache, cross, encoded = state
            x = embedding(prompt[:, index - 1][:, None], start_index=index - 1)
            new = []
            for i, layer in enumerate(decoders):
                x, one, _ = layer(
                    x, encoded, self_attention_cache=cache[:, i], self_attention_cache_update_index=index - 1,
                    cross_attention_cache=cross[:, i], cross_attention_cache_update_index=None,
                )  # fmt: skip
                new.append(one)
            logits = embedding.token_embedding(x, reverse=True)
            return logits[:, 0], x[:, 0], (tf.stack(new, axis=1), cross, encoded)

        prompt = tf.concat([tf.fill((rows, 1), 2), tf.zeros((rows, length), tf.int32)], axis=1)
        return sampler(next=next, prompt=prompt, cache=(cache, cross, encoded), index=1)

    call = tf.function(generate, jit_compile=True, autograph=False)
    inputs = tf.constant(ids)
    np.asarray(encode(inputs))  # Builds the layers.
    keras.tree.map_structure(np.asarray, call(inputs))
    return lambda: call(inputs).numpy().tolist()


def uncached(translator, ids, length):
    """The loop of many tutorials: for every token, a full forward pass over all tokens decoded so far."""
    import tensorflow as tf

    if translator.settings.num_beams > 1:
        return None
    model = translator.model

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)] * 2, autograph=False)
    def forward(encoder_token_ids, decoder_token_ids):
        logits = model({"encoder_token_ids": encoder_token_ids, "decoder_token_ids": decoder_token_ids})
        return tf.argmax(logits[:, -1], axis=-1, output_type=tf.int32)

    def call():
        source, target = tf.constant(ids), tf.fill((len(ids), 1), 2)
        for _ in range(length):
            target = tf.concat([target, forward(source, target)[:, None]], axis=1)
        return target[:, 1:].numpy().tolist()

    return call


if __name__ == "__main__":
    sys.exit(main())
