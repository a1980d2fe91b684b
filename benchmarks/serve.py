"""A served translator under load: latency and throughput for several numbers of clients, with and without batching.

    python benchmarks/serve.py RUN --text test.en                        # our SavedModel and CTranslate2, in turn
    python benchmarks/serve.py RUN --text test.en --batching 1024,1000,2 1024,5000,4     # compare parameters
    python benchmarks/serve.py --url http://127.0.0.1:8501 --model translator --text test.en    # a server that runs

Without --url, a server in Python stands in for TensorFlow Serving: it speaks its REST API, runs the SavedModel in a
session, and joins requests to batches by its rules. The same server runs CTranslate2, with a worker for each core.
Each client sends sentence after sentence over one connection. Server and clients share the cores.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import queue
import random
import statistics
import sys
import tempfile
import threading
import time
import urllib.parse
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
CORES = len(os.sched_getaffinity(0))
ENGINES = ("SavedModel", "CTranslate2", "CTranslate2 int8")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flag = parser.add_argument
    flag("run", nargs="?", help="folder of a trained run")
    flag("--text", required=True, metavar="FILE", help="sentences, one per line")
    flag("--url", help="measure this server instead; it must have the signature `translate`")
    flag("--model", default="translator", help="its model (default: translator)")
    flag("--engines", default=",".join(ENGINES), metavar="NAMES", help="(default: %(default)s)")
    help = "max_batch_size,batch_timeout_micros,num_batch_threads of each configuration (default: %(default)s)"
    flag("--batching", nargs="*", default=["1024,1000,2"], metavar="A,B,C", help=help)
    flag("--clients", default="1,4,16,64", metavar="NUMBERS", help="(default: %(default)s)")
    flag("--seconds", type=float, default=10, metavar="X", help="of each measurement (default: %(default)s)")
    flag("--num-beams", type=int, default=1, metavar="N", help="(default: %(default)s)")
    flag("--max-target-length", type=int, metavar="N", help="of translations, for models with random weights")
    arguments = parser.parse_args(argv)
    if bool(arguments.url) == bool(arguments.run):
        parser.error("name either a run or --url")
    texts = Path(arguments.text).read_text(encoding="utf-8").splitlines()
    clients = [*map(int, arguments.clients.split(","))]
    print(f"{'':38}{'clients':>8}{'p50 ms':>9}{'p95':>9}{'p99':>9}{'sent/s':>9}")
    if arguments.url:
        table(arguments.url, arguments.url, arguments.model, clients, texts, arguments.seconds)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        in_a_process(export, arguments.run, folder, arguments.num_beams, arguments.max_target_length)
        for configuration in [None, *arguments.batching]:
            for engine in arguments.engines.split(","):
                title = f"{engine}, {'batching ' + configuration if configuration else 'no batching'}"
                serve_and_measure(title, engine, configuration, folder, arguments, clients, texts)
    return 0


def serve_and_measure(title, engine, configuration, folder, arguments, clients, texts):
    environment = Path(folder, "saved_model", "1", "serving.env").read_text().split()
    os.environ.update(dict(line.split("=") for line in environment))  # The process inherits it.
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    settings = engine, configuration, folder, arguments.num_beams, arguments.max_target_length, theirs
    server = multiprocessing.get_context("spawn").Process(target=serve, args=settings, daemon=True)
    server.start()
    theirs.close()  # So that `recv` ends if the server dies.
    url = f"http://127.0.0.1:{ours.recv()}"
    table(title, url, "translator", clients, texts, arguments.seconds)
    server.terminate()
    server.join()


def in_a_process(function, *arguments):
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(process.exitcode)


def export(run, folder, num_beams, max_target_length):
    """Writes the SavedModel and both CTranslate2 models."""
    from keras_transformer.export.ctranslate2 import export_ctranslate2
    from keras_transformer.export.saved_model import export_saved_model
    from keras_transformer.translation.translator import Translator

    translator = Translator.load(run, num_beams=num_beams, max_target_length=max_target_length, shortlist=0)
    export_saved_model(translator, Path(folder, "saved_model"))
    for quantize in ("float32", "int8"):
        export_ctranslate2(translator, Path(folder, quantize), quantize)


# The server, a process of its own.


def serve(engine, configuration, folder, num_beams, max_target_length, ready):
    import numpy as np

    if engine == "SavedModel":
        from keras_transformer.export.verify import ServedModel

        served = ServedModel(Path(folder, "saved_model", "1"))  # In a session, as TensorFlow Serving runs it.

        def translate(texts):
            found = served("translate", text=np.array([text.encode() for text in texts], object))
            return [text.decode() for text in found["translation"]]

    else:
        quantize = "int8" if "int8" in engine else "float32"
        translate = ctranslate2_function(Path(folder, quantize), num_beams, max_target_length)
    if configuration:
        translate = Batcher(translate, *map(int, configuration.split(",")))

    class Handler(BaseHTTPRequestHandler):
        protocol_version, wbufsize, disable_nagle_algorithm = "HTTP/1.1", -1, True

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps({"outputs": translate(request["inputs"]["text"])}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, *arguments):
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Handler)
    ready.send(server.server_port)
    server.serve_forever()


class Batcher:
    """Joins requests by the rules of TensorFlow Serving: a batch is full, or its first request has waited long enough.

    Args:
        translate: a function from a list of texts to their translations.
        max_batch_size, batch_timeout_micros, num_batch_threads: see tensorflow.serving.BatchingParameters.
    """

    def __init__(self, translate, max_batch_size, batch_timeout_micros, num_batch_threads):
        self.translate, self.size, self.timeout = translate, max_batch_size, batch_timeout_micros / 1e6
        self.requests, self.collecting = queue.SimpleQueue(), threading.Lock()
        for _ in range(num_batch_threads):
            threading.Thread(target=self.run, daemon=True).start()

    def __call__(self, texts):
        future = Future()
        self.requests.put((texts, future, time.perf_counter()))
        return future.result()

    def run(self):
        while True:
            with self.collecting:
                batch = [self.requests.get()]
                end = batch[0][2] + self.timeout
                while sum(len(texts) for texts, *_ in batch) < self.size:
                    try:
                        batch.append(self.requests.get(timeout=max(0, end - time.perf_counter())))
                    except queue.Empty:
                        break
            found = iter(self.translate([text for texts, *_ in batch for text in texts]))
            for texts, future, _ in batch:
                future.set_result([next(found) for _ in texts])


def ctranslate2_function(folder, num_beams, max_target_length):
    """A function from texts to their translations."""
    import ctranslate2
    from sentencepiece import SentencePieceProcessor

    translator = ctranslate2.Translator(str(folder), inter_threads=CORES, intra_threads=1)
    files = [folder / f"{side}tokenizer.spm" for side in ("source_", "target_")]
    source, target = (
        SentencePieceProcessor(str(file if file.exists() else folder / "tokenizer.spm")) for file in files
    )
    settings = {"beam_size": num_beams, "max_batch_size": 32}
    settings |= {"max_decoding_length": max_target_length} if max_target_length else {}

    def translate(texts):
        rows = [source.encode(text, out_type=str) for text in texts]
        return [target.decode(result.hypotheses[0]) for result in translator.translate_batch(rows, **settings)]

    return translate


# The clients.


def table(title, url, model, clients, texts, seconds):
    for number in clients:
        times, took = load(url, model, number, texts, seconds)
        cuts = [1e3 * statistics.quantiles(times, n=100)[n - 1] for n in (50, 95, 99)]
        print(f"{title:38}{number:8}{cuts[0]:9.1f}{cuts[1]:9.1f}{cuts[2]:9.1f}{len(times) / took:9.1f}", flush=True)


def load(url, model, clients, texts, seconds):
    """The seconds of each answer, and the seconds of the measurement. Each client first warms the server up."""
    address, times, begun = urllib.parse.urlsplit(url), [], threading.Barrier(clients)

    def client(number):
        connection, chosen = http.client.HTTPConnection(address.hostname, address.port), random.Random(number)

        def ask():
            body = json.dumps({"signature_name": "translate", "inputs": {"text": [chosen.choice(texts)]}})
            asked = time.perf_counter()
            connection.request("POST", f"/v1/models/{model}:predict", body)
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{answer.status}: {content[:200]}")
            return asked, time.perf_counter()

        try:
            for _ in range(10):
                ask()
            begun.wait()
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                asked, answered = ask()
                if answered <= end:
                    times.append(answered - asked)
        except Exception:
            begun.abort()  # The others would wait for it.
            raise

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))  # Raises what a client raised.
    if len(times) < 2:
        sys.exit(f"error: {clients} clients got {len(times)} answers in {seconds} seconds. Try a larger --seconds.")
    return times, seconds


if __name__ == "__main__":
    sys.exit(main())
