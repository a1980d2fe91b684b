"""The search for translations: its settings, greedy search, beam search, sampling. It imports no model."""
