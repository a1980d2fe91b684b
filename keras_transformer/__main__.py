"""The command line: `python -m keras_transformer COMMAND`; see `--help`."""

import importlib
import os
import sys

from keras_transformer.commands.flags import FlagParser, file_stamp, user_errors

# In the order of `--help`. Each is a module of `keras_transformer.commands`: its docstring says what it does,
# `add_arguments(parser)` declares its flags, and `run(arguments)` does it and returns the exit status.
COMMANDS = ("launch", "clean", "import_model", "distill", "translate", "bulk", "score", "shortlist", "plot")
COMMANDS += ("explore", "report", "export")


def main(argv: list[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["train"]:  # train_keras.py parses its own flags.
        import train_keras

        return train_keras.main(argv[1:])
    if not argv:
        parser().print_help(sys.stderr)
        return 2
    arguments = parser(argv[0]).parse_args(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    output = vars(arguments).get("output")
    one_file = output and not arguments.hint and (not os.path.exists(output) or os.path.isfile(output))
    before = one_file and file_stamp(output)

    def hint():
        if one_file and file_stamp(output) == before:
            return f"{output} was not changed."
        return arguments.hint(arguments) if arguments.hint else ""

    with user_errors(hint):
        return arguments.function(arguments)


def parser(command: str | None = None) -> FlagParser:
    """The parser of a command, or of all without its name; `train` has its own."""
    top = FlagParser(prog="python -m keras_transformer", description="A Transformer that translates.")
    among = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    among.add_parser("train", help="train a translator (the same as train_keras.py)", add_help=False)
    for name in [name for name in COMMANDS if _name(name) == command] or COMMANDS:
        module = importlib.import_module(f"keras_transformer.commands.{name}")
        help = module.__doc__.splitlines()[0]
        command_parser = among.add_parser(_name(name), help=help[0].lower() + help[1:-1], description=help)
        # `hint(arguments)` says what to do after an interruption, if it is not that the output was not changed. The
        # targets of `export` have a function each.
        command_parser.set_defaults(function=vars(module).get("run"), hint=vars(module).get("hint"))
        module.add_arguments(command_parser)
    return top


def _name(module):
    return module.removesuffix("_model")  # `import` cannot be the name of a module.


if __name__ == "__main__":
    sys.exit(main())
