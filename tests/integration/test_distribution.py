"""The same training on one device and in two processes; tests/slow has it of a `Transformer`, and on two devices."""

from distributed_training import assert_same, train, train_in_processes, without_accumulation


def test_two_workers_end_with_the_weights_of_one_device(tmp_path):
    """Also of the optimizer, and with the same losses and metrics; one training with all that could disturb."""
    case = {"gradient_accumulation_steps": 3, "clip_norm": 0.1, "rows": 13, "teacher_weight": 0.3}
    case["bigrams"] = True
    found = train_in_processes("multi_worker", tmp_path / "x", {"small": case})["multi_worker", "small"]
    assert_same(found, train(**without_accumulation(case)))
