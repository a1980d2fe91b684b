"""The same training of a `Transformer` on one device, on two and in two processes."""

import functools

import pytest
from distributed_training import FAST_TO_COMPILE, assert_same, train_in_processes, without_accumulation

# Few trainings, each with several features that could disturb each other.
CASES = {
    "clip, ragged, XLA": {"clip_norm": 0.1, "rows": 13, "jit_compile": True},
    "accumulate, clip, ragged, teacher": {
        **{"gradient_accumulation_steps": 3, "clip_norm": 0.1, "rows": 13},
        "teacher_weight": 0.3,
    },
    # Adam divides by the size of a gradient. With a small epsilon it makes whole steps of the rounding of small ones.
    "float16": {"dtype": "mixed_float16", "gradient_accumulation_steps": 2, "epsilon": 1e-2},
}
# Weights move by 0.01 a step. Rounding in half precision depends on the order of additions.
TOLERANCE = {"float16": 1e-3}


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A function: what a case gives on one device, by Keras' own training step."""

    @functools.cache
    def trained(name):
        folder = tmp_path_factory.mktemp("one") / "x"
        return train_in_processes("one", folder, {name: without_accumulation(CASES[name])})["one", name]

    return trained


@pytest.mark.parametrize("kind", ["multi_worker", "mirrored", "one"])
def test_every_strategy_ends_with_the_weights_of_one_device(kind, one, tmp_path):
    cases = {name: case for name, case in CASES.items() if kind != "one" or "gradient_accumulation_steps" in case}
    for (_, name), found in train_in_processes(kind, tmp_path / "x", cases).items():
        assert_same(found, one(name), TOLERANCE.get(name, 1e-5), name)


def test_a_training_whose_number_of_workers_changes_ends_with_the_weights_of_one_that_does_not(tmp_path):
    ends = {}
    for name, kinds in (("two", ["multi_worker"] * 3), ("two, one, two", ["multi_worker", "one", "multi_worker"])):
        begin = None
        for number, kind in enumerate(kinds):
            folder = tmp_path / f"{name} {number}"
            found = train_in_processes(kind, folder, {"part": {"clip_norm": 0.1, "rows": 13, "begin": begin}})
            begin = str(folder / f"{kind}, part.npz")
        ends[name] = found[kind, "part"]
    assert_same(ends["two, one, two"], ends["two"])
    first = train_in_processes("one", tmp_path / "x", {"part": {"rows": 13}})["one", "part"]
    assert ends["two"][1]["loss"][-1] < first[1]["loss"][-1]  # The third part did not begin again.


@pytest.mark.parametrize(("count", "kind"), [(2, "auto"), (8, "auto"), (8, "model_parallel")])
def test_jax_with_several_devices_ends_with_the_weights_of_one(tmp_path, count, kind):
    # With as many threads as cores, two devices can wait for each other on a busy machine until XLA gives up.
    flags = f"{FAST_TO_COMPILE} --xla_force_host_platform_device_count={count}"
    environment = {"KERAS_BACKEND": "jax", "XLA_FLAGS": flags, "NPROC": "16", "PJRT_NPROC": "16"}
    case = {"jax": {"clip_norm": 0.1, "rows": 32, "batch_size": 8}}
    found = train_in_processes(f"one,{kind}", tmp_path / "x", case, **environment)
    assert_same(found[kind, "jax"], found["one", "jax"])
