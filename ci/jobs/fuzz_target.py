"""A fuzz target and its libFuzzer processes, for the job fuzz."""
import configparser
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
import zipfile

from jobs.checkout import ROOT

FUZZ = ROOT / "fuzz"
# A campaign without --merge writes TARGET_corpus/ and TARGET_regressions/ here.
KEPT = (
    pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    / "perfring/fuzz"
)
PLANTED_FAULT = "planted_fault"  # the target that has to find its planted fault
MINIMISE_SECONDS = 30
INTERRUPTED = 72  # libFuzzer's exit code
# "#4096 NEW cov: 12 ft: 34 corp: 5/67b lim: 8 exec/s: 9 rss: 10Mb"
STATUS = re.compile(r"^#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)/(\S+)")
ENVIRONMENT = {
    **os.environ,
    # These options would cost a quarter and a tenth of the speed. The replay of the corpus in
    # ci/run asan-ubsan has the first; a replay by hand has the second (where memory was allocated).
    "ASAN_OPTIONS": "detect_stack_use_after_return=0:malloc_context_size=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "ASAN_SYMBOLIZER_PATH": "/usr/bin/llvm-symbolizer-19",
}


class TooLong(Exception):
    """An input is longer than max_len."""


def log(message):
    print(message, flush=True)


def pack(archive, inputs):
    """Writes an archive of the inputs ({name: bytes}). The same inputs give the same archive."""
    with zipfile.ZipFile(archive, "w") as zipped:
        for name, data in sorted(inputs.items()):
            entry = zipfile.ZipInfo(name)  # dated 1980, and uncompressed, because git compresses it
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            zipped.writestr(entry, data)


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.glob("*")}


def options_ini():
    options = configparser.ConfigParser()
    options.read(FUZZ / "options.ini")
    return options


def all_targets():
    """Returns the paths of the targets in fuzz/, such as parsers/litmus."""
    sections = {pathlib.Path(section) for section in options_ini().sections()}
    return sorted(sections - {section.parent for section in sections})


def settings_of(source):
    """Returns a target's settings, by name: those of its folder, overridden by its own section."""
    options = options_ini()
    return {
        name: value
        for section in (str(source.parent), str(source))
        if section in options
        for name, value in options[section].items()
    }


def options_of(source):
    """Returns a target's options for libFuzzer, by name."""
    return {name: value for name, value in settings_of(source).items() if name != "weight"}


def weight_of(source):
    """Returns a target's share of a campaign's time, relative to the other targets."""
    return int(settings_of(source).get("weight", 1))


