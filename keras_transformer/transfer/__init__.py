"""What a model gets from others: weights of published models, translations of a teacher. It writes runs and texts."""

# Families of public models, and their modules in `keras_transformer.transfer.importing`.
FAMILIES = {"opus-mt": "opus_mt", "m2m-100": "m2m_100", "nllb": "m2m_100"}
