#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults in copies of this tree, one in each at a time, and says which of them the tests see.

usage: mutate.py COUNT SEED [FOLDER ...] [--jobs N]  COUNT faults that compile and change code, drawn by SEED from these
                                                     folders, in N copies at a time (one for every two processors)
       mutate.py self-test                           checks where a fault may stand, and where none

What no test sees is either no fault, as the meaning is the same, or a hole in the tests: build/mutate/report.txt lists
them for a person to decide. On the same tree the same COUNT, SEED and FOLDERs draw the same faults, and a run that was stopped
goes on where it stopped.
"""
import argparse
import collections
import concurrent.futures
import fcntl
import hashlib
import json
import os
import pathlib
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import faults
import tidy
from faults import diff, draw, planted, shown

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACE = ROOT / "build/mutate"
FOLDERS = ["src/ir", "src/ops", "src/rules", "src/rewrite", "src/passes", "src/plan"]

# The programs that look for a fault, cheap ones first: of the random graphs, a short time before the minute of the tests. The
# tests that plant faults of their own are left out. ONNX's cases are where Debian's libonnx-testdata is installed.
FIRST_FAILURE = ["--gtest_fail_fast", "--gtest_brief=1"]
ONNX_DATA = pathlib.Path("/usr/share/libonnx-testdata/data")
PROGRAMS = [
    ("golden", FIRST_FAILURE),
    ("unit", FIRST_FAILURE),
    ("conformance", FIRST_FAILURE),
    *([("onnx_cases", ["--list", ROOT / "tests/conformance/onnx-unsupported.txt", ONNX_DATA])] if ONNX_DATA.is_dir() else []),
    ("property", ["--gtest_filter=golden_census*", *FIRST_FAILURE]),
    ("property", ["--seconds", "10", "--seed", "1"]),
    ("models", FIRST_FAILURE),
    ("property", ["--gtest_filter=-found*:golden_census*", *FIRST_FAILURE]),
    ("kernels", FIRST_FAILURE),
]

# A fault may loop for ever, or fill memory or the disk: it gets this many times the processor time of the sound program and
# so many seconds more. A limit by the clock would be wrong on a busy machine; a program that takes no processor time for so
# many seconds is a deadlock.
CPU_FACTOR, CPU_SECONDS, IDLE_SECONDS = 4, 10, 30
MEMORY, FILE_SIZE = 4 << 30, 256 << 20

# A header that more sources read is left out: a fault there is a build of minutes.
MOST_READERS = 50

# ---- copies ----

class Copy:
    """A tree and its build. No path in the build says where they stand, so both may be copied and stay up to date."""

    def __init__(self, name):
        self.place = PLACE / name
        self.tree, self.build = self.place / "tree", self.place / "build"

    def make(self, *targets):
        """What went wrong, or "". The first target that fails ends it. In a session of its own, as a Ctrl-C is not for it."""
        done = subprocess.run(["ninja", "-C", self.build, "-j", str(len(os.sched_getaffinity(0))), *targets],
                              capture_output=True, text=True, start_new_session=True)
        return done.stdout + done.stderr if done.returncode else ""

    def code_of_library(self):
        folder = self.build / "CMakeFiles/rlx_objects.dir"
        return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).digest() for path in folder.rglob("*.o")}


SOUND = Copy("sound")


def copy_tree(tree):
    """Makes it equal to this tree, touching what differs only, so that little is built again; the hash of all of it."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout
    digest, wanted = hashlib.sha256(), set()
    for path in sorted(filter(None, listed.split("\0"))):
        if not (ROOT / path).is_file():
            continue
        wanted.add(tree / path)
        content = (ROOT / path).read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
        if not (tree / path).is_file() or (tree / path).read_bytes() != content:
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, tree / path)
    for path in [path for path in tree.rglob("*") if path.is_file() and path not in wanted]:
        path.unlink()
    return digest.hexdigest()


def seen_from_build(text, place):
    """What CMake has written for ninja, which works in the folder of the build. By workdir, CMake gives outputs of its scripts a
    second name, which has to be another."""
    paths = re.compile(rf"^cmake_ninja_workdir = .*|{re.escape(str(place))}/(?:(?P<tree>tree)|build/(?=\S)|build)", re.MULTILINE)
    return paths.sub(lambda path: "../tree" if path["tree"] else path[0] if path[0].startswith("cmake") else
                     "" if path[0].endswith("/") else ".", text)


