"""Runs programs. A signal to this process ends them, too."""
import contextlib
import os
import signal
import subprocess

from jobs.checkout import ROOT

GRACE = 10  # seconds from SIGTERM to SIGKILL
received = []  # the numbers of the signals that came so far


class Terminated(SystemExit):
    """SIGTERM or SIGHUP came. The exit code is a shell's."""


def raise_for(number):
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated(128 + number)


def on_signal(number, _):
    received.append(number)
    raise_for(number)


def taken():
    """Returns the signals that end a run and are not ignored."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def take_signals():
    """From now on, SIGINT raises KeyboardInterrupt, SIGTERM and SIGHUP raise Terminated. A signal
    that is ignored (by nohup, or in the background) stays ignored."""
    for number in taken():
        signal.signal(number, on_signal)


@contextlib.contextmanager
def calling(function):
    """Within this context, a signal calls the function and raises nothing."""

    def handler(number, _):
        received.append(number)
        function()

    before = {number: signal.signal(number, handler) for number in taken()}
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


def end(process, group=False):
    """Ends a process, or its process group, by SIGTERM; what is left after GRACE by SIGKILL."""

    def send(number):
        with contextlib.suppress(ProcessLookupError):
            if group:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)

    try:
        send(signal.SIGTERM)
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        pass
    finally:
        send(signal.SIGKILL)
        process.wait()


def run(command, group=False, text_input=None, **options):
    """Runs a command to its end, in ROOT if no `cwd` is given. `group`: in a process group of its
    own, which a signal to this process ends as a whole. (A terminal's Ctrl-C then comes to this
    process alone, and a command that reads the terminal would stop.) Returns its CompletedProcess.
    """
    options = {"cwd": ROOT, "text": True, "errors": "replace", **options}
    if group:
        options.update(process_group=0, stdin=subprocess.DEVNULL)
    if text_input is not None:
        options["stdin"] = subprocess.PIPE
    before = len(received)
    with calling(lambda: None):  # or nobody would end the new process
        process = subprocess.Popen(command, **options)
    try:
        if len(received) > before:
            raise_for(received[before])
        out, err = process.communicate(text_input)
    except BaseException:
        end(process, group)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def exit_code(process):
    """Returns the exit code as a shell gives it: of a signal, 128 and its number."""
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def output(command, **options):
    """Returns what a command prints. Raises CalledProcessError if it fails."""
    ended = run(command, stdout=subprocess.PIPE, **options)
    ended.check_returncode()
    return ended.stdout
