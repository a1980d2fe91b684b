"""What all commands have in common: flags made from the settings, errors in one line, the exit status."""

import argparse
import contextlib
import dataclasses
import difflib
import functools
import logging
import os
import signal
import sys
import types
from collections.abc import Callable, Collection, Iterator

from keras_transformer.settings import allowed_types
from keras_transformer.training.config import SECTIONS
from keras_transformer.training.presets import PRESETS, RECIPES

_FILES = ("--train", "--val", "--test", "--general", "--general-test")
# Flags of earlier versions, with their names of today.
RENAMED = {f"{flag}-{side}": f"{flag} A B" for flag in _FILES for side in ("source", "target")}
RENAMED |= {"--accumulate": "--gradient-accumulation-steps", "--xla": "--jit-compile"}
RENAMED |= {"--decoding-max-length": "--max-target-length", "--max-length": "--max-target-length"}
ALARM = getattr(signal, "SIGALRM", None)  # None on Windows.
NO_TENSORFLOW = (
    "TensorFlow or tensorflow-text is not installed, and this needs both. On Linux and Apple silicon: pip install "
    "tensorflow tensorflow-text. Other platforms have no tensorflow-text: there, models train and translate on JAX, "
    "with KERAS_BACKEND=jax."
)


class FlagParser(argparse.ArgumentParser):
    """A parser whose errors are one line: a list of a hundred flags would hide them.

    Args:
        all_flags: the flags that show all flags. Defaults to `--help`.
        **kwargs: see `argparse.ArgumentParser`.
    """

    def __init__(self, *args, all_flags: str = "--help", **kwargs):
        # `--max-length` is not short for `--max-length-ratio`.
        super().__init__(*args, allow_abbrev=False, **kwargs)
        self.all_flags = all_flags

    def parse_known_args(self, args=None, namespace=None):
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flag, flags = unknown[0].split("=")[0], self._option_string_actions
            renamed = RENAMED.get(flag, "")
            if renamed.split(" ")[0] in flags:
                hint = f" {flag} is now {renamed}."
            else:
                near = difflib.get_close_matches(flag, flags, n=1, cutoff=0.8)
                hint = f" Did you mean {near[0]}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}.{hint}")
        return parsed, unknown

    def error(self, message):
        stop = "" if message.endswith((".", "?")) else "."
        self.exit(2, f"error: {message}{stop} All flags: {self.prog} {self.all_flags}\n")


