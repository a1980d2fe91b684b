"""Trains a translator: `python train_keras.py` uses the embedded corpus, `--help` shows all settings.

Read `train` from top to bottom: it is the whole recipe, made of ordinary Keras parts. Copy what you need.
"""

import argparse
import itertools
import json
import os
import shlex
import sys
import time
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from keras_transformer.commands.flags import FlagParser, add_flags, file_stamp, user_errors
from keras_transformer.files import full_disk_named
from keras_transformer.training.config import CHANGEABLE, LARGE_TEXT, PRESETS, ConfigError, RunConfig, read_config_file
from keras_transformer.training.run import Run

# Settings that name a trained run.
OTHER_RUNS = ("init_from", "vocabulary_from", "layers_from", "teacher")
# Settings that have no effect without another one.
DEPENDENT = {
    "identify_languages": "clean",
    "encoder_layers": "layers_from",
    "decoder_layers": "layers_from",
    "teacher_weight": "teacher",
}


def main(argv=None):
    run, config, resume, overwrite, export = parse(argv)
    before = file_stamp(run.config_file)

    def hint():
        # A run that --overwrite has not yet replaced is another one.
        begun = run.exists() and (resume or file_stamp(run.config_file) != before)
        return f"Resume with:\n  {command(run)}" if begun else "Nothing was trained."

    with user_errors(hint), claimed(run, config, resume, overwrite):
        return train(run, config, resume, export)


