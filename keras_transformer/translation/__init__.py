"""From strings to strings with a trained model: `Translator` and its parts. Nothing here trains or exports."""