def configure(copy):
    linker = next((f"-fuse-ld={name}" for name in ("mold", "lld") if shutil.which(name)), "")
    flags = [f"-DCMAKE_{language}_FLAGS_RELEASE=-O1" for language in ("C", "CXX")]
    subprocess.run(["cmake", "-S", copy.tree, "-B", copy.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DRLX_BENCH=OFF",
                    "-DCMAKE_SUPPRESS_REGENERATION=ON", f"-DCMAKE_EXE_LINKER_FLAGS={linker}", *flags],
                   check=True, stdout=subprocess.DEVNULL)
    rules = copy.build / "build.ninja"
    text = seen_from_build(rules.read_text(encoding="utf-8"), copy.place)
    if "../tree/src/" not in text:
        sys.exit(f"this needs a path without blanks and signs: {ROOT}")
    rules.write_text(text, encoding="utf-8")


def stamp(path):
    return (path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else None


def mirror(source, target):
    """Makes a folder equal to another, times included; only what differs in size or time is written."""
    target.mkdir(parents=True, exist_ok=True)
    for path in list(target.iterdir()):
        if path.is_dir() and not (source / path.name).is_dir():
            shutil.rmtree(path)
        elif path.is_file() and not (source / path.name).is_file():
            path.unlink()
    for path in source.iterdir():
        if path.is_dir():
            mirror(path, target / path.name)
        elif stamp(path) != stamp(target / path.name):
            shutil.copy2(path, target / path.name)


def texts_of(folders):
    """The sources and headers of the folders, without headers that too many sources read."""
    readers = collections.Counter(path for paths in tidy.files_read(SOUND.build).values() for path in paths)
    texts = {}
    for folder in folders:
        for path in [SOUND.tree / folder, *(SOUND.tree / folder).rglob("*")]:
            if path.suffix == ".cpp" or path.suffix in (".h", ".inl") and readers[str(path)] <= MOST_READERS:
                texts[str(path.relative_to(SOUND.tree))] = path.read_text(encoding="utf-8")
    return texts


# ---- running the tests ----

def set_limits(child):
    """From here, as what runs between fork and exec must not be Python where there are threads."""
    for what, limit in [(resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE_SIZE), (resource.RLIMIT_CORE, 0)]:
        resource.prlimit(child.pid, what, (limit, limit))


def failure_of(status, output):
    if status in (None, -signal.SIGKILL):
        return "time limit"
    failed = re.search(r"^\[  FAILED  \] ([\w./]+)", output, re.MULTILINE)
    return failed[1] if failed else f"signal {-status}" if status < 0 else f"exit {status}"


def seconds_used(child):
    """Its processor time."""
    fields = pathlib.Path(f"/proc/{child.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")  # user and system time


def status_of(child, cpu):
    """How it ended, or None if it has used its processor time or waits for what does not come. RLIMIT_CPU is no help: with it
    the clock of a process, by which tests measure growth, goes in steps of 4 ms."""
    used, last_work = 0, time.monotonic()
    while True:
        try:
            return child.wait(1)
        except subprocess.TimeoutExpired:
            before, used = used, seconds_used(child)
            if used != before:
                last_work = time.monotonic()
            if used > cpu or time.monotonic() - last_work > IDLE_SECONDS:
                return None


def run_program(copy, name, arguments, cpu):
    """(what failed, or ""; all it said), within the limits of a fault."""
    scratch = copy.place / "scratch"
    scratch.mkdir(exist_ok=True)
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"} | {"TMPDIR": str(scratch)}
    with open(copy.place / "output.txt", "w+", encoding="utf-8", errors="replace") as output:
        child = subprocess.Popen([copy.build / "bin" / name, *arguments], cwd=copy.build, env=environment, stdout=output,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        try:
            set_limits(child)
            status = status_of(child, cpu)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        output.seek(0)
        said = output.read()
    shutil.rmtree(scratch)
    return failure_of(status, said) if status != 0 else "", said


def measure(cores):
    """The processor seconds of each program on the sound copy, on these processors; exits where one fails."""
    seconds, all_cores = [], os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    for name, arguments in PROGRAMS:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        failed, said = run_program(SOUND, name, arguments, 600)
        if failed:
            sys.exit(f"{said}\nthe tests fail without any fault: {name}, {failed}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    os.sched_setaffinity(0, all_cores)
    return seconds


NO_FAULT = ("does not compile", "same code")
UNSEEN = "UNSEEN"


def judge(copy, fault, text, sound, limits):
    """Plants a fault: what sees it. The copy has to be mended before the next."""
    (copy.tree / fault.path).write_text(planted(text, fault), encoding="utf-8")
    if copy.make("rlx_objects"):
        return "does not compile"
    if copy.code_of_library() == sound:
        return "same code"
    for (name, arguments), cpu in zip(PROGRAMS, limits):
        if copy.make(name):
            return "does not compile"
        if failed := run_program(copy, name, arguments, cpu)[0]:
            return f"{name} ({failed})"
    return UNSEEN


# ---- a run ----

class Journal:
    """What is known of this tree: one line of JSON for each fault, after one for the sound copy. A changed tree begins anew."""

    def __init__(self, digest):
        self.path, self.known, self.lock = PLACE / "journal.txt", {}, threading.Lock()
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
        entries = [json.loads(line) for line in lines if line.endswith("]")]
        if entries and entries[0] == ["tree", digest]:
            self.known = {tuple(key): value for key, value in entries[1:]}
        else:
            self.path.write_text(json.dumps(["tree", digest]) + "\n", encoding="utf-8")

    def get(self, key, find):
        if key not in self.known:
            value = find()
            with self.lock, open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps([key, value]) + "\n")
            self.known[key] = value
        return self.known[key]


def prepare(cores):
    """The sound copy, built and tested: what is known of it, and the limits of each program."""
    begin = time.monotonic()
    journal = Journal(copy_tree(SOUND.tree))
    if not ONNX_DATA.is_dir():
        print(f"without ONNX's cases: {ONNX_DATA} is not there (apt-get install libonnx-testdata)")
    print("building a copy in build/mutate, and running its tests without any fault", flush=True)
    configure(SOUND)
    wrong = SOUND.make(*{name for name, _ in PROGRAMS})
    if wrong:
        sys.exit(f"{wrong}\nthe copy does not build without any fault")
    seconds = journal.get(("sound",), lambda: measure(cores))
    print(f"they pass: {time.monotonic() - begin:.0f} s", flush=True)
    return journal, [CPU_SECONDS + int(CPU_FACTOR * second) for second in seconds]


def shares(cores, jobs):
    """As many processors for each job, none of them for two."""
    each = len(cores) // jobs
    return [set(cores[job * each : (job + 1) * each]) for job in range(jobs)]


class Workers(concurrent.futures.ThreadPoolExecutor):
    """A thread for each share of the processors, with a copy that it plants faults in. What it starts stays on its share."""

    def __init__(self, shared):
        self.own, self.waiting = threading.local(), queue.SimpleQueue()
        for number, cores in enumerate(shared):
            self.waiting.put((Copy(f"worker-{number + 1}"), cores))
        super().__init__(len(shared), initializer=self.begin)

    def begin(self):
        self.own.copy, cores = self.waiting.get()
        os.sched_setaffinity(0, cores)  # of this thread

    def look(self, fault, text, sound, limits):
        begin = time.monotonic()
        mirror(SOUND.tree, self.own.copy.tree)
        mirror(SOUND.build, self.own.copy.build)
        return judge(self.own.copy, fault, text, sound, limits), round(time.monotonic() - begin, 1)


def first_that_count(count, drawn, submit):
    """Looks at the faults in the order of the draw until so many count, several at a time, and none in vain: yields
    (fault, verdict, seconds) as they come."""
    drawn, under_way, counted = iter(drawn), {}, 0
    while True:
        while counted + len(under_way) < count and (fault := next(drawn, None)):
            under_way[submit(fault)] = fault
        if not under_way:
            return
        for future in concurrent.futures.wait(under_way, return_when=concurrent.futures.FIRST_COMPLETED).done:
            verdict, seconds = future.result()
            counted += verdict not in NO_FAULT
            yield under_way.pop(future), verdict, seconds


def summary(texts, verdicts):
    counted = {fault: verdict for fault, verdict in verdicts.items() if verdict not in NO_FAULT}
    unseen = [fault for fault, verdict in counted.items() if verdict == UNSEEN]
    seen = len(counted) - len(unseen)
    by = collections.Counter(verdict.split()[0] for verdict in counted.values())
    yield f"seen {seen} of {len(counted)} that compile and change code ({100 * seen / max(len(counted), 1):.0f} %)"
    yield ", ".join(f"{name}: {number}" for name, number in by.most_common())
    yield ", ".join(f"{what}: {list(verdicts.values()).count(what)}" for what in NO_FAULT)
    for fault in unseen:
        text = texts[fault.path]
        yield f"\n{UNSEEN} {shown(text, fault)}\n{diff(text, fault)}"


def run(count, seed, folders, jobs):
    shared = shares(sorted(os.sched_getaffinity(0)), jobs)
    journal, limits = prepare(shared[0])
    texts, sound = texts_of(folders), SOUND.code_of_library()
    drawn, verdicts, counted = draw(texts, seed), {}, 0

    def judged(fault):
        return journal.get(fault, lambda: workers.look(fault, texts[fault.path], sound, limits))

    with Workers(shared) as workers:
        try:
            for fault, verdict, seconds in first_that_count(count, drawn, lambda fault: workers.submit(judged, fault)):
                verdicts[fault] = verdict
                if verdict not in NO_FAULT:
                    counted += 1
                    print(f"{counted:4} {shown(texts[fault.path], fault)}: {verdict}, {seconds} s", flush=True)
        except KeyboardInterrupt:
            print("stopped, when the faults under way are done: the same arguments go on from here", flush=True)
            workers.shutdown(cancel_futures=True)
    report = "\n".join(summary(texts, {fault: verdicts[fault] for fault in drawn if fault in verdicts})) + "\n"
    (PLACE / "report.txt").write_text(report, encoding="utf-8")
    print(report, end="")


# ---- this file itself ----

def check_failures():
    for status, output, expected in [
        (1, "[ RUN      ] a.b\n[  FAILED  ] a.b/c (0 ms)\n", "a.b/c"),
        (-11, "", "signal 11"),
        (2, "", "exit 2"),
        (None, "", "time limit"),
    ]:
        if failure_of(status, output) != expected:
            yield f"{status}: expected {expected}, found {failure_of(status, output)}"


def check_rules():
    text = "cmake_ninja_workdir = /p/build/\nbuild a.o: cc /p/tree/a.c | /p/build/b.h\n  flags = -I/p/tree -I/p/build\n"
    expected = "cmake_ninja_workdir = /p/build/\nbuild a.o: cc ../tree/a.c | b.h\n  flags = -I../tree -I.\n"
    if seen_from_build(text, "/p") != expected:
        yield seen_from_build(text, "/p")


def contents(folder):
    return {str(path.relative_to(folder)): path.is_file() and (path.read_text(encoding="utf-8"), path.stat().st_mtime_ns)
            for path in folder.rglob("*")}


def check_mirror():
    with tempfile.TemporaryDirectory() as place:
        source, target = pathlib.Path(place) / "source", pathlib.Path(place) / "target"
        for path in ("a.c", "in/b.c", "both", "in/deep/c"):
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(path, encoding="utf-8")
        for change in (lambda: None,
                       lambda: (target / "a.c").write_text("x.c", encoding="utf-8"),
                       lambda: (target / "in/new").mkdir(),
                       lambda: (shutil.rmtree(target / "in"), (target / "in").write_text("in", encoding="utf-8")),
                       lambda: ((target / "both").unlink(), (target / "both/d").mkdir(parents=True))):
            change()
            mirror(source, target)
            if contents(source) != contents(target):
                yield f"mirror: {contents(source)}, {contents(target)}"


def check_order():
    """Those that do not count and those that end late: the faults of the report are the same with one job and with many."""
    def look(i):
        time.sleep(i % 3 / 1000)
        return ("same code" if i % 7 in (1, 2) else "golden (x)"), 0

    for jobs in (1, 2, 8):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            found = sorted(first_that_count(20, range(1, 100), lambda i: pool.submit(look, i)))
        if found != [(i, *look(i)) for i in range(1, 29)]:
            yield f"{jobs} jobs: {found}"
    if shares([1, 2, 5, 6, 7], 2) != [{1, 2}, {5, 6}]:
        yield f"{shares([1, 2, 5, 6, 7], 2)}"


def self_test():
    wrong = [fault for check in (faults.wrong, check_failures, check_rules, check_mirror, check_order)
             for fault in check()]
    if wrong:
        sys.exit("self-test: " + "\n".join(wrong))


def arguments():
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--jobs", type=int, default=max(1, cores // 2))
    given = parser.parse_intermixed_args()
    for folder in given.folders:
        if not (ROOT / folder).exists():
            parser.error(f"there is no {folder}")
    if not 1 <= given.jobs <= cores:
        parser.error(f"from 1 to {cores} jobs, as there are so many processors")
    return given


def main():
    if sys.argv[1:] == ["self-test"]:
        return self_test()
    given = arguments()
    PLACE.mkdir(parents=True, exist_ok=True)
    os.nice(10)  # it runs for long, and people work beside it
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with open(PLACE / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a copy holds one fault at a time
        try:
            run(given.count, given.seed, given.folders or FOLDERS, given.jobs)
        except KeyboardInterrupt:
            print("stopped before the first fault")
    return 0


if __name__ == "__main__":
    sys.exit(main())
