#!/usr/bin/env python3
"""kills_test.py BERTH: providers, poollets, brokers and schedulers of a tree are killed (-9) while machines come and go. Whatever is
killed when, the ledgers never show more than there is, nor a machine twice; at the end all that fits runs, and no hold is left.
BERTH_KILLS says how many, BERTH_SEED which."""
import os
import random
import sys
import time

from pools import Tree, expect, until

ROOM = {"memory": "64Gi"}


def leaf(cpu):
    return {"cpu": cpu, **ROOM}


def main():
    berth = sys.argv[1]
    kills = int(os.environ.get("BERTH_KILLS", "12"))
    seed = int(os.environ.get("BERTH_SEED", str(time.time_ns() % 10**6)))
    print(f"seed {seed}, {kills} kills", flush=True)
    dice = random.Random(seed)
    spec = {"z1": {"a": leaf(4), "b": leaf(2)}, "z2": {"c": leaf(4)}, "d": leaf(2)}
    made, killed = [], {}
    with Tree(berth, spec) as tree:
        serial = 0
        for _ in range(kills):
            if len(made) < 10 or dice.random() < 0.4:
                tree.machine(f"m{serial}", dice.choice([1, 1, 2]))
                made.append(f"m{serial}")
                serial += 1
            else:
                tree.delete(made.pop(dice.randrange(len(made))))
            time.sleep(dice.random() * 0.06)  # in the midst of whatever is under way
            name = dice.choice(list(tree.parts))
            tree.parts[name].restart()
            killed[name.split()[0]] = killed.get(name.split()[0], 0) + 1
            tree.judge()
        print(f"killed: {killed}", flush=True)
        # Now all that fits lands: room for each that is left.
        while len(made) > 6:
            tree.delete(made.pop())
        until("all are there", lambda: set(tree.running()) == set(made) == set(tree.root.machines()), 180)
        tree.clean(180)
        expect("how many there are", len(tree.judge()), len(made))
    print("ok")


if __name__ == "__main__":
    main()
