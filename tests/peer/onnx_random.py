# SPDX-License-Identifier: Apache-2.0
"""Random ONNX graphs of 5 to 40 nodes with symbolic dims, each at five bindings of its sizes (0 and 1 among them), on PyPI's
onnxruntime without optimisations and on librlx. A graph on which they differ is cut down and printed with its seed.

usage: onnx_random.py [--library librlx.so] [--seconds S] [--count N] [--seed FIRST] [--jobs J] [--keep FOLDER] [--no-shrink]

Where onnxruntime refuses a graph at some size, librlx may too. Where the two differ and the reference evaluator of onnx agrees with
librlx, that is no fault of librlx: such graphs are counted by their nodes. Exit status 1: faults were found.
"""
import argparse
import collections
import multiprocessing
import pathlib
import queue
import re
import sys
import time

import numpy as np

from random_onnx.judge import halves_in, narrows_doubles
from random_onnx.known import known
from random_onnx.make import make
from random_onnx.runner import SPAWN, Runner
from random_onnx.shrink import Shrinker, signature

ROOT = pathlib.Path(__file__).resolve().parents[2]
np.set_printoptions(threshold=30, precision=6, linewidth=150)


def judged(runner, seed, options):
    """What there is to say about one seed."""
    graph, feeds = make(seed, options.opset)
    if not graph.outputs:
        return {"kind": "empty"}
    rounds_inside = halves_in(graph) or narrows_doubles(graph)
    device = b"reference" if seed % 16 == 7 and not rounds_inside else None  # it rounds at the outputs alone
    verdict = runner.check(graph, feeds, device)
    result = {"kind": verdict.kind, "nodes": len(graph.nodes), "runs": verdict.runs, "seed": seed, "message": verdict.message,
              "ops": collections.Counter(node.op for node in graph.nodes)}
    if not verdict.bad():
        return result
    judge = second_judge(runner, graph, feeds, verdict, device)
    is_settled = judge in ("librlx", "both")
    if not options.no_shrink:
        graph, feeds, verdict = Shrinker(runner, graph, feeds, verdict, device).run()
        judge = second_judge(runner, graph, feeds, verdict, device)
    inner = runner.call("inner", graph, feeds[max(verdict.binding, 0)]) if verdict.kind in ("differs", "refused") else {}
    why = known(graph, verdict, inner if isinstance(inner, dict) else {}, judge)
    if why:
        return result | {"kind": "known", "message": why}
    if is_settled or judge in ("librlx", "both"):
        ops = "+".join(sorted({node.op for node in graph.nodes}))
        return result | {"kind": "settled", "message": f"onnx.reference agrees with librlx: {ops}"}
    return result | {"text": report(runner, seed, graph, feeds, verdict, device, judge), "graph": graph, "feeds": feeds,
                     "signature": signature(verdict) + (tuple(sorted({node.op for node in graph.nodes})),)}


def second_judge(runner, graph, feeds, verdict, device):
    """Whom the reference evaluator agrees with where results differ."""
    if verdict.kind != "differs":
        return ""
    return runner.call("arbiter", graph, feeds[max(verdict.binding, 0)], verdict.output, device)


def report(runner, seed, graph, feeds, verdict, device, judge):
    lines = [f"== seed {seed}{' on reference' if device else ''}: {verdict.kind}: {verdict.message}", graph.text().rstrip()]
    feed = feeds[max(verdict.binding, 0)]
    lines += [f"   {name} = {shown(array)}" for name, array in feed.items()]
    if judge:
        lines.append(f"   the reference evaluator agrees with: {judge}")
    return "\n".join(lines)


def shown(array):
    text = " ".join(str(array).split())
    return f"{array.dtype}{list(array.shape)} {text if len(text) < 300 else text[:300] + ' ...'}"


