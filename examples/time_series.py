"""Forecasts time series with the layers alone: no tokens, no vocabulary, no search.

    python examples/time_series.py

Each shop sells more on some days of the week than on others, and its sales slowly rise and fall. An encoder reads the
sales of the past six weeks, or of fewer if the shop is new; a decoder forecasts two weeks, day by day. The numbers are
made here: weekly pattern, trend and noise. What is forecast in the end comes after all that training saw.

It prints the mean absolute error of the model beside those of two naive forecasts. The model's error is 15 to 20 %
lower than that of the better one, which repeats the last week. This takes a minute on two cores.
"""

import argparse

import keras
import numpy as np

import keras_transformer as kt

SHOPS, DAYS, PAST, FUTURE, WEEK = 300, 300, 42, 14, 7
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--epochs", type=int, default=10)
arguments = parser.parse_args()
keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
pattern = rng.normal(size=(SHOPS, WEEK))[:, np.arange(DAYS) % WEEK]
trend = rng.normal(scale=0.002, size=(SHOPS, DAYS)).cumsum(axis=1).cumsum(axis=1)
sales = 20 + 5 * (pattern + trend + rng.normal(scale=0.5, size=(SHOPS, DAYS)))


def windows(sales, begin):
    """Inputs, labels, values and scales of windows that begin on the days `begin` (B,) of `sales` (B, DAYS)."""
    day = begin[:, None] + np.arange(PAST + FUTURE)
    values = np.take_along_axis(sales, day, axis=1)  # (B, PAST + FUTURE)
    known = np.arange(PAST) >= rng.integers(0, PAST // 2, len(begin))[:, None]  # False before a new shop opened.
    past = values[:, :PAST]
    mean, deviation = past.mean(1, where=known)[:, None], past.std(1, where=known)[:, None]
    scaled = (values - mean) / deviation  # So that one model fits small and large shops.
    weekday = keras.utils.to_categorical(day % WEEK, WEEK)
    past = np.concatenate([scaled[:, :PAST, None], weekday[:, :PAST]], axis=-1) * known[..., None]
    # To forecast a day, the decoder sees which weekday it is, and the sales of the day before.
    future = np.concatenate([scaled[:, PAST - 1 : -1, None], weekday[:, PAST:]], axis=-1)
    return {"past": past, "future": future}, scaled[:, PAST:, None], values, mean, deviation


# The model. `Masking` marks days that are all zeros as padding. The layers pass the mask on: nothing attends to them.
inputs = {name: keras.Input((None, 1 + WEEK), name=name) for name in ("past", "future")}
settings = {"num_heads": 4, "intermediate_dim": 64, "normalize_first": True}
positions = kt.PositionalEmbedding(vocabulary_size=None, hidden_dim=32)
x = positions(keras.layers.Dense(32)(keras.layers.Masking()(inputs["past"])))
for _ in range(2):
    x = kt.EncoderBlock(**settings)(x)
y = positions(keras.layers.Dense(32)(inputs["future"]), start_index=PAST)
for _ in range(2):
    y = kt.DecoderBlock(**settings)(y, x)
model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.LayerNormalization()(y)))
model.compile(keras.optimizers.Adam(2e-3), loss="mae")

# Training: 20 windows of each shop, at random places before the last two weeks.
shops = np.repeat(np.arange(SHOPS), 20)
x, y, *_ = windows(sales[shops], rng.integers(0, DAYS - PAST - 2 * FUTURE + 1, len(shops)))
model.fit(x, y, batch_size=64, epochs=arguments.epochs, verbose=2)

# The last two weeks of each shop: each forecast becomes the decoder's input for the next day.
x, _, values, mean, deviation = windows(sales, np.full(SHOPS, DAYS - PAST - FUTURE))
x["future"][:, 1:, 0] = 0  # Not known yet.
for day in range(FUTURE):
    forecast = model.predict(x, verbose=0)[..., 0]  # (B, FUTURE), final up to this day.
    x["future"][:, day + 1 : day + 2, 0] = forecast[:, day : day + 1]
past, true = np.split(values, [PAST], axis=1)
for name, sales in {
    "the last day again": past[:, -1:],
    "the last week again": np.tile(past[:, -WEEK:], FUTURE // WEEK),
    "Transformer": forecast * deviation + mean,
}.items():
    print(f"mean absolute error, {name}: {np.abs(sales - true).mean():.2f}")
