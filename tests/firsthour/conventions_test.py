#!/usr/bin/env python3
"""The command line as people know it from others: --version, help COMMAND, examples, near words, -o, errors that say which
command they are of, and completion in the shells that are installed here."""
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

from person import expect, expect_in


class Line:
    def __init__(self, berth):
        self.berth = berth

    def __call__(self, *words):
        done = subprocess.run([self.berth, *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr


def commands_of(help_text):
    """The names below "Commands:" or CLI11's "Subcommands:"."""
    part = re.split(r"^(?:Commands|Subcommands):\n", help_text, flags=re.M)
    return re.findall(r"^  ([a-z]+) ", part[1].split("\n\n")[0], re.M) if len(part) > 1 else []


def every_command_has_help_and_examples(berth):
    code, text, _ = berth("help")
    expect("berth help", code, 0)
    names = commands_of(text)
    expect_in("berth help", " ".join(names), "up", "whatif", "completion", "version")
    whole = [[name] for name in names]
    for words in whole:
        code, said, trouble = berth("help", *words)
        expect(f"berth help {' '.join(words)}", (code, trouble), (0, ""))
        expect(f"berth {' '.join(words)} --help", berth(*words, "--help")[1], said)
        expect_in(f"berth help {' '.join(words)}", said, "Examples:\n", "berth " + " ".join(words))
        examples = said.split("Examples:\n")[1]
        for flag in re.findall(r"(?<= )--[a-z-]+", "\n".join(l for l in examples.splitlines() if l.startswith("  berth " + words[0]))):
            expect_in(f"an example of berth {' '.join(words)} has a flag that is not there", said.split("Examples:")[0] + everything_below(
                berth, words, said), flag)
        whole += [words + [name] for name in commands_of(said.split("Examples:")[0])]
    expect("commands with others behind them", ["store", "check"] in whole, True)


def everything_below(berth, words, said):
    return "".join(berth("help", *words, name)[1] for name in commands_of(said.split("Examples:")[0]))


def versions_agree(berth):
    code, text, _ = berth("version")
    expect("berth version", (code, bool(re.fullmatch(r"berth \d+\.\d+\.\d+\S*\n", text))), (0, True))
    expect("berth --version", berth("--version")[:2], (0, text))
    code, document, _ = berth("version", "-o", "json")
    expect("as JSON", json.loads(document)["version"], text.split()[1])
    expect_in("as YAML", berth("version", "-o", "yaml")[1], "version: ", "kubernetes: \"v1.")


def mistakes_are_answered_kindly(berth):
    for words, said in (
            (["explian"], 'berth: unknown command "explian"; did you mean explain? '),
            (["help", "whatfi"], 'berth: unknown command "whatfi"; did you mean whatif? '),
            (["banana"], "berth: unknown command \"banana\"; 'berth help' lists them"),
            (["up", "--nodse", "3"], 'berth up: unknown flag "--nodse"; did you mean --nodes? '),
            (["up", "--nodse=3"], 'berth up: unknown flag "--nodse=3"; did you mean --nodes? '),
            (["store", "chek"], 'berth store: unknown command "chek"; did you mean check? '),
            (["store", "check", "--data-dri", "x"], 'berth store check: unknown flag "--data-dri"; did you mean --data-dir? '),
            (["store"], "berth store: "),
            (["agent", "paln"], 'berth agent: unknown command "paln"; did you mean plan? '),
            (["agent", "plan", "--topolgy", "live"], 'berth agent plan: unknown flag "--topolgy"; did you mean --topology? '),
            (["fleet", "provder"], 'berth fleet: unknown command "provder"; did you mean provider? '),
            (["fleet", "tree", "-o", "text"], "berth fleet tree: "),
            (["arbitrator", "--polcy", "floor"], 'berth arbitrator: unknown flag "--polcy"; did you mean --policy? '),
            (["arbitrator", "--mode", "gate"], "berth arbitrator: "),
            (["completion", "csh"], "berth completion: "),
            (["bench", "SchedulingBasci"], 'berth bench: unknown workload "SchedulingBasci"; did you mean SchedulingBasic? '),
            (["version", "-o", "xml"], "berth version: ")):
        code, _, trouble = berth(*words)
        expect(" ".join(words), code, 2)
        expect(f"{' '.join(words)}: {trouble}", trouble.startswith(said), True)
    for words, said in ((["store", "check", "--data-dir", "/nowhere"], "berth store check: "),
                        (["token", "list", "--data-dir", "/nowhere"], "berth token list: "),
                        (["certificate", "list", "--data-dir", "/nowhere"], "berth certificate list: "),
                        (["whatif", "-f", "/nowhere"], "berth whatif: "),
                        (["explain", "pod", "a", "--kubeconfig", "/nowhere"], "berth explain: "),
                        (["reserve", "a", "-r", "cpu=1", "--owner", "a=b", "--kubeconfig", "/nowhere"], "berth reserve"),
                        (["migrate", "pod", "a", "--kubeconfig", "/nowhere"], "berth migrate: "),
                        (["scheduler", "--kubeconfig", "/nowhere"], "berth scheduler: ")):
        code, _, trouble = berth(*words)
        expect(f"{' '.join(words)}: {code} {trouble}", code != 0 and trouble.splitlines()[-1].startswith(said), True)


def answers_have_forms(berth):
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}\n"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: default}\nspec: {containers: [{name: a, image: b}]}\n"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as dump:
        dump.write(node + "---\n" + pod)
        dump.flush()
        for words in (["whatif", "-f", dump.name], ["explain", "pod", "web", "-f", dump.name],
                      ["reserve", "r", "-r", "cpu=1", "--owner", "app=web"], ["shares", "-f", dump.name]):
            code, document, trouble = berth(*words, "-o", "json")
            expect(f"{' '.join(words)} -o json: {trouble}", code, 0)
            first = next(iter(json.loads(document)))
            expect_in(" ".join(words) + " -o yaml", berth(*words, "-o", "yaml")[1], first + ":")
        expect("names", berth("whatif", "-f", dump.name, "-o", "name"), (0, "pod/web\n", ""))
        expect_in("wide", berth("whatif", "-f", dump.name, "-o", "wide")[1], "scores n1=")


def slips_of_the_pen_are_told(berth):
    consumer = "apiVersion: kuabe-arbitrator.incubator.k8s.io/v1\nkind: Consumer\nmetadata: {name: a}\nspec: {%s}\n"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as dump:
        dump.write(consumer % "wieght: 3" + "---\n" + consumer % "weight: 2")
        dump.flush()
        code, _, trouble = berth("shares", "-f", dump.name)
        expect("shares with a slip", code, 0)
        expect_in("the slip", trouble, "wieght")
        expect_in("the other of its name", trouble, "Consumer a is given 2 times; the last one counts")


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, words, directory, berth):
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            path = os.path.dirname(berth) + ":" + os.environ["PATH"]
            os.execvpe(words[0], words, dict(os.environ, HOME=directory, PATH=path, TERM="dumb", PS1="", INPUTRC="/dev/null",
                                             XDG_CONFIG_HOME=directory))
        self.screen = ""

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def until(self, wanted, seconds=30):
        end = time.monotonic() + seconds
        while not re.search(wanted, self.screen):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.terminal], [], [], left)[0]:
                raise SystemExit(f"the terminal does not show {wanted!r}, but {self.screen!r}")
            self.screen += os.read(self.terminal, 65536).decode(errors="replace")
        shown, self.screen = self.screen, ""
        return shown

    def close(self):
        os.close(self.terminal)
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)


