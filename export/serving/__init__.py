"""A translator in TensorFlow Serving: clients, and files for its deployment in the same folder."""

# With models of up to this width, one sentence is 1.4 to 5 times as fast without oneDNN: its kernels take longer to
# begin. Batches of wider models are faster with it. Measured on two cores, see "Translation speed" in
# docs/benchmarks.md.
WIDTH_WITHOUT_ONEDNN = 256


def server_environment(hidden_dim: int) -> dict[str, str]:
    """The environment variables with which a server answers fastest, for a model of this width.

    Example:
        >>> server_environment(128)
        {'TF_ENABLE_ONEDNN_OPTS': '0'}
    """
    return {"TF_ENABLE_ONEDNN_OPTS": "0" if hidden_dim <= WIDTH_WITHOUT_ONEDNN else "1"}