class Process:
    """One libFuzzer process."""

    def __init__(self, target, options):
        self.target = target
        self.executions, self.coverage, self.features, self.corpus, self.bytes = 0, 0, 0, 0, "0b"
        self.lines = []
        self.began = time.monotonic()
        self.popen = subprocess.Popen(
            [target.program, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=ENVIRONMENT,
            cwd=target.folder,
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.popen.stderr:
            if match := STATUS.match(line):
                self.executions, self.coverage, self.features, self.corpus = map(
                    int, match.groups()[:4]
                )
                self.bytes = match[5]
            elif match := re.match(r"stat::number_of_executed_units:\s+(\d+)", line):
                self.executions = int(match[1])
            else:
                self.lines = self.lines[-200:] + [line.rstrip()]

    def is_over(self):
        if self.popen.poll() is None:
            return False
        self.reader.join()
        self.seconds = time.monotonic() - self.began
        return True

    def end(self):
        """Ends the process by SIGINT, or by SIGKILL if it does not end within 5 seconds."""
        self.popen.send_signal(signal.SIGINT)
        try:
            self.popen.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self.is_over()


class Target:
    def __init__(self, source, work, into):
        """`source`: the path in fuzz/, such as parsers/litmus."""
        self.source, self.name = FUZZ / source, source.name
        self.label = f"//fuzz/{source.parent}".rstrip("/.") + f":{self.name}"
        self.into = into  # the folder of the results: FUZZ or KEPT
        self.folder = work / self.name
        self.corpus = self.folder / "corpus"
        self.artifacts = self.folder / "artifacts"
        self.program = self.folder / "program"
        self.processes, self.found = [], []
        for folder in (self.corpus, self.artifacts):
            folder.mkdir(parents=True)
        # A copy, because another build may replace the program.
        built = ROOT / "bazel-bin" / "fuzz" / source
        shutil.copy(built.with_name(f"{self.name}_bin"), self.program)
        self.seeds = contents(built.with_name(f"{self.name}_seeds"))
        for kind, inputs in {
            "seeds": self.seeds,
            "corpus": self.archived(),
            "regressions": contents(self.checked_in("regressions")),
            "kept": contents(self.kept()),
        }.items():
            for file, data in inputs.items():
                (self.corpus / f"{kind}-{file}").write_bytes(data)
        self.begun_with = {file.name for file in self.corpus.iterdir()}
        options = options_of(source)
        longest = int(options["max_len"])
        for file in sorted(self.corpus.iterdir()):
            if file.stat().st_size > longest:
                raise TooLong(
                    f"{self.name}: {file.name} is longer than {longest} bytes: "
                    "libFuzzer would cut it off"
                )
        self.options = [f"-max_len={longest}", f"-dict={self.source.parent / options['dict']}"]

    def checked_in(self, kind):
        return self.source.parent / f"{self.name}_{kind}"

    def archived(self):
        """Returns the inputs of the corpus in fuzz/, by name."""
        try:
            with zipfile.ZipFile(self.checked_in("corpus.zip")) as zipped:
                return {name: zipped.read(name) for name in zipped.namelist()}
        except FileNotFoundError:
            return {}

    def kept(self):
        return KEPT / f"{self.name}_corpus"

    def start(self, seconds):
        self.processes.append(
            Process(
                self,
                [
                    *self.options,
                    f"-max_total_time={seconds}",
                    "-timeout=25",
                    "-print_final_stats=1",
                    f"-artifact_prefix={self.artifacts}/",
                    str(self.corpus),
                ],
            )
        )
        return self.processes[-1]

    def run(self, *options):
        return subprocess.run(
            [self.program, *options],
            env=ENVIRONMENT,
            cwd=self.folder,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )

    def collect(self):
        """Collects the findings, minimized."""
        for artifact in sorted(self.artifacts.iterdir()):
            if not artifact.name.startswith("slow-unit-"):
                self.found.append(self.minimised(artifact))
        ended_badly = [p for p in self.processes if p.popen.returncode not in (0, INTERRUPTED)]
        for process in ended_badly if not self.found else []:
            log("\n".join(process.lines[-40:]))
            self.found.append(None)

    def minimised(self, artifact):
        smaller = self.folder / "smaller"
        if artifact.name.startswith("crash-"):
            self.run(
                "-minimize_crash=1",
                f"-max_total_time={MINIMISE_SECONDS}",
                f"-exact_artifact_path={smaller}",
                str(artifact),
            )
        data = (smaller if smaller.exists() else artifact).read_bytes()
        smaller.unlink(missing_ok=True)
        kind = artifact.name.split("-")[0]
        if self.name == PLANTED_FAULT:
            return artifact.name
        into = self.source.parent if self.into == FUZZ else self.into
        regressions = into / f"{self.name}_regressions"
        regressions.mkdir(parents=True, exist_ok=True)
        path = regressions / f"{kind}-{hashlib.sha1(data).hexdigest()[:12]}"
        path.write_bytes(data)
        report = self.run(str(path)).stderr.splitlines()
        reasons = [
            line for line in report if re.search(r"violated|ERROR|runtime error|what\(\)", line)
        ]
        shown = shlex.quote(str(path.relative_to(ROOT) if self.into == FUZZ else path))
        log(
            f"{self.name}: {reasons[0] if reasons else kind}\n"
            f"  replay: bazel run --config=fuzz {self.label}_run -- {shown}"
        )
        if self.name == "kernel_script":
            folder = "$PWD/" if self.into == FUZZ else ""
            log(f"  as text: bazel run //fuzz:script_tool -- --text {folder}{shown}")
        if self.into != FUZZ:
            test = shlex.quote(str(self.checked_in("regressions").relative_to(ROOT)))
            log(f"  as a regression test: mkdir -p {test} && cp {shown} {test}/")
        return path

    def keep(self):
        """Stores the inputs that reached new code. Returns the number of stored inputs."""
        if self.name != PLANTED_FAULT:
            self.kept().mkdir(parents=True, exist_ok=True)
            for file in self.corpus.iterdir():
                if file.name not in self.begun_with:
                    shutil.copy(file, self.kept())
        return sum(1 for _ in self.kept().glob("*"))

    def merge(self):
        """Packs the smallest corpus that, with the seeds and regressions, reaches everything that
        the campaign reached."""
        merged = self.folder / "merged"
        merged.mkdir()
        files = self.seeds | contents(self.checked_in("regressions"))
        for name, data in files.items():
            (merged / name).write_bytes(data)
        result = self.run("-set_cover_merge=1", *self.options, str(merged), str(self.corpus))
        if result.returncode != 0:
            log(f"{self.name}: the corpus could not be merged:\n{result.stderr[-2000:]}")
            return
        added = [data for name, data in contents(merged).items() if name not in files]
        self.checked_in("corpus.zip").unlink(missing_ok=True)
        if added:
            pack(
                self.checked_in("corpus.zip"),
                {hashlib.sha1(data).hexdigest()[:12]: data for data in added},
            )
        shutil.rmtree(self.kept(), ignore_errors=True)

    def holds(self):
        return bool(self.found) == (self.name == PLANTED_FAULT)

    def row(self):
        executions = sum(p.executions for p in self.processes)
        seconds = sum(p.seconds for p in self.processes)
        last = max(self.processes, key=lambda p: p.features)
        found = str(len(self.found) or "nothing")
        if self.name == PLANTED_FAULT:
            found = "its fault" if self.found else "NOT its fault"
        return [
            self.name,
            f"{executions:,}",
            f"{seconds:.0f}",
            f"{executions / max(seconds, 0.1):,.0f}",
            str(last.coverage),
            str(last.features),
            f"{last.corpus} ({last.bytes})",
            found,
        ]