def completes_on_a_terminal(words, load, berth):
    with tempfile.TemporaryDirectory() as directory:
        with open(directory + "/cluster-dump.yaml", "w"):
            pass
        shell = Shell(words, directory, berth)
        try:
            shell.type(f"cd {directory}; {load}; echo loa''ded\n")
            shell.until("loaded")
            shell.type("berth comp\t")
            shell.until("berth completion ")
            shell.type("ba\t")
            shell.until(r"bash ")
            shell.type("\nberth up --node-c\t")
            shell.until("--node-cpu ")
            shell.type("2 --log-level warn\t")
            shell.until("warning ")
            shell.type("\x15berth store rep\t")
            shell.until("repair ")
            shell.type("--acc\t")
            shell.until("--accept-loss ")
            shell.type("\x15berth agent pl\t")
            shell.until("plan ")
            shell.type("--cgroup v\t\t")
            shell.until("v[12]")
            shell.type("\x15berth fleet pool\t")
            shell.until("poollet ")
            shell.type("\x15berth arbitrator --mode ga\t")
            shell.until("gates ")
            shell.type("\x15berth whatif -f cluster-d\t")
            shell.until("cluster-dump.yaml")
            if words[0] != "fish":  # it puts the first of several into the line
                shell.type("\x15berth store \t\t")
                shell.until("restore")
        finally:
            shell.close()


SHELLS = {"bash": (["bash", "--norc", "--noprofile", "-i"], "source <(berth completion bash)"),
          "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u; source <(berth completion zsh)"),
          "fish": (["fish", "--no-config", "-i"], "berth completion fish | source")}


def test(binary):
    berth = Line(binary)
    every_command_has_help_and_examples(berth)
    versions_agree(berth)
    mistakes_are_answered_kindly(berth)
    answers_have_forms(berth)
    slips_of_the_pen_are_told(berth)
    for name, (words, load) in SHELLS.items():
        if not shutil.which(name):
            raise SystemExit(f"{name} is not installed: tools/packages names it")
        completes_on_a_terminal(words, load, binary)


test(os.path.abspath(sys.argv[1]))
print("conventions: passed")