def train(run, config, resume, export):
    """The recipe: data, model, compile, fit, score, export. Returns the exit status."""
    # TensorFlow reads this at its import: its own allocator keeps memory that would return to the kernel every step.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    # Heavy imports come after the flags are parsed, so that --help and mistyped flags are answered at once.
    import keras

    from keras_transformer.data.batches import make_batches
    from keras_transformer.data.corpora import load_corpus
    from keras_transformer.training.callbacks import BLEUCallback, TimeLeft
    from keras_transformer.training.checkpoints import RunCheckpoint
    from keras_transformer.training.distribution import agree, barrier, distribute, is_chief, worker_errors
    from keras_transformer.training.initialization import copy_weights
    from keras_transformer.translation.translator import Translator

    began = time.monotonic()
    recipe = config.training
    with (
        distribute(recipe.strategy) as strategy,
        worker_errors(strategy, command(run)),
        nullcontext(run) if resume else run.set_up(is_chief(strategy), lambda: barrier(strategy)) as prepared,
    ):
        chief = is_chief(strategy)
        if not resume:
            check_sizes(config)
        keras.utils.set_random_seed(recipe.seed)
        corpus = load_corpus(config.data)
        if resume:
            run.check_text(corpus)
        elif chief:
            prepared.prepare(config, corpus)
        barrier(strategy)  # The other workers read what the first one has written.
        tokenizers = prepared.tokenizers()
        if recipe.teacher:
            prepared.check_vocabulary_of(Run(recipe.teacher))
        train = [encode(text, tokenizers, config, config.data.clean) for text in corpus.train]
        general = encode(corpus.general, tokenizers, config) if corpus.general else None
        validation = [encode(text, tokenizers, config) for text in corpus.validation]
        model = compiled_model(config, tokenizers)
        limits = recipe.monitor, recipe.patience, recipe.max_minutes
        checkpoint = RunCheckpoint(
            run,
            *limits,
            every_steps=recipe.checkpoint_steps,
            every_minutes=recipe.checkpoint_minutes,
            write=chief,
            agree=lambda value: agree(strategy, value),
        )
        epochs_done, steps_done = checkpoint.restore(model) if resume else (0, 0)
        if resume and chief:
            run.go_on(config, epochs_done)
        begun = epochs_done or steps_done  # A run that was stopped before its first checkpoint begins again.
        if recipe.init_from and not begun:
            model.set_weights(Run(recipe.init_from).model().get_weights())
        if recipe.layers_from and not begun:
            other = Run(recipe.layers_from)
            layers = [
                [int(i) for i in one.split(",")] if one else None
                for one in (recipe.encoder_layers, recipe.decoder_layers)
            ]
            copied = copy_weights(model, other.model(), *layers, prepared.has_vocabulary_of(other))
            print(f"weights of {other}: {', '.join(copied)}")
        batches = make_batches(
            parts(corpus, train, general, config.data),
            config.data.tokens_per_batch,
            shuffle=True,
            seed=recipe.seed,
            steps_per_epoch=recipe.steps_per_epoch,
            vary=variation(corpus, tokenizers, config),
            workers=config.data.workers or (os.cpu_count() or 1) // 4,
            strategy=strategy,
        )
        val_parts = [(pairs, len(pairs.source)) for pairs in validation]
        val_batches = make_batches(val_parts, config.data.tokens_per_batch)

    print(f"model: {config.preset}, {model.count_params():,} weights")
    replicas = getattr(strategy, "num_replicas_in_sync", 1)
    print(
        f"batches: {batches.steps_per_epoch:,} an epoch, of at most {config.data.tokens_per_batch:,} target tokens, "
        f"{batches.padding:.1%} padding" + (f", split among {replicas} replicas" if replicas > 1 else "")
    )
    translator = Translator(model, *tokenizers, max_source_length=config.data.max_length, **vars(config.decoding))
    if begun:
        print(f"resuming: {epochs_done} of {recipe.epochs} epochs", end="")
        print(f" and {steps_done:,} steps" * bool(steps_done), "are done", flush=True)
    elif chief and recipe.init_from:  # An untrained model has a BLEU of 0, and takes a minute or more for it.
        # Saved now: a resumed run cannot measure it again.
        run.save_scores(scores_of_tests(translator, corpus, config, "before training"))
    over = checkpoint.reason_to_stop()  # For a resumed run that was already finished.
    if over and chief:
        print(f"No more epochs: {over}.", flush=True)

    # The order matters: each callback sees the weights and metrics as those before it have changed them.
    callbacks = []
    if recipe.ema_momentum:
        callbacks.append(keras.callbacks.SwapEMAWeights())  # Validates the averaged weights.
    if recipe.monitor == "val_bleu":
        bleu = BLEUCallback(lambda: agree(strategy, scores(translator, corpus.validation, config)["bleu"]))
        callbacks.append(bleu)
    time_left = TimeLeft(recipe.max_minutes and recipe.max_minutes - checkpoint.state["minutes"])
    with worker_errors(strategy, command(run)), full_disk_named(run), logs(run, model, chief) as logging:
        callbacks += [*logging, checkpoint, *([time_left] if chief else [])]
        # After a kill within an epoch, the rest of that epoch is a `fit` of its own.
        ends = [epochs_done + 1, recipe.epochs] if steps_done else [recipe.epochs]
        for end in [] if over else ends:
            steps = batches.steps_per_epoch
            model.fit(
                batches.from_step(epochs_done * steps + steps_done),
                steps_per_epoch=steps - steps_done,
                epochs=end,
                initial_epoch=epochs_done,
                validation_data=val_batches.dataset,
                shuffle=False,  # The batches are already shuffled.
                verbose=(1 if sys.stdout.isatty() else 2) if chief else 0,
                callbacks=callbacks,
            )
            if model.stop_training:
                break
            epochs_done, steps_done = end, 0
            if recipe.ema_momentum and epochs_done < recipe.epochs:
                # Keras ends `fit` with the averages in place of the weights, and training goes on from the weights.
                barrier(strategy)  # The first worker has written them.
                with strategy.scope() if strategy else nullcontext():
                    checkpoint.restore(model)
    status = finish(run, config, corpus, checkpoint, export, began) if chief else 0
    with worker_errors(strategy, command(run)):
        barrier(strategy)  # The others wait: without them, the first worker would fail.
    return status


def check_sizes(config):
    """Raises a ValueError for sizes that do not fit, by a shallow model: now, and not when all text is encoded."""
    from keras_transformer.models.transformer import Transformer

    shallow = {"num_layers": 1, "num_decoder_layers": 1, "source_language_token_id": None}
    Transformer(8, **vars(config.model) | shallow)


