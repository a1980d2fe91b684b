"""Public models, made here: what importing costs, and that an imported model translates as the original does.

    python benchmarks/imported.py train FOLDER --data-dir MULTI30K --minutes 12
    python benchmarks/imported.py train FOLDER --text train.en train.de --minutes 120 --learning-rate 1e-3
    python benchmarks/imported.py translate FOLDER --source FILE --output FILE
    python benchmarks/imported.py random FOLDER
    python benchmarks/imported.py compare FOLDER RUN --source FILE --reference FILE
    python benchmarks/imported.py quantize RUN --source FILE --reference FILE

`train` trains a small Marian-shaped model of transformers on Multi30k, or on the text of two files, and saves it as
transformers does; `translate` translates with it. `random` saves one of OPUS-MT's size with random weights: 6 + 6
blocks, 512 / 2048, 58,101 ids; with `--nllb`, one of the size of NLLB-200-distilled-600M: 12 + 12 blocks, 1024 / 4096,
256,206 ids. Import them with `python -m keras_transformer import opus-mt FOLDER --run-dir RUN`; for `--nllb` with
`import nllb FOLDER --run-dir RUN --source-language eng_Latn --target-language deu_Latn`. `compare` translates a file
with transformers, with CTranslate2's own conversion of the folder, and with the run, and prints BLEU and the time of a
sentence. `quantize` rounds the weights of one part after the other to int8, as dynamic-range quantisation does, and
prints what it costs.
"""

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import sentencepiece

from keras_transformer.data.corpora import multi30k, parallel_files
from keras_transformer.text.lines import read_lines


def save_tokenizers(folder, sides, size):
    """source.spm, target.spm and vocab.json, as OPUS-MT makes them; returns the number of ids."""
    pieces = set()
    for name, lines in zip(("source", "target"), sides, strict=True):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(folder / name),
            vocab_size=size,
            character_coverage=1.0,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
        (folder / f"{name}.vocab").unlink()
        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.spm"))
        pieces |= {processor.id_to_piece(i) for i in range(3, processor.vocab_size())}
    return ["</s>", "<unk>", *sorted(pieces)]


def save_model(folder, tokens, **settings):
    """A `MarianMTModel` with new weights, and vocab.json."""
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    tokens = [*tokens, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    torch.manual_seed(0)
    start = len(tokens) - 1
    config = MarianConfig(
        vocab_size=len(tokens),
        pad_token_id=start,
        decoder_start_token_id=start,
        eos_token_id=0,
        forced_eos_token_id=None,
        activation_function="swish",
        scale_embedding=True,
        max_position_embeddings=512,
        init_std=settings["d_model"] ** -0.5,
        **settings,
    )
    model = MarianMTModel(config)
    files = [str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")]
    model.generation_config.update(num_beams=4, max_length=512, bad_words_ids=[[start]], forced_eos_token_id=None)
    return model, MarianTokenizer(*files, source_lang="en", target_lang="de")


def train(arguments):
    import torch

    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = parallel_files(*arguments.text) if arguments.text else multi30k(arguments.data_dir).train[0]
    pairs = text.pairs
    tokens = save_tokenizers(folder, list(zip(*pairs, strict=True)), 4000)
    sizes = {"d_model": 128, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512}
    layers = {f"{side}_{name}": 4 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    model, tokenizer = save_model(folder, tokens, **sizes, **layers, dropout=0.1)
    encoded = tokenizer([s for s, _ in pairs], text_target=[t for _, t in pairs])
    lengths = [len(ids) for ids in encoded["labels"]]
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    shuffle, began, step = random.Random(0), time.monotonic(), 0
    total, peak, warmup = 60 * arguments.minutes, arguments.learning_rate, 400
    model.train()
    while (spent := time.monotonic() - began) < total:
        order = sorted(range(len(pairs)), key=lambda i: lengths[i] + shuffle.random())
        batches = [order[i : i + 64] for i in range(0, len(order), 64)]
        shuffle.shuffle(batches)
        for batch in batches:
            spent = time.monotonic() - began
            if spent >= total:
                break
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = peak * min(step / warmup, 1) * max(1 - spent / total, 0.02)
            inputs = tokenizer.pad({"input_ids": [encoded["input_ids"][i] for i in batch]}, return_tensors="pt")
            labels = tokenizer.pad({"input_ids": [encoded["labels"][i] for i in batch]}, return_tensors="pt")
            decoder_ids = torch.nn.functional.pad(labels.input_ids[:, :-1], (1, 0), value=len(tokens))
            logits = model(**inputs, decoder_input_ids=decoder_ids).logits
            wanted = labels.input_ids.masked_fill(labels.attention_mask == 0, -100)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 100 == 0:
                print(f"step {step}, {spent:.0f} s, loss {loss.item():.3f}", flush=True)
    model.eval().save_pretrained(folder)
    print(f"{folder}: {step} steps")


def random_nllb(folder, pairs):
    import torch
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text for pair in pairs for text in pair]),
        model_prefix=str(folder / "sentencepiece.bpe"),
        model_type="bpe",
        vocab_size=16000,
        character_coverage=1.0,
        minloglevel=2,
    )
    (folder / "sentencepiece.bpe.vocab").unlink()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.bpe.model"))
    pieces = [processor.id_to_piece(i) for i in range(3, processor.vocab_size())]
    languages = ["eng_Latn", "deu_Latn", *(f"x{i}_Latn" for i in range(200))]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *pieces]
    tokens += [f"filler{i}" for i in range(256_204 - len(languages) - 1 - len(tokens))]
    added = [{"id": len(tokens) + i, "content": token} for i, token in enumerate([*languages, "<mask>"])]
    content = {"model": {"vocab": {token: i for i, token in enumerate(tokens)}}, "added_tokens": added}
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    torch.manual_seed(0)
    model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=256_206, max_length=None))
    model.generation_config.update(max_length=200)
    return model


