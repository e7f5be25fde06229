# SPDX-License-Identifier: Apache-2.0
"""A process that judges graphs, so that a crash ends it and not the search. One runner, one caller."""
import multiprocessing

from .judge import Judge, Verdict

SPAWN = multiprocessing.get_context("spawn")


def serve(pipe, library):
    judge = Judge(library, lambda name: pipe.send(("stage", name)))
    try:
        while True:
            what, arguments = pipe.recv()
            pipe.send(("result", getattr(judge, what)(*arguments)))
    except EOFError:
        pass
    finally:
        judge.close()


class Runner:
    def __init__(self, library, limit=20):
        self.library, self.limit, self.process = library, limit, None

    def start(self):
        self.pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=serve, args=(theirs, self.library), daemon=True)
        self.process.start()
        theirs.close()

    def call(self, what, *arguments):
        if not self.process:
            self.start()
        stage = "start"
        try:
            self.pipe.send((what, arguments))
            while self.pipe.poll(self.limit if stage != "start" else 10 * self.limit):  # a busy machine starts slowly
                kind, value = self.pipe.recv()
                if kind == "result":
                    return value
                stage = value
            return self.ended("hang", stage)
        except (EOFError, ConnectionError):
            return self.ended("crash", stage)

    def ended(self, kind, stage):
        self.close(kind == "hang")
        code = self.process.exitcode
        self.process = None
        return Verdict(kind if stage == "ours" else "peer", f"{kind} while {stage}, exit code {code}")

    def check(self, graph, feeds, device=None):
        return self.call("check", graph, feeds, device)

    def peer(self, graph, feeds):
        result = self.call("peer", graph, feeds)
        return [result.message] * len(feeds) if isinstance(result, Verdict) else result

    def close(self, kill=False):
        if self.process:
            self.pipe.close()
            if kill:
                self.process.kill()
            self.process.join(10)