def compiled_model(config, tokenizers):
    """The `Transformer` of a run, with its optimizer, loss and metrics."""
    from keras_transformer.models.transformer import Transformer
    from keras_transformer.training.initialization import add_teacher
    from keras_transformer.training.losses import LabelSmoothedCrossEntropy, Perplexity, TokenAccuracy
    from keras_transformer.training.schedules import make_optimizer, make_schedule

    model = Transformer(
        tokenizers[0].vocabulary_size,
        target_vocabulary_size=tokenizers[-1].vocabulary_size,
        max_length=config.data.max_length,
        **vars(config.model),
    )
    recipe = config.training
    for part in filter(None, recipe.freeze.split(",")):
        for layer in layers_of(model, part):
            layer.trainable = False
    schedule = make_schedule(config.model.hidden_dim, recipe.warmup_steps, recipe.learning_rate)
    model.compile(
        optimizer=make_optimizer(schedule, recipe.clip_norm, recipe.ema_momentum),
        loss=LabelSmoothedCrossEntropy(recipe.label_smoothing),
        weighted_metrics=[TokenAccuracy(), Perplexity()],
        jit_compile=recipe.jit_compile,
        gradient_accumulation_steps=recipe.gradient_accumulation_steps,
    )
    if recipe.teacher:
        add_teacher(model, Run(recipe.teacher).model(), recipe.teacher_weight)
    return model


def layers_of(model, part):
    """The layers of a part of a `Transformer`: `"embeddings"`, `"encoder"` or `"decoder"`."""
    if part == "embeddings":
        return [model.encoder_embedding, model.decoder_embedding]
    blocks, norm = getattr(model, f"{part}_blocks"), getattr(model, f"{part}_norm")
    return blocks + ([norm] if norm else [])


@contextmanager
def logs(run, model, chief):
    """The callbacks that write the logs of a run; call `fit` within this context.

    They run before the checkpoint. A kill between the two leaves too many rows, which `run.go_on` removes.
    """
    import keras

    from keras_transformer.training.checkpoints import save_model

    if not chief:
        yield []
        return
    log = keras.callbacks.CSVLogger(str(run.log_file), append=True)
    try:
        yield [log, keras.callbacks.TensorBoard(str(run.tensorboard_folder), write_graph=False)]
    except KeyboardInterrupt:
        if not run.model_file.exists():  # So that even an interrupted first epoch leaves a model that translates.
            save_model(model, run.model_file)
        raise
    finally:
        if log.csv_file:  # If `fit` fails, Keras calls no callback, and the file would stay open.
            with suppress(OSError):
                log.csv_file.close()


def finish(run, config, corpus, checkpoint, export, began):
    """Scores the best model, shows what it translates, and exports it. Returns the exit status."""
    from keras_transformer.export.saved_model import export_saved_model
    from keras_transformer.translation.translator import Translator

    if checkpoint.state["best"] is None:
        print(
            f"error: no epoch ended with a {config.training.monitor} that is a number, so there is no model to score "
            f"or export. {run} holds {checkpoint.state['epoch'] or 'no'} finished epochs. Begin again with --overwrite "
            "and other settings, such as a lower --learning-rate.",
            file=sys.stderr,
        )
        return 1
    translator = Translator.load(run.folder)  # The best epoch, loaded the same way as users load it.
    run.save_scores({**run.scores(), **scores_of_tests(translator, corpus, config, "after training")})
    show_table(run.scores(), corpus)
    calibrate(run, translator, corpus.validation)
    for text in corpus.test:
        show_samples(translator, text, 5 if len(corpus.test) == 1 else 2)
    exported = export_saved_model(translator, run.export_folder("saved_model"), overwrite=True) if export else "none"
    print(f"\n{(time.monotonic() - began) / 60:.1f} minutes in all. Run folder: {run}   SavedModel: {exported}")
    print("To translate with it:")
    print(f"  echo {shlex.quote(corpus.test[0].pairs[0][0])} | python -m keras_transformer translate {quoted(run)}")
    codes = config.data.target_languages()
    into = f" --target-language {codes[-1]}" if len(codes) > 1 else ""
    print(f"  python -m keras_transformer translate {quoted(run)}{into} --input FILE --output FILE")
    return 0