def work(options, share, results, stop):
    runner = Runner(options.library)
    seed = options.seed + share
    while not stop.is_set() and (not options.count or seed < options.seed + options.count):
        try:
            results.put(judged(runner, seed, options))
        except Exception as error:  # of the tool itself
            results.put({"kind": "broken", "seed": seed, "message": f"{type(error).__name__}: {error}"})
        seed += options.jobs
    results.put(None)
    runner.close()


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--library", default=str(ROOT / "build/release/librlx.so"))
    parser.add_argument("--seconds", type=float, default=0, help="0: until the count is reached")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=max(1, (multiprocessing.cpu_count() + 1) // 2))
    parser.add_argument("--opset", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the failing graphs as files")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--tell", action="store_true", help="what onnxruntime refuses, and how often each op was drawn")
    options = parser.parse_args()
    if not options.seconds and not options.count:
        options.seconds = 60
    return options


def keep(folder, result):
    folder.mkdir(parents=True, exist_ok=True)
    name = folder / f"seed{result['seed']}"
    name.with_suffix(".onnx").write_bytes(result["graph"].model().SerializeToString())
    name.with_suffix(".txt").write_text(result["text"] + "\n")
    for i, feed in enumerate(result["feeds"]):
        np.savez(f"{name}.{i}.npz", **feed)


class Tally:
    def __init__(self, options):
        self.options, self.kinds, self.faults = options, collections.Counter(), collections.Counter()
        self.ops, self.refusals, self.nodes, self.runs = collections.Counter(), collections.Counter(), 0, 0
        self.settled = collections.Counter()

    def add(self, result):
        self.kinds[result["kind"]] += 1
        self.nodes += result.get("nodes", 0)
        self.runs += result.get("runs", 0)
        self.ops.update(result.get("ops", {}))
        if result["kind"] == "peer":
            self.refusals[re.sub(r"'[^']*'|\d+", "#", result["message"])[:200]] += 1
        if result["kind"] in ("settled", "known"):
            self.settled[result["message"]] += 1
        if result["kind"] == "broken":
            print(f"== seed {result['seed']}: the tool fails: {result['message']}", flush=True)
        if "text" in result:
            self.faults[result["signature"]] += 1
            if self.faults[result["signature"]] <= 2:
                print(result["text"], flush=True)
            if self.options.keep:
                keep(self.options.keep, result)

    def say(self, seconds):
        judged_ = self.kinds["ok"] + self.kinds["known"] + self.kinds["settled"] + sum(self.faults.values())
        print(f"{judged_} graphs of {self.nodes // max(1, sum(self.kinds.values()))} nodes on average, {self.runs} runs, {seconds:.0f} s: "
              f"{sum(self.faults.values())} faults of {len(self.faults)} kinds, {self.kinds['known']} known differences, "
              f"{self.kinds['settled']} that the reference evaluator settles; "
              f"{self.kinds['peer']} more graphs that onnxruntime refuses at all sizes")
        for (kind, words, ops), count in self.faults.most_common():
            print(f"  {count:5} {kind} {'+'.join(ops)} {words}")
        for words, count in self.settled.most_common():
            print(f"  {count:5} no fault: {words}")
        if self.options.tell:
            for words, count in self.refusals.most_common(20):
                print(f"  {count:5} {words}")
            print("  ops:", ", ".join(f"{op} {count}" for op, count in self.ops.most_common()))


def main():
    options = parsed()
    begin, results, stop, tally = time.monotonic(), SPAWN.Queue(), SPAWN.Event(), Tally(options)
    processes = [SPAWN.Process(target=work, args=(options, share, results, stop)) for share in range(options.jobs)]
    for process in processes:
        process.start()
    left = options.jobs
    try:
        while left:
            if options.seconds and time.monotonic() - begin > options.seconds:
                stop.set()
            try:
                result = results.get(timeout=1)
            except queue.Empty:
                left = left if any(process.is_alive() for process in processes) else 0
                continue
            if result is None:
                left -= 1
            else:
                tally.add(result)
    except KeyboardInterrupt:
        stop.set()
    tally.say(time.monotonic() - begin)
    return 1 if tally.faults or tally.kinds["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
