"""`python -m keras_transformer`: one file for each command, with its flags.

Nothing else reads flags. The library logs; commands print that, and evaluation and problems with lines print, too.
"""
