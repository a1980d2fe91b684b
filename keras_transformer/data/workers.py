"""A lazy `map` over other processes."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

# Until a process ends that SIGTERM was sent to, and whose parent does not end.
SECONDS_AFTER_SIGTERM = 30


@contextlib.contextmanager
def in_background(function, workers):
    """Context: an ordered, lazy `map(function, elements)` over `workers` processes, or over one thread if it is 1.

    Only a few elements are taken ahead, so that memory stays small and `elements` may be endless.
    """
    if workers < 2:
        with ThreadPoolExecutor(1) as thread:
            yield lambda elements: ahead(lambda element: thread.submit(function, element).result, elements, 1)
        return
    # A process that is forked could inherit locks of TensorFlow's threads, so new ones are started. Unlike
    # `multiprocessing.Pool`, this ends by letting the processes finish what they do: one that is terminated while it
    # writes a result keeps a lock for ever, and the pool would wait for it.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (function,))
    try:
        yield lambda elements: ahead(lambda element: pool.submit(_call, element).result, elements, 4 * workers)
    finally:
        pool.shutdown(cancel_futures=True)


def ahead(submit, elements, count):
    """The results for some elements, in order, of which `count` are being computed ahead.

    Args:
        submit: a function of an element that begins the work and returns a function that waits for the result.
        elements: an iterable, may be endless.
        count: an integer.
    """
    waiting = deque()
    for element in elements:
        waiting.append(submit(element))
        if len(waiting) > count:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()


def _begin(function):
    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # After Ctrl-C, the main process ends this one.
    # So it does after these two, which may come to the whole group. Until then, it needs batches.
    if hasattr(signal, "SIGUSR1"):
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: signal.alarm(SECONDS_AFTER_SIGTERM))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    """Ends this process when the one that started it is gone, even after a kill."""
    multiprocessing.parent_process().join()
    os._exit(1)


def _call(element):
    return _function(element)
