"""What happens to strings, up to token ids and back: lines, sentences, placeholders, terms, markup, tokenizers.

Only `graph` and the tokenizers load more than `regex`. Nothing here knows a model.
"""