def add_flags(
    parser: argparse.ArgumentParser,
    *sections: str,
    only: Collection[str] | None = None,
    shown: Collection[str] | None = None,
) -> None:
    """Adds one flag per field of the named sections, grouped; flags that are not given are not in the parsed result.

    Args:
        parser: an `argparse.ArgumentParser`.
        sections: names in `SECTIONS`.
        only: names of settings. Defaults to None, all.
        shown: names of settings whose flags `--help` shows. Defaults to None, all.
    """
    for name in sections:
        group = parser.add_argument_group(f"{name} settings")
        for f in dataclasses.fields(SECTIONS[name]):
            dest, kinds = f.name, allowed_types(SECTIONS[name], f.name)
            if not f.metadata["flag"] or (only is not None and dest not in only):
                continue
            kwargs = {"dest": dest, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
            if shown is None or dest in shown:
                kwargs["help"] = f.metadata["help"] if bool in kinds else _help(f)
            if bool in kinds:
                kwargs |= {"action": argparse.BooleanOptionalAction}
            elif f.metadata["convert"]:
                kwargs |= {"nargs": "+", "action": "append", "metavar": f.metadata["metavar"]}
            else:
                kind = next(t for t in kinds if t is not types.NoneType)
                choices = f.metadata["choices"]
                metavar = None if choices else {int: "N", float: "X", str: "TEXT"}[kind]
                kwargs |= {"type": kind, "choices": choices, "metavar": metavar}
            group.add_argument("--" + dest.replace("_", "-"), *f.metadata["also"], **kwargs)


def _help(f):
    """The help text of a field, with its default and the presets and recipes that replace it."""
    text, changes = f.metadata["help"], {**PRESETS, **RECIPES}.items()
    changed = ", ".join(f"{key}: {values[f.name]}" for key, values in changes if f.name in values)
    changed = f"; {changed}" if changed else ""
    if f.default not in (None, "", ()):
        return f"{text} (default: {f.default}{changed})"
    return f"{text[:-1]}{changed})" if changed else text  # The text ends with "(default: ...)".


def file_stamp(path: str | os.PathLike) -> tuple[int, int] | None:
    """What changes when a file is written or replaced; None without a file."""
    with contextlib.suppress(OSError):
        status = os.stat(path)
        return status.st_mtime_ns, status.st_ino
    return None


@contextlib.contextmanager
def user_errors(hint: str | Callable[[], str] = "") -> Iterator[None]:
    """A context around a command: errors that the user can fix end it with a message instead of a traceback.

    What the library logs is printed. The exit status is 2 for an error, 130 for Ctrl-C, 143 for SIGTERM and 141 for a
    closed pipe, as in a shell.

    Args:
        hint: what to do next, a string or a function that returns it; printed after an interruption or a file error.
            Defaults to nothing.
    """
    before, received, alarm = {}, [], ALARM and signal.getsignal(ALARM)
    interrupt = functools.partial(_interrupt, sys._getframe(2), hint, received)  # The frame of the caller's `with`.
    with contextlib.suppress(ValueError):  # Only the main thread can set a signal handler.
        before[signal.SIGTERM] = signal.signal(signal.SIGTERM, interrupt)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            before[signal.SIGINT] = signal.signal(signal.SIGINT, interrupt)
    try:
        with _messages_shown():
            yield
        sys.stdout.flush()  # An error here would otherwise come while Python exits.
    except BrokenPipeError as error:  # The reader of our output, such as `head`, has stopped.
        _close_standard_output()
        raise SystemExit(141) from error  # 128 + SIGPIPE, which Windows does not have.
    except (ValueError, OSError, ImportError, MemoryError) as error:
        message = str(error)
        if isinstance(error, ModuleNotFoundError) and error.name in ("tensorflow", "tensorflow_text"):
            message = NO_TENSORFLOW
        elif isinstance(error, ImportError) and "pip install" not in message:
            raise  # Our messages about missing packages say what to install; this package is broken.
        if isinstance(error, MemoryError):
            message = f"The memory is not enough for this. {message}".rstrip()
        if isinstance(error, UnicodeEncodeError):
            character = error.object[error.start]
            message = (
                f"The output must be able to hold all characters. Received: {character!r}, and an output in "
                f"{error.encoding}. Set PYTHONIOENCODING=utf-8, or write to a file with --output."
            )
        if isinstance(error, OSError) and error.strerror:
            message = f"Cannot use {error.filename or 'standard output'}: {error.strerror}. {_text(hint)}".rstrip()
            _close_standard_output()
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(2) from error
    except KeyboardInterrupt as error:
        raise SystemExit(_interrupted(signal.SIGTERM in received[-1:], hint)) from error
    finally:
        if ALARM and signal.getsignal(ALARM) is not alarm:  # `_interrupt` has set it.
            signal.setitimer(signal.ITIMER_REAL, 0)
            before[ALARM] = alarm
        for number, handler in before.items():
            if handler is not None:  # None: not set by Python, which cannot set it again.
                signal.signal(number, handler)


class _Messages(logging.Handler):
    """Prints what the library logs. Errors of the output, such as a closed pipe, are raised and end the command."""

    def emit(self, record):
        print(self.format(record), file=sys.stderr if record.levelno >= logging.WARNING else sys.stdout, flush=True)


@contextlib.contextmanager
def _messages_shown():
    """A context in which the messages of the library appear, each once if there is one context in another."""
    logger, handler = logging.getLogger("keras_transformer"), _Messages()
    level, handlers = logger.level, logger.handlers
    logger.handlers = [*(other for other in handlers if not isinstance(other, _Messages)), handler]
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers = handlers
        logger.setLevel(level)


def _text(hint):
    return hint() if callable(hint) else hint


def _interrupted(terminated, hint):
    """Prints how the command ended; returns the exit status."""
    print(f"{'Terminated' if terminated else 'Interrupted'}. {_text(hint)}".rstrip(), file=sys.stderr, flush=True)
    return 128 + (signal.SIGTERM if terminated else signal.SIGINT)


def _interrupt(command, hint, received, number, frame):
    """Ends the `command`, a frame, after SIGINT and SIGTERM alike; adds the signal's number to those `received`.

    TensorFlow's import can crash or hang when an exception cuts it off, so the process ends there at once, like after a
    kill. Its C++ code swallows exceptions in checks of a type, so they are raised a little later.
    """
    received.append(number)
    while frame and frame is not command:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib"):
            os._exit(_interrupted(number == signal.SIGTERM, hint))
        if ALARM and file.startswith(("<frozen abc", "<frozen _collections_abc")):
            signal.signal(ALARM, lambda _, later: _interrupt(command, hint, received, number, later))
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _close_standard_output():
    """Keeps Python from writing the rest of the output when it exits, which would fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
