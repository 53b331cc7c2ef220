#!/usr/bin/env bash
# The bundled English-French model from nothing but Tatoeba: a first run, word links of its training pairs by eflomal
# (pip install eflomal; it needs a C compiler), and a second run that goes on from the first and teaches one head to
# align. A run that was interrupted goes on.
#
#   scripts/reproduce_en_fr.sh [FOLDER]      # below this repository
#
# The rule of confidence, the measured error rate and heads.json, which lie beside the bundled model, are made by
# scripts/confidence.py, `seq2seq align --gold` and scripts/heads.py.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"

folder=${1:-runs/en-fr}
python -c "import eflomal" || { echo "reproduce_en_fr.sh: pip install eflomal, first" >&2; exit 1; }

train() { # CONFIG RUN [OPTION ...]
    local resume=()
    if [ -d "$2" ]; then resume=(--resume); fi
    seq2seq train "configs/$1" --output "$2" "${@:3}" "${resume[@]}"
}

started=$SECONDS
mkdir -p "$folder"
train en-fr.toml "$folder/first"
if [ ! -f "$folder/links.tsv" ]; then
    python scripts/link.py configs/en-fr.toml --eflomal --output "$folder/links.tsv"
fi
train en-fr-continued.toml "$folder/continued" --set "train.init=$folder/first/model" --set "train.links=$folder/links.tsv"
echo "trained in $(((SECONDS - started) / 60)) minutes"

seq2seq evaluate --model "$folder/continued/model" --dataset tatoeba --split test --moses
