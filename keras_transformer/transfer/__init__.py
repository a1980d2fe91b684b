"""What a model gets from others: weights of published models, translations of a teacher. It writes runs and texts."""