def random_model(arguments):
    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    pairs = multi30k(arguments.data_dir).train[0].pairs
    model = (random_nllb if arguments.nllb else random_marian)(folder, pairs)
    model.half().save_pretrained(folder)  # As the public models are.
    print(f"{folder}: {sum(p.numel() for p in model.parameters()):,} weights")


def random_marian(folder, pairs):
    tokens = save_tokenizers(folder, list(zip(*pairs, strict=True)), 16000)
    tokens += [f"filler{i}" for i in range(58_100 - len(tokens))]
    sizes = {"d_model": 512, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048}
    blocks = {f"{side}_layers": 6 for side in ("encoder", "decoder")}
    heads = {f"{side}_attention_heads": 8 for side in ("encoder", "decoder")}
    return save_model(folder, tokens, **sizes, **blocks, **heads)[0]


def seconds(function, texts):
    """The median time of one text, after one call that builds what is built once."""
    function(texts[:1])
    times = []
    for text in texts:
        began = time.perf_counter()
        function([text])
        times.append(time.perf_counter() - began)
    return np.median(times)


def compare(arguments):
    import sacrebleu

    sources, references = read_lines(arguments.source), read_lines(arguments.reference)
    sources, references = sources[: arguments.sentences], references[: arguments.sentences]
    searches = {
        "transformers": with_transformers(arguments),
        "CTranslate2's conversion": with_ctranslate2(arguments),
        "the run": with_run(arguments, "auto"),
        "the run, XLA": with_run(arguments, True),
    }
    print(f"{'':26} {'BLEU':>6} {'same':>6} {'ms':>7}   ({len(sources)} sentences, {arguments.num_beams} beams)")
    first = None
    for name, translate in searches.items():
        found = [text for i in range(0, len(sources), 100) for text in translate(sources[i : i + 100])]
        first = first or found
        same = np.mean([a == b for a, b in zip(found, first, strict=True)])
        bleu = sacrebleu.corpus_bleu(found, [references]).score
        ms = 1000 * seconds(translate, sources[:20])
        print(f"{name:26} {bleu:6.2f} {same:6.1%} {ms:7.1f}", flush=True)


def translate(arguments):
    function, sources = with_transformers(arguments), read_lines(arguments.source)
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    found = [""] * len(sources)
    for begin in range(0, len(order), 64):
        rows = order[begin : begin + 64]
        for i, text in zip(rows, function([sources[i] for i in rows]), strict=True):
            found[i] = text
    Path(arguments.output).write_text("".join(f"{' '.join(text.split())}\n" for text in found), encoding="utf-8")


