"""`python -m keras_transformer`: one file for each command, with its flags. Nothing else prints or reads flags."""