def makes_the_run_folder(strategy):
    """Whether this process is the first of several workers, or the only one. Works before TensorFlow is imported."""
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        task = config.get("task", {})
        kind, index = (task["type"], int(task["index"])) if task else (None, None)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            "The environment variable TF_CONFIG must be a JSON object with a `task` that has a `type` and an `index`. "
            f"Received: {os.environ['TF_CONFIG']}."
        ) from error
    if strategy not in ("auto", "multi_worker"):
        return True
    if task:  # The chief is the task of that name, or the first worker if there is none.
        return kind == "chief" or (index == 0 and "chief" not in config.get("cluster", {}))
    return strategy == "auto" or int(os.environ.get("SLURM_PROCID", 0)) == 0


def parse(argv):
    """The `Run`, its `RunConfig`, and whether to resume, to overwrite and to export."""
    parser = FlagParser(
        prog="python -m keras_transformer train",
        usage="%(prog)s [FLAGS]",
        description="Trains a translator, scores it on held-out sentences and exports a SavedModel. Without flags: "
        "on the embedded corpus, in a few minutes.",
        epilog="Priority of settings: a flag overrides --config, then come the data set's recipe, the preset and the "
        "default. `--config RUN/config.json --dataset NAME` (or --preset NAME) keeps what was chosen for that run; "
        "settings that came from its recipe or preset are taken from the new ones. With --resume, the run's own "
        "settings are used. These may be changed: "
        + ", ".join("--" + name.replace("_", "-") for name in sorted(CHANGEABLE))
        + "; other changes would make it another run.",
    )
    parser.add_argument("--run-dir", metavar="DIR", help="run folder to write (default: runs/DATASET-PRESET)")
    parser.add_argument("--preset", default=argparse.SUPPRESS, help=f"size of the model: {', '.join(PRESETS)}")
    parser.add_argument("--config", metavar="FILE", help="JSON file of settings, such as the config.json of a run")
    parser.add_argument("--resume", action="store_true", help="continue the run in the run folder, exactly")
    parser.add_argument("--overwrite", action="store_true", help="replace the run in the run folder")
    parser.add_argument("--no-export", action="store_true", help="write no SavedModel at the end")
    add_flags(parser, "data", "tokenizer", "model", "training", "decoding")
    flags = vars(parser.parse_args(argv))
    names = ("run_dir", "config", "resume", "overwrite", "no_export")
    run_dir, file, resume, overwrite, no_export = (flags.pop(name) for name in names)
    with user_errors():
        run, config = configure(flags, read_config_file(file) if file else {}, run_dir, resume)
    return run, config, resume, overwrite, not no_export


def claimed(run, config, resume, overwrite):
    """The context in which this process may write the run; see `Run.claimed`. Of several workers, the first writes."""
    return run.claimed(overwrite, resume) if makes_the_run_folder(config.training.strategy) else nullcontext()


def configure(flags, file, run_dir=None, resume=False):
    """The `Run` and its `RunConfig`, from settings of the command line and of a file; writes nothing.

    Raises:
        ConfigError: a setting is invalid, or there is no run to resume.
    """
    others = {name: Run(other) for name in OTHER_RUNS if (other := {**file, **flags}.get(name)) and not resume}
    for name, other in others.items():
        other.check_trained(for_vocabulary=name == "vocabulary_from")
    init, vocabulary, layers = (others[name].config() if name in others else None for name in OTHER_RUNS[:3])
    config = RunConfig.make(flags, file, init, vocabulary, layers)
    own = "own" if config.data.train_source or config.data.train else config.data.dataset
    run = Run(run_dir or Path("runs", f"{own}-{config.preset}"))
    if resume:
        run.check_resumable()
        config = run.config().resumed({**file, **flags})
    check_together(config)
    if config.decoding.shortlist and not (resume and run.shortlist_file.is_file()):
        raise ConfigError(
            "`shortlist` needs alignments, which a trained model makes. "
            f"Received: shortlist={config.decoding.shortlist}. Train without it; then try "
            f"`python -m keras_transformer shortlist {quoted(run)}`, and this flag with --resume."
        )
    return run, config


