"""What the page says in words: what is compared, who is ahead, and how far to trust it."""

from collections.abc import Sequence
from html import escape

from samix.core.comparing import Value, paired_difference
from samix.report.groups import Group
from samix.report.lines import Line
from samix.report.standing import differences_of, paper_of, scores_by_seed

WORDS = {
    "plain": "trains on the pictures as they are",
    "mixup": "fades one picture into another",
    "cutmix": "pastes a box of one picture into another",
    "automix": "learns masks from the features of both pictures",
    "adautomix": "learns masks that make mixtures hard for the classifier, yet like both pictures",
    "samix": "learns, while the classifier trains, which pixels to take from which picture",
    "samix-i": "learns which pixels to take from which picture, so that both can be told from all others",
    "samix-c": "learns the same, so that the clusters of both can be told from all others",
}
LEGENDS = {
    "top1": "top-1: median over the last tested epochs, ten unless a recipe says otherwise; best: of all "
    "tested ones. ECE: how far confidence and accuracy lie apart, lower is better.",
    "knn": "Of the online encoder after training: weighted nearest neighbours, an exact linear probe, and "
    "how well its clusters agree with the labels.",
}


def introduction(groups: Sequence[Group]) -> str:
    """What is compared, in plain words."""
    same = ("data", "encoder", "epochs", "batch_size")
    setups = {str([run.config.get(key) for key in same]) for group in groups for run in group.runs}
    if len(setups) > 1:
        opening = "These runs differ in more than the way they mix pictures; their settings are at the end."
    elif len(groups) > 1:
        opening = "Every row trains the same network on the same pictures; they differ in how they mix."
    else:
        opening = "One way to train a network on mixed pictures."
    used = [mixup for mixup in WORDS if any(group.mixup == mixup for group in groups)]
    known = "; ".join(f"<b>{mixup}</b> {WORDS[mixup]}" for mixup in used)
    return " ".join(part for part in (opening, f"{known}." if known else "", clean_branches(groups)) if part)


def clean_branches(groups: Sequence[Group]) -> str:
    """Says which methods also learn from the clean pictures, where not all do: that helps by itself."""
    with_branch = [group.method for group in groups if has_clean_branch(group)]
    if not with_branch or len(with_branch) == len(groups):
        return ""
    names = ", ".join(f"<b>{escape(name)}</b>" for name in with_branch)
    return f"In every step {names} also learns from the pictures as they are (a clean branch)."


def has_clean_branch(group: Group) -> bool:
    """Whether a mixing method of this group has a weighted clean branch."""
    objective = group.runs[0].config.get("objective") or {}
    return group.mixup != "plain" and bool(objective.get("clean_weight"))


def standing_note(lines: Sequence[Line]) -> str:
    """What the columns beside the measures say, where there are such."""
    parts = []
    if any(differences_of(lines)):
        parts.append(
            "Against plain: mean difference over shared seeds with its 95 % interval (t distribution); a tie "
            "where it includes 0."
        )
    if any(paper_of(line.group) for line in lines):
        parts.append("Paper: the number of the paper's table for this recipe.")
    return " ".join(parts)


NAMES = {"top1": "top-1", "knn": "k-NN"}


def score_of(line: Line) -> Value | None:
    """The accuracy that runs are compared by, None while it is not known."""
    return line.values.get(line.group.accuracy)


def lead_of(line: Line, other: Line) -> float:
    """How many points one line lies before another, between the means as the table shows them."""
    shown, below = (round(each.values[each.group.accuracy].mean, 2) for each in (line, other))
    return shown - below


def verdict(lines: Sequence[Line]) -> str:
    """Who is ahead, by how much, and how much that can be trusted."""
    measured = [line for line in lines if score_of(line)]
    measured.sort(key=lambda line: -line.values[line.group.accuracy].mean)
    if not measured:
        return "No run is finished yet."
    best, score = measured[0], measured[0].values[measured[0].group.accuracy]
    text = f"<b>{escape(best.group.method)}</b> reaches {score.mean:.2f} % {NAMES[best.group.accuracy]}"
    if len(measured) == 1:
        return text + "."
    behind = measured[1]
    text += f", {lead_of(best, behind):.2f} points more than {escape(behind.group.method)}"
    plain = next((line for line in measured[2:] if line.group.mixup == "plain"), None)
    if plain:
        text += f" and {lead_of(best, plain):.2f} more than {escape(plain.group.method)}"
    difference = paired_difference(scores_by_seed(best.group), scores_by_seed(behind.group))
    if difference is not None and difference.word == "tie":
        differ = difference.text(2).removesuffix(f" {difference.word}")
        text += f". The first two are a tie: seed by seed they differ by {differ}"
    if any(line.values[line.group.accuracy].std is None for line in measured):
        text += ". Methods with one seed only: small differences may be chance"
    return text + "."
