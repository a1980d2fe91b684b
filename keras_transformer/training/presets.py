"""Values of settings that belong together: sizes of models, recipes of data sets, fine-tuning."""

# Sizes: `base` and `big` are those of the paper (table 3), `tiny` is common for Multi30k. The mobile ones are students:
# translating runs the encoder once and the decoder for every token, so a shallow decoder saves most of the time
# ("Deep Encoder, Shallow Decoder", Kasai et al., 2021).
_MOBILE = {"num_layers": 6, "num_decoder_layers": 2, "dropout": 0.1}
PRESETS = {
    "tiny": {"num_layers": 4, "num_heads": 4, "hidden_dim": 128, "intermediate_dim": 256, "dropout": 0.3},
    "small": {"num_layers": 6, "num_heads": 4, "hidden_dim": 256, "intermediate_dim": 1024, "dropout": 0.2},
    "base": {"num_layers": 6, "num_heads": 8, "hidden_dim": 512, "intermediate_dim": 2048, "dropout": 0.1},
    "big": {"num_layers": 6, "num_heads": 16, "hidden_dim": 1024, "intermediate_dim": 4096, "dropout": 0.3},
    "mobile": {**_MOBILE, "num_heads": 4, "hidden_dim": 128, "intermediate_dim": 256},
    "mobile-base": {**_MOBILE, "num_heads": 8, "hidden_dim": 256, "intermediate_dim": 1024},
}

# The settings in which a data set differs from the defaults. Small corpora need small batches. On Multi30k's validation
# text, where hypotheses are too short, a length penalty of 1 is up to 0.5 BLEU better than 0.6.
_SMALL = {"subword_sampling": 0.5, "tokens_per_batch": 1024, "num_beams": 5, "length_penalty": 1.0}
RECIPES = {
    "phrasebook": {"epochs": 10, "dropout": 0.1, "tokens_per_batch": 1024},
    "multi30k": {"vocabulary_size": 5000, "epochs": 25, "dropout": 0.15, **_SMALL},
    "libreoffice": {"vocabulary_size": 8000, "epochs": 12, "dropout": 0.1, "clean": True, **_SMALL},
    "none": {},
}
# Peaks of the learning rate for a `hidden_dim` of 1: 0.0025 for the tiny preset, 0.000625 for the paper's base model.
# Low-rank updates begin at 0, and learn slowly with a rate for whole matrices.
PEAK_RATE, FINE_TUNING_RATE, LOW_RANK_RATE = 0.32, 0.064, 1.28
# How fine-tuning differs from the defaults.
FINE_TUNING = {"epochs": 5, "tokens_per_batch": 2048}
# What a fine-tuned model may have of its own; the rest of its architecture and its vocabulary are given.
OWN_TO_FINE_TUNING = ("dropout", "attention_dropout", "dtype")
