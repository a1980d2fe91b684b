"""The encoder-decoder Transformer as a Keras functional model, with methods for cached decoding.

Reference: "Attention Is All You Need" (Vaswani et al., 2017), section 3 and figure 1.
"""

from functools import partial
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.layers import masks
from keras_transformer.layers.base import Activation, Tensor, even_shares, positive_integer, rate
from keras_transformer.layers.decoder_block import DecoderBlock
from keras_transformer.layers.embeddings import PositionalEmbedding
from keras_transformer.layers.encoder_block import EncoderBlock
from keras_transformer.models.decoding import Decoder
from keras_transformer.models.distributed_fit import DistributedFit
from keras_transformer.settings import TIE_EMBEDDINGS, one_of


class AttentionScores(NamedTuple):
    """Attention scores of a batch: lists with one tensor per block.

    Attributes:
        encoder: encoder self-attention, (B, N, S, S) each.
        decoder: decoder self-attention, (B, N, T, T) each.
        cross: cross-attention, (B, N, T, S) each.
    """

    encoder: list
    decoder: list
    cross: list


# Arguments of a `Transformer` that its layers take, too.
OF_EMBEDDINGS = ("hidden_dim", "position_type", "max_length", "max_wavelength", "layout", "first_position", "dropout")
OF_EMBEDDINGS += ("scale_embeddings", "output_bias")
OF_BLOCKS = ("num_heads", "intermediate_dim", "dropout", "attention_dropout", "normalize_first", "layer_norm_epsilon")


