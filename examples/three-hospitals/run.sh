#!/usr/bin/env bash
# Three hospitals and a university on this machine: makes identities, splits the bundled biopsies
# over the hospitals, starts three daemons, trains, shows what left each house.
#
#   examples/three-hospitals/run.sh [FOLDER]        (HEDA names the program; default: heda)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
heda=${HEDA:-heda}
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"

daemons=()
stop() { for daemon in "${daemons[@]}"; do kill -TERM "$daemon" 2>/dev/null || true; done; wait; }
trap stop EXIT

# Identities: everyone makes a key and tells the others the fingerprint.
university=$("$heda" init --name university --out university/identity 2>/dev/null)
declare -A print
for hospital in a b c; do
    print[$hospital]=$("$heda" init --name "hospital-$hospital" --out "hospital-$hospital/identity" 2>/dev/null)
done

# Every third row to each hospital, the header to all.
part=0
for hospital in a b c; do
    awk -v part=$part 'NR == 1 || NR % 3 == part' "$here/../../datasets/bcwd.csv" \
        > "hospital-$hospital/biopsies.csv"
    part=$((part + 1))
done

# Configurations: the files beside this script with this run's fingerprints.
cp "$here/../../datasets/bcwd.natural.toml" university/schema.toml
cp "$here/job.toml" university/job.toml
zeros=$(printf '0%.0s' {1..63})
for hospital in a b c; do
    others=(); for other in a b c; do [ $other = $hospital ] || others+=("${print[$other]}"); done
    cp university/schema.toml "hospital-$hospital/schema.toml"
    sed -e "s/sha256:${zeros}1/$university/" -e "s/sha256:${zeros}2/${others[0]}/" \
        -e "s/sha256:${zeros}3/${others[1]}/" "$here/provider.toml" > "hospital-$hospital/provider.toml"
    "$heda" provider check --config "hospital-$hospital/provider.toml"
    "$heda" provider serve --config "hospital-$hospital/provider.toml" \
        > "hospital-$hospital/address" 2> "hospital-$hospital/log" &
    daemons+=($!)
done
port=1
for hospital in a b c; do
    until grep -q listening "hospital-$hospital/address"; do sleep 0.1; done
    address=$(sed 's/listening on //' "hospital-$hospital/address")
    sed -i -e "s/127.0.0.1:$port\"/$address\"/" -e "s/sha256:$zeros$hospital/${print[$hospital]}/" university/job.toml
    port=$((port + 1))
done

# What would it cost? Then train, and see what left.
"$heda" provider preview --config hospital-a/provider.toml --job university/job.toml --as university
"$heda" train university/job.toml --out result
for hospital in a b c; do
    "$heda" provider budget --config "hospital-$hospital/provider.toml"
done
"$heda" provider status --config hospital-a/provider.toml