def check_together(config):
    """Raises a ConfigError for settings that have no effect without others, or that a library refuses."""
    alpha, passes = config.training.subword_sampling, config.training.subword_sampling_passes
    if alpha and config.tokenizer.tokenizer != "unigram":
        raise ConfigError(
            "`subword_sampling` needs a unigram tokenizer: others have no probabilities to draw segmentations by. "
            f"Received: subword_sampling={alpha}, tokenizer={config.tokenizer.tokenizer!r}. Leave out one of them."
        )
    if passes is not None and not alpha:
        raise ConfigError(
            "`subword_sampling_passes` needs `subword_sampling`: nothing is drawn without it. "
            f"Received: subword_sampling_passes={passes} alone. Try --subword-sampling 0.5."
        )
    values, usual = config.flat(), RunConfig().flat()
    for name, needed in DEPENDENT.items():
        if values[name] != usual[name] and not values[needed]:
            raise ConfigError(f"`{name}` has no effect without `{needed}`. Received: {name}={values[name]!r} alone.")
    if tokenize := config.data.bleu_tokenize:
        import sacrebleu

        try:
            sacrebleu.BLEU(tokenize=tokenize)
        except Exception as error:  # Each of sacreBLEU's tokenizers has errors of its own.
            raise ConfigError(
                f"`bleu_tokenize` must be one of sacreBLEU's {', '.join(map(str, sacrebleu.BLEU.TOKENIZERS))}, and "
                f"installed. Received: {tokenize!r}. sacreBLEU says: {' '.join(str(error).split())}."
            ) from error


def encode(text, tokenizers, config, clean=False):
    """Token ids of a `ParallelText`, those of a large text on disk; prints how many pairs there are."""
    from keras_transformer.data.cleaning import Cleaner
    from keras_transformer.data.encoding import Progress, encode_pairs, encoded_in, report

    data, tagged_targets = config.data, config.model.source_language_token_id is not None
    cleaner = Cleaner.of(data, text.direction) if clean else None
    tokenizers, cache = (tokenizers[0], tokenizers[-1]), data.cache_dir
    if cache is None and text.num_bytes > LARGE_TEXT:
        cache = Path(os.environ.get("KERAS_HOME", Path.home() / ".keras"), "keras_transformer")
    if cache is None or not text.num_bytes:
        if cleaner:
            cleaner.find_duplicates(text.lines)
        settings = {"cleaner": cleaner, "target_language": text.target_language, "tagged_targets": tagged_targets}
        pairs = encode_pairs(text.lines, *tokenizers, data.max_length, data.over_long, **settings)
    else:
        settings = {"workers": data.workers or os.cpu_count(), "progress": Progress(text.name)}
        settings |= {"cleaner": cleaner, "tagged_targets": tagged_targets}
        pairs = encoded_in(cache, text, tokenizers, data.max_length, data.over_long, **settings)
    about = report(pairs.left_out) if clean else pairs.about_left_out(data.over_long)
    print(("\n" if clean else ", ").join([f"{text}: {len(pairs.source):,} pairs", *about]), flush=True)
    return pairs


def parts(corpus, train, general, data):
    """What a pass consists of: `EncodedPairs`, and how many of them."""
    from keras_transformer.data.batches import pairs_per_pass

    sizes = [len(pairs.source) for pairs in train]
    counts = pairs_per_pass(sizes, [text.weight for text in corpus.train], data.corpus_temperature)
    parts = list(zip(train, counts, strict=True))
    if counts != sizes:
        for text, count in zip(corpus.train, counts, strict=True):
            print(f"{text}: {count:,} pairs in every pass ({count / sum(counts):.1%})")
    return [*parts, (general, round(data.general_weight * sum(counts)))] if general else parts


def variation(corpus, tokenizers, config):
    """What differs between passes: subword segmentations, and words that become placeholders."""
    from keras_transformer.data.batches import Variation
    from keras_transformer.data.masking import word_pairs

    recipe = config.training
    variation = Variation(
        (tokenizers[0], tokenizers[-1]),
        config.data.max_length,
        recipe.subword_sampling,
        recipe.subword_sampling_passes,
        recipe.placeholder_share,
    )
    if variation.share:
        for direction in {text.direction: None for text in corpus.train}:
            texts = [text for text in corpus.train if text.direction == direction]
            variation.words |= word_pairs(itertools.chain.from_iterable(texts))
    return variation


