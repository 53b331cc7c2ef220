#!/usr/bin/env bash
# Multi30k English-French from data to scores, in both protocols: plain text (sacreBLEU 13a), and the literature's (Moses
# normalisation and tokens, lower case). A run that was interrupted goes on.
#
#   scripts/reproduce_multi30k.sh [FOLDER] [SETTING ...]      # as in: runs/seed-2 train.seed=2
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"

folder=${1:-runs/multi30k}
settings=()
for setting in "${@:2}"; do settings+=(--set "$setting"); done
resume=()
if [ -d "$folder" ]; then resume=(--resume); fi

started=$SECONDS
seq2seq train configs/multi30k.toml "${settings[@]}" --output "$folder" "${resume[@]}"
echo "trained in $(((SECONDS - started) / 60)) minutes"

echo "dev"
seq2seq evaluate --model "$folder/model" --dataset multi30k --split dev --moses
for split in test_2016_flickr test_2017_flickr test_2017_mscoco; do
    echo "$split"
    seq2seq evaluate --model "$folder/model" --dataset multi30k --split "$split" --moses || echo "$split is not at hand"
done
