"""Score suggestions of your system, with an interval, and test it against another: `python examples/score_a_system.py`.

The two systems here are a keyword rule and the most frequent replies of the training split, in Spanish, on the embedded
sample. Needs `pip install '.[all]'`.
"""

from __future__ import annotations

from collections import Counter

from mrs_datasets import open_prepared
from mrs_metrics import aggregate, bootstrap_interval, paired_bootstrap_interval, permutation_test, score_rouge


def main() -> None:
    data = open_prepared("sample")  # or a folder of `mrs data prepare`, or ORG/NAME
    train, test = data.load("es", "train"), data.load("es", "test")
    frequent = [reply for reply, _ in Counter(train["reply"]).most_common(3)]

    def frequent_replies(message: str) -> list[str]:
        return frequent

    def keyword_rule(message: str) -> list[str]:
        if "gracias" in message.lower():
            return ["¡De nada!", "No hay de qué.", "Un placer."]
        return ["Sí, ¿a qué hora?", "No, lo siento.", "Te digo algo luego."] if "?" in message else frequent

    scores = {}
    for system in (frequent_replies, keyword_rule):
        # Three suggestions for each message; scores per example, so that intervals and tests cost nothing more.
        suggestions = [system(message) for message in test["message"]]
        result = scores[system] = score_rouge(suggestions, test["reply"], language="es")
        low, high = bootstrap_interval(result.weighted)
        print(f"{system.__name__:16}  weighted ROUGE {aggregate(result)['weighted']:.4f} [{low:.4f}, {high:.4f}]")

    a, b = scores[keyword_rule].weighted, scores[frequent_replies].weighted
    low, high = paired_bootstrap_interval(a, b)
    print(f"difference {(a - b).mean():+.4f} [{low:+.4f}, {high:+.4f}], p = {permutation_test(a, b):.4f}")
    print(scores[keyword_rule].signature)  # cite it with the score


if __name__ == "__main__":
    main()
