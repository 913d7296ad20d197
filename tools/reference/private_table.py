"""Writes the tables of docs/privacy.md from docs/private/private.csv and docs/private/peers.csv.

    python tools/reference/private_table.py
"""

import collections
import csv
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/privacy.md"
PLACE = ("<!-- measured -->\n", "<!-- end of measured -->\n")
EPSILONS = ["0.1", "0.2", "0.5", "1", "2", "5", "10"]
BUNDLED = [f"{name}.{coding}" for coding in ["natural", "paper"] for name in ["bcwd", "adult", "crx", "car"]]
TEN = ["banana", "chess", "german", "magic", "mushroom", "phoneme", "ring", "spambase", "titanic", "twonorm"]
SMALL = ["mammographic", "pima", "tic-tac-toe"]


def read(name, *keys):
    """Rows by their keys."""
    found = collections.defaultdict(list)
    with open(ROOT / f"docs/private/{name}.csv", newline="") as file:
        for row in csv.DictReader(file):
            found[tuple(row[key] for key in keys)].append(row)
    return found


def mean(rows, column, factor=1.0):
    return factor * sum(float(row[column]) for row in rows) / len(rows)


def line(*cells):
    return "| " + " | ".join(cells) + " |\n"


def table(head, body):
    return line(*head) + line(*["---"] * len(head)) + "".join(line(*row) for row in body)


def without_an_answer(ours):
    """Accuracy with one answer lost less that with the same noise and all answers, by length of the job."""
    groups = {"8 to 20": (8, 20), "21 to 40": (21, 40), "41 to 60": (41, 60), "64, over batches": (64, 64)}
    for title, (least, most) in groups.items():
        changes = []
        for (name, arm, epsilon), rows in ours.items():
            if arm != "lost" or not least <= int(rows[0]["gradients"]) <= most:
                continue
            whole = ours[name, "typical", epsilon]
            assert [row["split"] for row in rows] == [row["split"] for row in whole]
            changes.append(mean(rows, "accuracy", 100) - mean(whole, "accuracy", 100))
        centre = sum(changes) / len(changes)
        spread = sum((change - centre) ** 2 for change in changes) / (len(changes) - 1)
        yield [title, str(len(changes)), f"{centre:+.2f} ± {(spread / len(changes)) ** 0.5:.2f}"]


def main():
    ours = read("private", "dataset", "arm", "epsilon")
    peers = read("peers", "dataset", "model", "epsilon")

    def clear(name):
        return mean(peers[name, "clear", "inf"], "accuracy", 100)

    def lost(rows, name):
        return mean(rows, "accuracy", 100) - clear(name)

    def points(name):
        arms = [lost(ours[name, "typical", epsilon], name) for epsilon in EPSILONS]
        return [name, f"{clear(name):.2f}", *(f"{value:+.2f}" for value in arms)]

    def average(names):
        arms = [sum(lost(ours[n, "typical", e], n) for n in names) / len(names) for e in EPSILONS]
        return ["mean of these ten", "", *(f"{value:+.2f}" for value in arms)]

    head = ["data set", "clear, %", *(f"ε = {epsilon}" for epsilon in EPSILONS)]
    first = table(head, [*map(points, BUNDLED), *map(points, TEN), average(TEN), *map(points, SMALL)])

    def beside(name):
        one = ours[name, "typical", "1"]
        others = [ours[name, arm, "1"] for arm in ["typical", "collusion", "moments", "bounds", "published"]]
        automatic = next((key for key in ours if key[0] == name and key[1] == "automatic"), None)
        others += [ours[automatic]] if automatic else []
        others += [peers[name, f"diffprivlib {model}", "1.0"] for model in ["logistic", "bayes", "forest"]]
        points = [f"{lost(rows, name):+.2f}" for rows in others]
        if automatic:
            points[5] += f" ({float(automatic[2]):.0f})"
        else:
            points.insert(5, "–")
        return [
            name,
            *points,
            f"{mean(one, 'auc'):.3f} / {mean(peers[name, 'clear', 'inf'], 'auc'):.3f}",
            f"{mean(one, 'log_loss'):.3f} / {mean(peers[name, 'clear', 'inf'], 'log_loss'):.3f}",
            f"{mean(one, 'gradients'):.0f}",
        ]

    head = ["data set, ε = 1", "Heda", "one of three colludes", "moments bought", "bounds only", "all published"]
    head += ["at the automatic ε (its sum)"]
    head += ["diffprivlib logistic", "its naive Bayes", "its forest", "AUC, Heda / clear", "log-loss", "gradients"]
    second = table(head, map(beside, [*BUNDLED, *TEN, *SMALL]))
    third = table(
        ["gradients of the job", "jobs (data set and ε)", "change of accuracy when one answer is lost, points"],
        without_an_answer(ours),
    )
    text = PAGE.read_text()
    start, end = text.index(PLACE[0]) + len(PLACE[0]), text.index(PLACE[1])
    PAGE.write_text(text[:start] + "\n" + first + "\n" + second + "\n" + third + "\n" + text[end:])


if __name__ == "__main__":
    main()
