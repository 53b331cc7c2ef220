"""Self-attention and cross-attention side by side (section 9): who asks, and who answers."""

from seq2seq.insight.heatmap import HeatMap
from seq2seq.insight.panels import Panel, Prose, Table
from seq2seq.insight.scene import KINDS, Kind, Scene
from seq2seq.translation.result import check_number

ROLES: dict[Kind, tuple[str, str]] = {
    "encoder": ("each piece of the source", "all pieces of the source"),
    "cross": (
        "each piece of the translation, while it is predicted",
        "all pieces of the source, as the encoder left them",
    ),
    "decoder": ("each piece of the translation that has been read", "it and the pieces before it"),
}


def side_map(scene: Scene, kind: Kind, layer: int, head: int | None) -> HeatMap:
    """One attention of one layer and head (None: their mean), between pieces."""
    scene.check(layer, head, kind)
    weights = scene.attentions(kind)[layer].A[0]
    rows, columns = scene.labels(kind)
    shown = weights.mean(dim=0) if head is None else weights[head]
    name = "mean over heads" if head is None else f"head {head}"
    return HeatMap(shown.cpu().numpy(), rows, columns, f"{KINDS[kind]}, layer {layer}, {name}")


def panels(scene: Scene, layer: int, head: int | None) -> list[Panel]:
    """The three attentions of one layer; where a stack has fewer layers, its last one, as the captions say."""
    most = max(len(scene.attentions(kind)) for kind in ROLES)
    check_number("layer", layer, most)
    shown: list[Panel] = [
        Table(
            "One formula, two questions",
            ["attention", "who asks (Q)", "who answers (K, V)"],
            [[KINDS[kind], asks, answers] for kind, (asks, answers) in ROLES.items()],
        ),
        Prose(
            "A single head looks wherever it has learned to look: at the piece before, at `</s>`, at the mark that "
            "ends the sentence. Which source word a target word is made of shows best in the last layers and in the "
            "mean over heads; in cross-attention a row is named by the piece that it predicts."
        ),
    ]
    for kind in ROLES:
        shown.append(side_map(scene, kind, min(layer, len(scene.attentions(kind)) - 1), head))
    return shown