@keras.saving.register_keras_serializable(package="keras_transformer")
class Transformer(DistributedFit, keras.Model):
    """A functional model from `encoder_token_ids` (B, S) and `decoder_token_ids` (B, T) to logits (B, T, V).

    `decoder_token_ids` is the target shifted right: it begins with the start token. Padding, id 0, is always masked.
    The defaults are the paper's base model.

    Args:
        vocabulary_size: number of token ids of the source, and of the target unless `target_vocabulary_size` is given.
        target_vocabulary_size: number of token ids of the target. Defaults to `vocabulary_size`.
        num_layers: number of encoder blocks. Defaults to 6.
        num_decoder_layers: number of decoder blocks. Defaults to `num_layers`.
        num_heads: number of attention heads. Defaults to 8.
        hidden_dim: width of the model, D. Defaults to 512.
        intermediate_dim: width of the feed-forward sublayers. Defaults to 2048.
        dropout: rate in [0, 1) on embeddings and on every sublayer's output. Defaults to 0.1.
        attention_dropout: rate in [0, 1) on the attention scores. Defaults to 0.
        activation: any Keras activation, for the feed-forward sublayers. Defaults to `"relu"`.
        normalize_first: pre-norm if True, post-norm as in the paper if False. Defaults to False.
        layer_norm_epsilon: Defaults to 1e-6.
        tie_embeddings: `"all"` uses one matrix for both embeddings and the pre-softmax projection (section 3.4; needs
            a shared vocabulary). `"target"` uses one for the target embedding and the projection. `"none"` uses three
            matrices. Defaults to `"all"`.
        position_type: `"sinusoidal"` or `"learned"`. Defaults to `"sinusoidal"`.
        max_length: number of learned positions. Sinusoidal positions do not need it and have no limit.
        layout, max_wavelength: of sinusoidal positions, see `keras_transformer.positional_encoding`. Default to
            `"interleaved"` and 10000.
        first_position: sinusoidal position of the first token. Defaults to 0.
        scale_embeddings: whether token embeddings are multiplied by sqrt(hidden_dim). Defaults to True.
        output_bias: whether the pre-softmax projection has a bias. Defaults to False.
        source_language_token_id: token of the source language, for models that translate into many languages as M2M-100
            does. The first id of a source is then the tag of the target language. The encoder reads this token in its
            place, and the translation begins with the tag, which must have the same id in both vocabularies. Defaults
            to None: the encoder reads all ids as they are.
        **kwargs: `name` and `dtype`, a dtype policy such as `"mixed_bfloat16"`.

    Call arguments:
        inputs: a dict with `encoder_token_ids` (B, S) and `decoder_token_ids` (B, T), or a list or tuple of the two in
            this order. `fit`, `evaluate` and `predict` take the same. A call also takes them as two arguments.
        training: whether dropout is active.

    Returns:
        Logits (B, T, V).

    Example:
        >>> model = Transformer(vocabulary_size=100, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
        >>> model({"encoder_token_ids": np.array([[5, 6, 3]]), "decoder_token_ids": np.array([[2, 7]])}).shape
        TensorShape([1, 2, 100])
    """

    encoder_block_class, decoder_block_class = EncoderBlock, DecoderBlock  # A subclass may set other classes.

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        num_layers: int = 6,
        num_decoder_layers: int | None = None,
        num_heads: int = 8,
        hidden_dim: int = 512,
        intermediate_dim: int = 2048,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation: Activation = "relu",
        normalize_first: bool = False,
        layer_norm_epsilon: float = 1e-6,
        tie_embeddings: str = "all",
        position_type: str = "sinusoidal",
        max_length: int | None = None,
        layout: str = "interleaved",
        max_wavelength: float = 10000,
        first_position: int = 0,
        scale_embeddings: bool = True,
        output_bias: bool = False,
        source_language_token_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs,
    ):
        config = {key: value for key, value in locals().items() if key not in ("self", "kwargs", "__class__")}
        config = _checked(config)
        activation = keras.activations.get(activation)
        dtype = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        target_vocabulary_size = target_vocabulary_size or vocabulary_size
        classes = self.encoder_block_class, self.decoder_block_class
        layers = _layers(classes, {**config, "target_vocabulary_size": target_vocabulary_size}, activation, dtype)
        encoder_token_ids = keras.Input((None,), dtype="int32", name="encoder_token_ids")
        decoder_token_ids = keras.Input((None,), dtype="int32", name="decoder_token_ids")
        x = layers["encoder_embedding"](_with_language(encoder_token_ids, source_language_token_id))
        encoder_sequence = _through(layers["encoder_blocks"], layers["encoder_norm"], x)
        x = layers["decoder_embedding"](decoder_token_ids)
        x = _through(layers["decoder_blocks"], layers["decoder_norm"], x, encoder_sequence)
        super().__init__(
            inputs={"encoder_token_ids": encoder_token_ids, "decoder_token_ids": decoder_token_ids},
            outputs=layers["decoder_embedding"].project(x),
            name=name,
            **kwargs,
        )
        self._config = {
            **config,
            "name": self.name,
            "activation": keras.activations.serialize(activation),
            "dtype": keras.dtype_policies.serialize(dtype),
        }
        self.encoder_embedding, self.decoder_embedding = layers["encoder_embedding"], layers["decoder_embedding"]
        self.encoder_blocks, self.decoder_blocks = layers["encoder_blocks"], layers["decoder_blocks"]
        self.encoder_norm, self.decoder_norm = layers["encoder_norm"], layers["decoder_norm"]
        self.dtype_policy = dtype
        self.max_length = max_length if position_type == "learned" else None
        self.source_language_token_id = source_language_token_id
        self.vocabulary_size, self.target_vocabulary_size = vocabulary_size, target_vocabulary_size

    def __call__(self, inputs, *args, **kwargs):
        if args and hasattr(args[0], "shape"):
            inputs, args = (inputs, args[0]), args[1:]
        return super().__call__(_by_name(inputs), *args, **kwargs)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None):
        # On JAX, `fit` calls this without `__call__`.
        return super().call(_by_name(inputs), training=training, mask=mask)

    def get_config(self):
        config = dict(self._config)
        frozen = [layer.name for layer in self.layers if layer.weights and not layer.trainable]
        if not self.trainable:
            config["trainable"] = False
        elif frozen:
            config["frozen_layers"] = frozen
        return config

    @classmethod
    def from_config(cls, config: dict):
        # Older files have a `pad_token_id`.
        pad_token_id = config.get("pad_token_id", 0)
        if pad_token_id != 0:
            raise ValueError(
                "Padding is id 0 for data, search and exports, so a `Transformer` has no `pad_token_id`. Received: a "
                f"saved model with pad_token_id={pad_token_id}. Swap rows 0 and {pad_token_id} of its embeddings."
            )
        model = cls(**{key: value for key, value in config.items() if key not in ("pad_token_id", "frozen_layers")})
        for name in config.get("frozen_layers", ()):
            model.get_layer(name).trainable = False
        return model

    @staticmethod
    def get_layout_map(
        device_mesh: keras.distribution.DeviceMesh, model_parallel_dim_name: str = "model"
    ) -> keras.distribution.LayoutMap:
        """How `keras.distribution.ModelParallel` divides the weights among devices, on the JAX backend.

        Of two dense layers in a row, the first is divided by its outputs and the second by its inputs ("Megatron-LM",
        Shoeybi et al., 2019, section 3). Embeddings are divided by `hidden_dim`, so that any vocabulary fits. All
        other weights are on every device.

        Args:
            device_mesh: a mesh of devices. The size of its axis for models must divide `hidden_dim` and
                `intermediate_dim`.
            model_parallel_dim_name: the name of this axis. Defaults to `"model"`.

        Example:
            >>> mesh = keras.distribution.DeviceMesh((1, 1), ("batch", "model"), ["cpu:0"])
            >>> Transformer.get_layout_map(mesh)["decoder_block_0/feed_forward/intermediate/kernel"].axes
            (None, 'model')
        """
        layout_map, axis = keras.distribution.LayoutMap(device_mesh), model_parallel_dim_name
        layout_map[".*/(query|key_value|query_key_value|intermediate)/kernel"] = (None, axis)
        layout_map[".*/(query|key_value|query_key_value|intermediate)/bias"] = (axis,)
        layout_map[".*/output/kernel"] = layout_map[".*/reverse_embeddings"] = (axis, None)
        layout_map[".*/token_embedding/embeddings"] = (None, axis)
        return layout_map

    def quantize(self, mode: str, **kwargs) -> None:
        """Not supported: search and saved files use the unquantized weights. Quantize when you export."""
        raise ValueError(
            f"A `Transformer` is not quantized in Python. Received: mode={mode!r}. For small files, export the run: "
            "python -m keras_transformer export tflite RUN --quantize int8."
        )

    def attention_scores(self, encoder_token_ids: Tensor, decoder_token_ids: Tensor) -> AttentionScores:
        """The attention scores of every head of every layer.

        Args:
            encoder_token_ids: (B, S).
            decoder_token_ids: (B, T), the target shifted right.

        Returns:
            `AttentionScores`.
        """
        scores = AttentionScores([], [], [])
        encoder_mask = masks.padding_mask(encoder_token_ids)
        encoder_sequence = _through(
            self.encoder_blocks,
            self.encoder_norm,
            self._embed_source(encoder_token_ids),
            scores=[scores.encoder],
            mask=encoder_mask,
        )
        _through(
            self.decoder_blocks,
            None,  # The scores do not depend on the last normalisation.
            self.decoder_embedding(decoder_token_ids),
            encoder_sequence,
            scores=[scores.decoder, scores.cross],
            decoder_sequence_mask=masks.padding_mask(decoder_token_ids),
            encoder_sequence_mask=encoder_mask,
        )
        return scores

    # Translation runs the encoder once and the decoder once per position.

    def encode(self, encoder_token_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Runs the encoder.

        Args:
            encoder_token_ids: (B, S).

        Returns:
            The encoder sequence (B, S, D) and the padding mask (B, S).
        """
        x = self._embed_source(encoder_token_ids)
        padding_mask = masks.padding_mask(encoder_token_ids)
        return _through(self.encoder_blocks, self.encoder_norm, x, mask=padding_mask), padding_mask

    def _embed_source(self, encoder_token_ids):
        return self.encoder_embedding(_with_language(encoder_token_ids, self.source_language_token_id))

    def init_cache(self, batch_size: Any, length: Any = 0, num_beams: int = 1, cache: str = "growing") -> list:
        """An empty cache for the self-attention of each decoder block, see `MultiHeadAttention.init_cache`."""
        blocks = self.decoder_blocks
        return [block.self_attention.init_cache(batch_size, length, num_beams, cache) for block in blocks]

    def init_cross_cache(self, encoder_sequence: Tensor, padding_mask: Tensor) -> tuple[list, Tensor]:
        """Keys, values and mask of the source, which every decoding step reads.

        Args:
            encoder_sequence: (B, S, D), from `encode`.
            padding_mask: (B, S), from `encode`.

        Returns:
            For each decoder block, keys (B * N, H, S) and values (B * N, S, H). Then the bias (B * N, 1, S), which all
            blocks share.
        """
        num_heads = self.decoder_blocks[0].num_heads
        bias = ops.repeat(masks.bias(padding_mask)[:, None], num_heads, axis=0)
        layers = [block.cross_attention for block in self.decoder_blocks]
        return [layer.project_value(encoder_sequence, padding_mask) for layer in layers], bias

    def decode_step(
        self,
        token_ids: Tensor,
        cache: Any,
        cache_update_index: Tensor,
        cross_cache: Any,
        ancestors: Tensor | None = None,
        output_kernel: Tensor | None = None,
    ) -> tuple[Tensor, list]:
        """Logits of the next token, from the newest token and the caches.

        Args:
            token_ids: (B * K,), the token at position `cache_update_index` of every beam. The K beams of a sentence are
                adjacent.
            cache: from `init_cache`, or from the step before.
            cache_update_index: scalar integer, 0 for the start token.
            cross_cache: from `init_cross_cache`.
            ancestors: (B, K, L): for each beam and each position up to the newest, the beam whose row of the cache it
                reads. Defaults to None: there is one beam.
            output_kernel: `PositionalEmbedding.output_kernel` of the decoder's embedding. Defaults to None: `project`.

        Returns:
            Logits (B * K, V) and the updated cache.
        """
        x, cache = self.decode_hidden(token_ids, cache, cache_update_index, cross_cache, ancestors)
        return self.decoder_embedding.project(x, output_kernel), cache

    def decode_hidden(
        self,
        token_ids: Tensor,
        cache: Any,
        cache_update_index: Tensor,
        cross_cache: Any,
        ancestors: Tensor | None = None,
    ) -> tuple[Tensor, list]:
        """`decode_step` without the projection: hidden states (B * K, D) and the updated cache."""
        x = self.decoder_embedding(ops.expand_dims(token_ids, 1), start_index=cache_update_index)
        x = ops.squeeze(x, axis=1)  # Not `x[:, 0]`: LiteRT's GPU accelerator has no slices that drop an axis.
        num_beams = 1 if ancestors is None else ancestors.shape[1]
        cross_cache, cross_bias = cross_cache
        mask = cache[0].mask(cache_update_index, ancestors)
        self_bias = None if mask is None else masks.bias(mask)
        if num_beams > 1:  # Once for all blocks: the number of operations decides the time of a step.
            heads = ops.zeros((1, self.decoder_blocks[0].num_heads, 1, 1))
            self_bias = ops.reshape(self_bias + heads, (-1, num_beams, ops.shape(mask)[-1]))  # (B * N, K, L * K)
        new_cache = []
        for block, block_cache, block_cross_cache in zip(self.decoder_blocks, cache, cross_cache, strict=True):
            x, block_cache = block.decode_step(
                x, block_cache, cache_update_index, block_cross_cache, self_bias, cross_bias, num_beams
            )
            new_cache.append(block_cache)
        return self.decoder_norm(x) if self.decoder_norm else x, new_cache

    def start_decoding(
        self,
        encoder_token_ids: Tensor,
        max_length: Any,
        num_beams: int = 1,
        cache: str = "growing",
        output_kernel: Tensor | None = None,
    ) -> Decoder:
        """The decoder of a batch of sources, for the search functions of `keras_transformer.search.decoder`.

        Args:
            encoder_token_ids: (B, S); each row ends with the end token.
            max_length: maximum number of tokens per sentence, including the end token. `Decoder.lengthen` raises it.
            num_beams: K. Defaults to 1.
            cache: `"growing"` or `"fixed"`, see `keras_transformer.layers.caches`. Defaults to `"growing"`. JAX
                compiles loops only with `"fixed"`.
            output_kernel: see `decode_step`. Defaults to `PositionalEmbedding.output_kernel` where it saves time.

        Returns:
            A `Decoder`.
        """
        return Decoder(self, encoder_token_ids, max_length, num_beams, cache, output_kernel)


def _layers(block_classes, config, activation, dtype):
    """The layers of a `Transformer` by the names of its attributes, which cannot be set before it is made of them."""
    of_embeddings = {name: config[name] for name in OF_EMBEDDINGS}
    embedding = partial(PositionalEmbedding, **of_embeddings, dtype=dtype)
    of_blocks = {**{name: config[name] for name in OF_BLOCKS}, "activation": activation, "dtype": dtype}
    layers = {}
    if config["tie_embeddings"] == "all":
        layers["encoder_embedding"] = embedding(config["vocabulary_size"], name="embedding")
        layers["decoder_embedding"] = layers["encoder_embedding"]
    else:
        tied = config["tie_embeddings"] == "target"
        layers["encoder_embedding"] = embedding(config["vocabulary_size"], output_bias=False, name="encoder_embedding")
        layers["decoder_embedding"] = embedding(
            config["target_vocabulary_size"], name="decoder_embedding", tie_weights=tied
        )
    numbers = config["num_layers"], config["num_decoder_layers"] or config["num_layers"]
    for side, cls, number in zip(("encoder", "decoder"), block_classes, numbers, strict=True):
        layers[f"{side}_blocks"] = [cls(name=f"{side}_block_{i}", **of_blocks) for i in range(number)]
        # With pre-norm the sum of all residuals is not normalised yet; with post-norm it is.
        name = f"{side}_norm"
        layers[name] = cls.make_norm(config["layer_norm_epsilon"], dtype, name) if config["normalize_first"] else None
    return layers


def _through(blocks, norm, x, *sequences, scores=(), **padding_masks):
    """Runs the blocks of an encoder or a decoder, (B, L, D) -> (B, L, D).

    Args:
        blocks: the blocks.
        norm: the layer after the last block, or None.
        x: (B, L, D).
        *sequences: further inputs of every block.
        scores: one list per kind of attention scores; each block appends its own. Defaults to (): no scores.
        **padding_masks: masks for every block.
    """
    for block in blocks:
        if scores:
            x, *new = block(x, *sequences, return_attention_scores=True, **padding_masks)
            for so_far, scores_of_block in zip(scores, new, strict=True):
                so_far.append(scores_of_block)
        else:
            x = block(x, *sequences, **padding_masks)
    return norm(x) if norm else x


def _with_language(encoder_token_ids, token_id):
    """Token ids (B, S) with the token of the source language in place of the first one; None changes nothing."""
    if token_id is None:
        return encoder_token_ids
    # A product, because tf2onnx cannot convert `where` with this number.
    first = ops.cast(encoder_token_ids[:, :1] != 0, encoder_token_ids.dtype) * token_id  # A row of padding stays one.
    return ops.concatenate([first, encoder_token_ids[:, 1:]], axis=1)


def _by_name(inputs):
    """The inputs of a model as a dict."""
    if isinstance(inputs, dict):
        return inputs
    if not isinstance(inputs, list | tuple) or len(inputs) != 2 or not all(hasattr(x, "shape") for x in inputs):
        raise ValueError(
            "A `Transformer` takes the token ids of source and target: a dict with `encoder_token_ids` and "
            "`decoder_token_ids`, or a list of two arrays. "
            f"Received: {keras.tree.map_structure(lambda x: getattr(x, 'shape', type(x).__name__), inputs)}."
        )
    return dict(zip(("encoder_token_ids", "decoder_token_ids"), inputs, strict=True))


def _checked(config):
    """The arguments of a `Transformer`, with sizes as `int`, or a ValueError that names the wrong one."""
    for size in ("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim"):
        config[size] = positive_integer(size, config[size])
    for size in ("target_vocabulary_size", "num_decoder_layers", "max_length"):
        config[size] = None if config[size] is None else positive_integer(size, config[size])
    for name in ("dropout", "attention_dropout"):
        rate(name, config[name])
    token_id = config["source_language_token_id"]
    if token_id is not None and not 0 < token_id < config["vocabulary_size"]:
        raise ValueError(
            "`source_language_token_id` must be an id of the source vocabulary, and not padding. Received: "
            f"source_language_token_id={token_id}, vocabulary_size={config['vocabulary_size']}."
        )
    hidden_dim, num_heads = config["hidden_dim"], config["num_heads"]
    if hidden_dim % num_heads:
        fits, wider = even_shares(hidden_dim, num_heads)
        raise ValueError(
            "`hidden_dim` must be divisible by `num_heads`: every head gets an equal share. "
            f"Received: hidden_dim={hidden_dim}, num_heads={num_heads}. Use num_heads={fits}, or hidden_dim={wider}."
        )
    vocabulary_size = config["vocabulary_size"]
    _check_ties(config["tie_embeddings"], vocabulary_size, config["target_vocabulary_size"] or vocabulary_size)
    return config


def _check_ties(tie_embeddings, vocabulary_size, target_vocabulary_size):
    one_of("tie_embeddings", tie_embeddings, TIE_EMBEDDINGS)
    if tie_embeddings == "all" and vocabulary_size != target_vocabulary_size:
        raise ValueError(
            "`tie_embeddings='all'` needs one vocabulary: source and target share a matrix. Received: "
            f"vocabulary_size={vocabulary_size}, target_vocabulary_size={target_vocabulary_size}. "
            "Use tie_embeddings='target', or a shared vocabulary."
        )
