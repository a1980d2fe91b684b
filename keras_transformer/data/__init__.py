"""From a corpus to batches: reading, cleaning, tokenizing and batching sentence pairs; and the embedded phrasebook."""
