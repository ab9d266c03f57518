"""Judges a run: whether anything is wrong with its end, its output, and what it left."""
import re

from catalogue import error_of

ENVIRONMENT = 2


def hash_of(data):
    """FNV-1a, the same as in job.cc."""
    value = 0xCBF29CE484222325
    for each in data:
        value = (value ^ each) * 0x100000001B3 & (1 << 64) - 1
    return str(value)


def faults_in(flow, call, injection, result, baseline):
    """Returns the faults of a run, one sentence each."""
    faults = []
    if not result["bystander"]:
        faults.append("the bystander is dead")
    if "hung" in result:
        return faults + ["it hangs: " + result["hung"].strip()]
    if result["signal"]:
        faults.append(f"it is ended by signal {result['signal']}")
    elif result["code"] not in flow.codes + [ENVIRONMENT]:
        faults.append(f"its exit code is {result['code']}")
    faults += [f"it left running: {each}" for each in result["left"]]
    if result["signal"] == 0:
        faults += (
            in_library(call, injection, result)
            if flow.is_of_library
            else in_command(flow, result, baseline)
        )
        if result["code"] == ENVIRONMENT and result["reached"]:
            faults += in_error(flow, call, injection, result["err"]["text"])
    return faults + in_files(flow, injection, result, baseline)


def in_library(call, injection, result):
    faults = [
        line
        for line in result["out"]["text"].splitlines()
        if line.startswith("left: ") and not is_of_injection(line, injection, result)
    ]
    account = re.search(r"^account: (\d+) = (\d+) \+ (\d+)$", result["out"]["text"], re.M)
    if result["code"] == 0:
        if account is None:
            faults.append("it gives no account")
        elif int(account[1]) != int(account[2]) + int(account[3]):
            faults.append(f"the account does not close: {account[0]}")
    return faults


def is_of_injection(line, injection, result):
    """Whether the injected failure itself explains this leftover: the call that would have freed it was not made."""
    if line.startswith("left: fd"):
        return injection.call == "close" and line.startswith(
            f"left: fd {result.get('closed')} /dev/null"
        )
    if line.startswith("left: mapping"):
        return injection.call == "munmap"
    if line.startswith("left: child"):
        # The failed call told the program that the child is not its own.
        return injection.call in ("wait4", "waitid") and injection.what != "EINTR"
    return False


def in_command(flow, result, baseline):
    if (
        flow.same
        and result["code"] in flow.codes
        and result["out"]["hash"] != baseline["out"]["hash"]
    ):
        return [
            f"it ends with {result['code']}, and printed something else than where nothing fails"
        ]
    return []


def in_error(flow, call, injection, text):
    """Checks that the error names the call; a command's error may give the system's message instead. A command
    whose write fails cannot report anything."""
    if injection.call in ("write", "writev") and not flow.is_of_library:
        return []
    words = list(call.words)
    message = error_of(injection.what)
    if not flow.is_of_library and message:
        words += [message]
    if injection.call == "cut":
        words += list(flow.files)
    if any(word in text for word in words):
        return []
    return [f"the error names neither the call nor its error: {text.strip()!r}"]


def in_files(flow, injection, result, baseline):
    """Checks that files are whole: as before the run, or as after a run in which nothing fails."""
    faults = []
    files = result["files"]
    for name in files:
        top = name.split("/")[0]
        if top not in flow.files and top not in flow.makes:
            faults.append(f"it left the file {name}")
    for name in flow.writes if injection.call != "cut" else ():  # the cut file may be this one
        old = hash_of(flow.files[name].removeprefix("text:").encode())
        is_new = files.get(name) != old and (
            result.get("then") == 0 if flow.then else files.get(name) == baseline["files"].get(name)
        )
        is_old = old in (files.get(name), files.get(name + ".old"))
        if not is_new and (not is_old or result["code"] in flow.codes):
            faults.append(f"the user's file {name} is neither as it was nor whole")
    return faults
