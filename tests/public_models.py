"""Small public models made here: folders of transformers and of Marian, with random weights and real tokenizers."""

import json

import keras
import numpy as np
from sentencepiece_models import joint_tokens, trained

from keras_transformer.transfer import importing
from keras_transformer.transfer.importing import vocabulary
from keras_transformer.translation.translator import Translator

SMALL = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 11,
    "decoder_ffn_dim": 11,
    "max_position_embeddings": 128,
}


def parsed(models):
    return [vocabulary.parse(model, "model") for model in models]


def random_weights(model, seed=0):
    """Weights with a spread, so that no two logits are close; biases and gains are not 0 and 1."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:  # The table of sinusoids.
                continue
            scale = 0.3 if parameter.ndim > 1 else 0.2
            noise = torch.randn(parameter.shape, generator=generator) * scale
            parameter.copy_(noise + (1.0 if "layer_norm.weight" in name else 0.0))
        if not hasattr(model, "final_logits_bias"):
            return model
        model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape, generator=generator))
        start = model.config.decoder_start_token_id
        model.final_logits_bias[0, start] = 0
        model.get_input_embeddings().weight[start] = 0
    return model


def transformers_folder(
    folder, spm=None, separate=False, dtype="float32", pickle=False, tags=(), start_logit=0.0, generation=(), **config
):
    """A `MarianMTModel` and its files in `folder`; returns the model and its tokenizer.

    The start token's logit is always `start_logit`; `generation` changes the settings of the search.
    """
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    spm = spm or [trained(side) for side in (0, 1)]
    lists = [joint_tokens(parsed([one]), tags) for one in spm] if separate else [joint_tokens(parsed(spm), tags)]
    for tokens in lists:  # Both need the same padding id.
        tokens[-1:] = [f"filler{i}" for i in range(max(map(len, lists)) - len(tokens))] + ["<pad>"]
    for name, content in zip(("source.spm", "target.spm"), spm, strict=True):
        (folder / name).write_bytes(content)
    for name, tokens in zip(("vocab.json", "target_vocab.json"), lists, strict=False):
        ids = {token: i for i, token in enumerate(tokens)}
        (folder / name).write_text(json.dumps(ids), encoding="utf-8")
    start = len(lists[-1]) - 1
    settings = {
        **SMALL,
        "vocab_size": len(lists[0]),
        "decoder_vocab_size": len(lists[-1]),
        "share_encoder_decoder_embeddings": not separate,
        "activation_function": "swish",
        "scale_embedding": True,
        "pad_token_id": start,
        "decoder_start_token_id": start,
        "eos_token_id": 0,
        "forced_eos_token_id": None,
        **config,
    }
    model = random_weights(MarianMTModel(MarianConfig(**settings)).eval())
    model.final_logits_bias[0, start] = start_logit
    search = {"num_beams": 4, "max_length": 40, "bad_words_ids": [[start]], "length_penalty": 1.0}
    model.generation_config.update(**{**search, "forced_eos_token_id": None, **dict(generation)})
    model = model.to(getattr(torch, dtype))
    model.save_pretrained(folder)
    if pickle:
        state = {name: tensor for name, tensor in model.state_dict().items() if "embed_positions" not in name}
        torch.save(state, folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    files = [str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")]
    own = {"target_vocab_file": str(folder / "target_vocab.json"), "separate_vocabs": True} if separate else {}
    tokenizer = MarianTokenizer(*files, source_lang="en", target_lang="de", **own)
    return MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval(), tokenizer


def marian_folder(folder, pre_norm=False, tied="all", learned=False, activation="swish", options=(), seed=0):
    """A Marian release in `folder`: an .npz of random weights, vocabularies, decoder.yml and SentencePiece files."""
    import yaml

    folder.mkdir(parents=True, exist_ok=True)
    spm = [trained(side) for side in (0, 1)]
    tokens = joint_tokens(parsed(spm), pad=False)
    size, ffn, depths, count = 16, 11, (2, 3), len(tokens)
    rng = np.random.default_rng(seed)

    def matrix(*shape):
        return (0.3 * rng.normal(size=shape)).astype("float32")

    arrays = {"decoder_ff_logit_out_b": matrix(1, count)}
    if tied == "all":
        arrays["Wemb"] = matrix(count, size)
    else:
        arrays.update(encoder_Wemb=matrix(count, size), decoder_Wemb=matrix(count, size))
    if tied == "none":
        arrays["decoder_ff_logit_out_W"] = matrix(size, count)
    if learned:
        arrays["Wpos"] = matrix(50, size)

    def norm(name, suffix="_pre" if pre_norm else ""):
        arrays[f"{name}_ln_scale{suffix}"] = 1 + matrix(1, size)
        arrays[f"{name}_ln_bias{suffix}"] = matrix(1, size)

    for side, depth in zip(("encoder", "decoder"), depths, strict=True):
        for i in range(1, depth + 1):
            for kind in ("self", "context")[: 1 + (side == "decoder")]:
                for x in "qkvo":
                    arrays[f"{side}_l{i}_{kind}_W{x}"] = matrix(size, size)
                    arrays[f"{side}_l{i}_{kind}_b{x}"] = matrix(1, size)
                norm(f"{side}_l{i}_{kind}_Wo")
            for x, shape in (("1", (size, ffn)), ("2", (ffn, size))):
                arrays[f"{side}_l{i}_ffn_W{x}"] = matrix(*shape)
                arrays[f"{side}_l{i}_ffn_b{x}"] = matrix(1, shape[1])
            norm(f"{side}_l{i}_ffn_ffn")
        if pre_norm:
            norm(f"{side}_top", "")
    steps = ("n", "da", "n") if pre_norm else ("", "dan", "")
    config = {
        "type": "transformer",
        "dim-emb": size,
        "enc-depth": depths[0],
        "dec-depth": depths[1],
        "transformer-heads": 2,
        "transformer-dim-ffn": ffn,
        "transformer-ffn-activation": activation,
        "transformer-decoder-autoreg": "self-attention",
        "transformer-no-projection": False,
        "transformer-train-positions": learned,
        "transformer-postprocess-emb": "d",
        "transformer-guided-alignment-layer": "last",
        **dict(
            zip(
                ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top"), steps, strict=True
            )
        ),
        **dict(options),
    }
    text = yaml.safe_dump(config).encode() + b"\0"
    arrays["special:model.yml"] = np.frombuffer(text, "int8")
    np.savez(folder / "model.npz", **arrays)
    lines = [f"{json.dumps(token, ensure_ascii=False)}: {i}\n" for i, token in enumerate(tokens)]
    (folder / "opus.vocab.yml").write_text("".join(lines), encoding="utf-8")
    decoder = {"models": ["model.npz"], "vocabs": ["opus.vocab.yml"] * 2, "beam-size": 3, "normalize": 1}
    (folder / "decoder.yml").write_text(yaml.safe_dump(decoder))
    for name, content in zip(("source.spm", "target.spm"), spm, strict=True):
        (folder / name).write_bytes(content)
    return tokens


def m2m_100_folder(folder, nllb=False, kind="bpe", **config):
    """An `M2M100ForConditionalGeneration` and its files in `folder`; returns the model and its tokenizer."""
    import torch
    from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer, NllbTokenizer
    from transformers.convert_slow_tokenizer import generate_merges

    folder.mkdir(parents=True, exist_ok=True)
    spm = trained(None, kind)
    (folder / "sentencepiece.bpe.model").write_bytes(spm)
    pieces = vocabulary.pieces_of(vocabulary.parse(spm, "model"))
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece, _, _ in pieces[3:])]
    tokens = {token: i for i, token in enumerate(tokens)}
    if nllb:
        # In the order of their scores, in which SentencePiece merges; pieces that are not words have no merges.
        scores = {piece: score for piece, score, _ in pieces[3:]}
        merges = generate_merges(dict.fromkeys(scores, 0), scores)
        charsmap = vocabulary.parse(spm, "model").normalizer_spec.precompiled_charsmap
        languages = {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn"}
        tokenizer = NllbTokenizer(tokens, merges, **languages, _spm_precompiled_charsmap=charsmap)
        size = len(tokenizer) + 2
    else:
        (folder / "vocab.json").write_text(json.dumps(tokens), encoding="utf-8")
        files = (str(folder / name) for name in ("vocab.json", "sentencepiece.bpe.model"))
        tokenizer = M2M100Tokenizer(*files, src_lang="en", tgt_lang="de")
        size = len(tokens) + 108
    settings = {**SMALL, "vocab_size": size, "max_length": None, **config}
    model = random_weights(M2M100ForConditionalGeneration(M2M100Config(**settings)).eval())
    model.generation_config.update(num_beams=4, max_length=40, length_penalty=1.0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return M2M100ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval(), tokenizer


# Of the tests of M2M-100 and NLLB.
SOURCES = ["The cat is on the table.", "My sister buys a red coat tomorrow.", "Hello?", "a"]
LANGUAGES = {"source_language": "en", "target_language": "de"}
NLLB = {"source_language": "eng_Latn", "target_language": "deu_Latn"}


def translator_of(imported, **settings):
    """The translator of an imported model of many languages, without limits that its random weights would reach."""
    data = imported.config.data
    return Translator(
        imported.model,
        *imported.tokenizers,
        source_language=data.source_language,
        target_language=data.target_language,
        **{**vars(imported.config.search), "max_length_ratio": 99.0, "max_target_length": 23, **settings},
    )


def assert_saved_as_built(imported, folder):
    """Keras alone loads the file; its weights and settings are those of the model that is built in memory."""
    run = importing.write(imported, folder)
    loaded = keras.saving.load_model(run.model_file, compile=False)
    expected = {**imported.model.get_config(), "name": loaded.name}
    assert loaded.get_config() == expected
    for weight, other in zip(loaded.weights, imported.model.weights, strict=True):
        assert weight.dtype == "float32" and weight.path.split("/")[1:] == other.path.split("/")[1:]
        np.testing.assert_array_equal(weight, other)
    assert imported.num_weights() == loaded.count_params()
    return run
