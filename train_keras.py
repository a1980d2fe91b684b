"""Trains a translator: `python train_keras.py` uses the embedded corpus, `--help all` shows all settings.

Read `train` from top to bottom: it is the whole recipe, made of ordinary Keras parts. Copy what you need.
"""

import math
import os
import shlex
import sys
import time
from contextlib import nullcontext

from keras_transformer.commands.flags import file_stamp, user_errors
from keras_transformer.commands.train import claimed, command, parse, quoted


def main(argv=None):
    run, config, resume, overwrite, export = parse(argv)
    before = file_stamp(run.config_file)

    def hint():
        # A run that --overwrite has not yet replaced is another one.
        begun = run.exists() and (resume or file_stamp(run.config_file) != before)
        return f"Resume with:\n  {command(run)}" if begun else "Nothing was trained."

    with user_errors(hint), claimed(run, config, resume, overwrite):
        return train(run, config, resume, export)


def train(run, config, resume=False, export=True):
    """The recipe: prepare, build, fit, score, export. Returns the exit status."""
    # TensorFlow reads this at its import: its own allocator keeps memory that would return to the kernel every step.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    # Heavy imports come after the flags are parsed, so that --help and mistyped flags are answered at once.
    import keras

    from keras_transformer.training.distribution import agree, barrier, distribute, is_chief, worker_errors
    from keras_transformer.training.fit import begin, check_sizes, checkpoint_of, compiled_model, fit
    from keras_transformer.training.prepare import batches_of, read_text
    from keras_transformer.translation.evaluation import mean_bleu, scores_of_tests
    from keras_transformer.translation.translator import Translator

    began, recipe, data = time.monotonic(), config.training, config.data
    with (
        distribute(recipe.strategy) as strategy,
        worker_errors(strategy, command(run)),
        nullcontext(run) if resume else run.set_up(is_chief(strategy), lambda: barrier(strategy)) as folder,
    ):
        chief = is_chief(strategy)
        if not resume:
            check_sizes(config)
        keras.utils.set_random_seed(recipe.seed)
        text = read_text(folder, config, resume, strategy)
        batches, validation = batches_of(text, config, strategy)
        model = compiled_model(config, text.tokenizers, batches.steps_per_epoch)
        checkpoint = checkpoint_of(run, config, strategy)
        done = begin(model, run, folder, config, checkpoint, resume, chief)
    describe(model, config, batches, done, getattr(strategy, "num_replicas_in_sync", 1))
    limits = {"max_source_length": data.max_length, "source_language": data.language_of_sources()}
    translator = Translator(model, *text.tokenizers, **limits, **vars(config.search))
    if chief and recipe.init_from and not any(done):  # An untrained model has a BLEU of 0, and takes a minute for it.
        # Saved now: a resumed run cannot measure it again.
        run.save_scores(scores_of_tests(translator, text.corpus, config, "before training"))

    def add_bleu(_, logs):
        logs["val_bleu"] = agree(strategy, mean_bleu(translator, text.corpus.validation, config))

    callbacks = [keras.callbacks.LambdaCallback(on_epoch_end=add_bleu)] if recipe.monitor == "val_bleu" else []
    with worker_errors(strategy, command(run)):
        over = checkpoint.reason_to_stop()  # For a resumed run that was already finished.
        if over and chief:
            print(f"No more epochs: {over}.", flush=True)
        if not over:
            fit(model, run, config, batches, validation, [*callbacks, checkpoint], done, strategy)
    status = finish(run, config, text.corpus, checkpoint, export, began) if chief else 0
    with worker_errors(strategy, command(run)):
        barrier(strategy)  # The others wait: without them, the first worker would fail.
    return status


def describe(model, config, batches, done, replicas):
    """Prints the sizes of model and batches, and what is done of a resumed run."""
    from keras_transformer.training.checkpoints import own_weights

    total, trained = (sum(math.prod(w.shape) for w in x) for x in (own_weights(model), model.trainable_weights))
    print(f"model: {config.preset}, {total:,} weights" + (f"; {trained:,} are trained" if trained != total else ""))
    print(
        f"batches: {batches.steps_per_epoch:,} an epoch, of at most {config.data.tokens_per_batch:,} target tokens, "
        f"{batches.padding:.1%} padding" + (f", split among {replicas} replicas" if replicas > 1 else "")
    )
    if any(done):
        epochs, steps = done
        more = f" and {steps:,} steps" * bool(steps)
        print(f"resuming: {epochs} of {config.training.epochs} epochs{more} are done", flush=True)


def finish(run, config, corpus, checkpoint, export, began):
    """Scores the best model, shows what it translates, and exports it. Returns the exit status."""
    from keras_transformer.translation.evaluation import evaluate
    from keras_transformer.translation.readme import write_readme
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
    evaluate(run, translator, config, corpus)
    write_readme(run.folder, run, translator.model.count_params(), config.data.max_length)
    exported = "none"
    if export:
        from keras_transformer.export.saved_model import export_saved_model  # It needs TensorFlow.

        exported = export_saved_model(translator, run.export_folder("saved_model"), overwrite=True)
    print(f"\n{(time.monotonic() - began) / 60:.1f} minutes in all. Run folder: {run}   SavedModel: {exported}")
    print("To translate with it:")
    print(f"  echo {shlex.quote(corpus.test[0].pairs[0][0])} | python -m keras_transformer translate {quoted(run)}")
    codes = config.data.target_languages()
    into = f" --target-language {codes[-1]}" if len(codes) > 1 else ""
    print(f"  python -m keras_transformer translate {quoted(run)}{into} --input FILE --output FILE")
    return 0


if __name__ == "__main__":
    sys.exit(main())