def with_transformers(arguments):
    import torch
    from transformers import MarianMTModel, MarianTokenizer

    folder = Path(arguments.folder)
    model = MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = MarianTokenizer(*(str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")))

    def translate(texts):
        with torch.no_grad():
            batch = tokenizer(texts, return_tensors="pt", padding=True)
            ids = model.generate(
                **batch,
                num_beams=arguments.num_beams,
                early_stopping=arguments.early_stopping,
                max_length=arguments.max_length + 1,  # With the start token.
            )
        return tokenizer.batch_decode(ids, skip_special_tokens=True, use_source_tokenizer=False)

    return translate


def with_ctranslate2(arguments):
    import tempfile

    import ctranslate2

    folder = Path(arguments.folder)
    with tempfile.TemporaryDirectory() as converted:
        converter = ctranslate2.converters.TransformersConverter(str(folder), copy_files=[])
        converter.convert(converted, force=True)
        translator = ctranslate2.Translator(converted, intra_threads=2)
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm")) for side in ("source", "target")
    )

    def translate(texts):
        rows = [[*row, "</s>"] for row in source.encode(texts, out_type=str)]
        limits = {"max_decoding_length": arguments.max_length}
        found = translator.translate_batch(rows, beam_size=arguments.num_beams, length_penalty=1.0, **limits)
        return [target.decode_pieces(one.hypotheses[0]) for one in found]

    return translate


def with_run(arguments, jit_compile):
    from keras_transformer.translation.translator import Translator

    settings = {"num_beams": arguments.num_beams, "max_target_length": arguments.max_length, "jit_compile": jit_compile}
    translator = Translator.load(arguments.run, max_source_length=128, **settings)
    return translator.translate


def rounded(matrix, axis):
    """A matrix whose columns (axis 0) or rows (axis 1) have 255 levels each."""
    scale = np.maximum(np.abs(matrix).max(axis=axis, keepdims=True), 1e-12) / 127
    return np.round(matrix / scale) * scale


def quantize(arguments):
    import sacrebleu

    from keras_transformer.models.transformer import Transformer
    from keras_transformer.translation.translator import Translator

    sources, references = read_lines(arguments.source), read_lines(arguments.reference)
    sources, references = sources[: arguments.sentences], references[: arguments.sentences]
    translator = Translator.load(
        arguments.run, num_beams=arguments.num_beams, max_target_length=64, max_source_length=128
    )
    tied = translator.model
    model = Transformer.from_config({**tied.get_config(), "tie_embeddings": "none"})  # To round each matrix alone.
    for name in ("encoder_blocks", "decoder_blocks"):
        for mine, other in zip(getattr(model, name), getattr(tied, name), strict=True):
            mine.set_weights(other.get_weights())
    for name in ("encoder_norm", "decoder_norm"):
        if getattr(model, name):
            getattr(model, name).set_weights(getattr(tied, name).get_weights())
    encoder, decoder = model.encoder_embedding, model.decoder_embedding
    encoder.token_embedding.embeddings.assign(tied.encoder_embedding.token_embedding.embeddings)
    decoder.token_embedding.embeddings.assign(tied.decoder_embedding.token_embedding.embeddings)
    decoder.token_embedding.reverse_embeddings.assign(tied.decoder_embedding.output_kernel())
    if decoder.bias is not None:
        decoder.bias.assign(tied.decoder_embedding.bias)

    def kernels(layers):
        dense = [dense for layer in layers for dense in layer._flatten_layers() if hasattr(dense, "kernel")]
        return [(one.kernel, 0) for one in dense]

    blocks = model.encoder_blocks + model.decoder_blocks
    parts = {
        "nothing": [],
        "embedding of the source": [(encoder.token_embedding.embeddings, 1)],
        "embedding of the target": [(decoder.token_embedding.embeddings, 1)],
        "output projection": [(decoder.token_embedding.reverse_embeddings, 0)],
        "self-attention": kernels([block.self_attention for block in blocks]),
        "cross-attention": kernels([block.cross_attention for block in model.decoder_blocks]),
        "feed-forward": kernels([block.feed_forward for block in blocks]),
    }
    parts["everything"] = [one for some in parts.values() for one in some]
    translator = Translator(
        model,
        *translator.codec.tokenizers,
        max_source_length=128,
        **{**vars(translator.settings), "max_target_length": 64},
    )
    first = None
    print(f"{'int8':26} {'BLEU':>6} {'same':>6}   ({len(sources)} sentences, {arguments.num_beams} beams)")
    for name, variables in parts.items():
        before = [np.array(variable) for variable, _ in variables]
        for (variable, axis), matrix in zip(variables, before, strict=True):
            variable.assign(rounded(matrix, axis))
        found = translator.translate(sources)
        first = first or found
        same = np.mean([a == b for a, b in zip(found, first, strict=True)])
        print(f"{name:26} {sacrebleu.corpus_bleu(found, [references]).score:6.2f} {same:6.1%}", flush=True)
        for (variable, _), matrix in zip(variables, before, strict=True):
            variable.assign(matrix)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    functions = {"train": train, "translate": translate, "random": random_model, "compare": compare}
    functions["quantize"] = quantize
    for name, function in functions.items():
        one = commands.add_parser(name)
        one.set_defaults(function=function)
        if name != "quantize":
            one.add_argument("folder", help="folder of the model, as transformers saves it")
        if name in ("compare", "quantize"):
            one.add_argument("run", help="run folder of the imported model")
            one.add_argument("--reference", required=True, help="translation of the source")
            one.add_argument("--sentences", type=int, default=1000)
        if name in ("train", "random"):
            one.add_argument("--data-dir", help="folder with the Multi30k files (default: download)")
            one.add_argument(
                "--text", nargs=2, metavar="FILE", help="of `train`: source and target (default: Multi30k)"
            )
            one.add_argument("--minutes", type=float, default=12)
            one.add_argument("--learning-rate", type=float, default=3e-3, help="peak (default: 0.003)")
            one.add_argument("--nllb", action="store_true", help="of `random`: of NLLB's form and size")
        else:
            one.add_argument("--source", required=True, help="text to translate")
            one.add_argument("--num-beams", type=int, default=4)
            one.add_argument("--max-length", type=int, default=64, help="maximum tokens of a translation (default: 64)")
            one.add_argument("--early-stopping", default="never", help="of transformers (default: never, as here)")
        if name == "translate":
            one.add_argument("--output", required=True, help="file for the translations")
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