def score(translator, text, config, title=None):
    """sacreBLEU of a `ParallelText`; printed under `title`."""
    from keras_transformer.translation.scores import corpus_scores

    sources, references = zip(*text.pairs, strict=True)
    translations = translator.translate(sources, target_language=text.target_language, return_scores=True)
    tokenize = config.data.sacrebleu_tokenizer()
    found = corpus_scores([translation.text for translation in translations], references, tokenize)
    if title:
        cut = sum(translation.truncated for translation in translations)
        note = f", {cut:,} of them cut at {translator.codec.max_source_length} tokens" if cut else ""
        print(f"\n{title}, {text}, {len(sources):,} sentences{note}:\n{found}", flush=True)
    return found


def scores(translator, texts, config, title=None):
    """The scores of several texts as a dictionary: their means, and under "texts" those of each text by its name."""
    of_each = {str(text): score(translator, text, config, title)._asdict() for text in texts}
    found = next(iter(of_each.values()))
    if len(of_each) > 1:
        means = {name: sum(one[name] for one in of_each.values()) / len(of_each) for name in ("bleu", "chrf")}
        found = {**found, **means, "texts": of_each}
    return found


def scores_of_tests(translator, corpus, config, title):
    """The scores of the test sets as `scores.json` has them; after training, also of several validation texts."""
    key, found = title.replace(" ", "_"), {}
    found[key] = scores(translator, corpus.test, config, title)
    if corpus.general_test:
        found[f"general_{key}"] = scores(translator, [corpus.general_test], config, title)
    if title == "after training" and len(corpus.validation) > 1:
        found["validation"] = scores(translator, corpus.validation, config)
    return found


def calibrate(run, translator, texts, most=1000):
    """Finds how likely words are right, from about so many validation pairs, and writes it into the run."""
    from keras_transformer.text.confidence import CalibrationError
    from keras_transformer.translation import learning

    few = [(*pair, text.target_language) for text in texts for pair in text.pairs[: -(-most // len(texts))]]
    sources, references, languages = zip(*few, strict=True)
    try:
        calibration = learning.calibrate(translator, sources, references, languages)
    except CalibrationError as error:  # Small corpora can be learned by heart.
        print(f"\nNo confidence: {error}", flush=True)
        return
    run.save_calibration(calibration)
    print(f"\nconfidence: fitted to {calibration.num_words:,} words, {calibration.right:.1%} of them right", flush=True)


def show_table(found, corpus):
    """Prints the content of scores.json, if there are several texts: BLEU and chrF, before training if measured."""
    tests = [("", text) for text in corpus.test] + [("general_", text) for text in (corpus.general_test,) if text]
    if len(tests) == 1:
        return
    columns = {"before": "before_training", "after": "after_training"}
    columns = {name: key for name, key in columns.items() if key in found}
    print("\n" + f"{'BLEU / chrF':50}" + "".join(f"{name:>15}" for name in columns))
    for name, text in tests:
        of_columns = [found.get(f"{name}{key}", {}) for key in columns.values()]
        row = [one.get("texts", {}).get(str(text), one) for one in of_columns]
        _print_row(str(text), row)
    if len(corpus.test) > 1:
        _print_row("mean of these", [found.get(key, {}) for key in columns.values()])
    for name, one in found.get("validation", {}).get("texts", {}).items():
        _print_row(name, [{}, one][-len(columns) :])


def _print_row(name, of_columns):
    row = [f"{one['bleu']:.1f} / {one['chrf']:.1f}" if one else "-" for one in of_columns]
    print(f"{name[-50:]:50}" + "".join(f"{one:>15}" for one in row), flush=True)


def show_samples(translator, text, count=5):
    """Prints source, reference and translation of sentences spread over a `ParallelText`."""
    pairs = text.pairs[:: max(1, len(text.pairs) // count)][:count]
    sources = [source for source, _ in pairs]
    translations = translator.translate(sources, target_language=text.target_language, return_scores=True)
    for (source, reference), translation in zip(pairs, translations, strict=True):
        print(f"\n  source       {source}\n  reference    {reference}\n  translation  {translation.text}")


def quoted(path):
    return shlex.quote(str(path))


def command(run):
    """The command that resumes a run."""
    return f"python -m keras_transformer train --run-dir {quoted(run)} --resume"


if __name__ == "__main__":
    sys.exit(main())
