#!/usr/bin/env bash
# Runs the bundled GPU programs on this machine. Needs bash, coreutils and an NVIDIA driver; no Rust.
#
#   run.sh gpu             the GPU suite: a line per check, then 'N passed, N failed'
#   run.sh c               the C programs over their three layouts on the GPU, some 130 runs
#   run.sh cpu             the Rust programs of `gpu` on the CPU device
#   run.sh bench OPTION .. the benchmarks on the GPU, in at most 300 s: --json FILE, --only NAME,... and more
#   run.sh speed           floor and time per call in short; load time of each image
#   run.sh exec PROGRAM .. a program of bin/ (loader-nv, loader-cpu, gpurpc-top, gpurpc-bench), at most 120 s
#   run.sh list            what is in the bundle
#
# LAYOUTS='line compact', LIMIT=SECONDS for each program and BUDGET=SECONDS for a suite can be set.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
limit=${LIMIT:-20}
budget=${BUDGET:-150}
layouts=${LAYOUTS:-line compact}
work=$(mktemp -d) || exit 125
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
export FRANCE=Paris

# The path of image $2 for layout $1.
image() {
    local folder=$here/images/$device
    [ "$1" = compact ] && folder=$folder/compact
    echo "$folder/$2.$extension"
}

# Every program runs under a time limit: a GPU program that hangs must not take the machine with it.
bounded() { timeout -k 5 "$limit" "$@" </dev/null; }

now() { date +%s%N; }
ms() { echo $((($2 - $1) / 1000000)); }

pass() { passed=$((passed + 1)); echo "PASS $1"; }
skip() { skipped=$((skipped + 1)); echo "SKIP $1"; }
fail() {
    failed=$((failed + 1))
    echo "FAIL $1: $2"
    for stream in out err; do
        tail -n 4 "$work/$stream" 2>/dev/null | cut -c 1-300 | sed "s/^/       $stream| /"
    done
}

# check NAME CODE TEST COMMAND...: runs COMMAND, wants exit code CODE and TEST (a function or
# `true`) to hold of $work/out and $work/err.
check() {
    local name=$1 want=$2 test=$3 start code
    shift 3
    : >"$work/out" >"$work/err"
    if [ "$SECONDS" -gt "$budget" ]; then
        fail "$name" "not run: the suite's $budget s are over"
        return
    fi
    start=$(now)
    bounded "$@" >"$work/out" 2>"$work/err"
    code=$?
    name="$name ($(ms "$start" "$(now)") ms)"
    if [ "$code" != "$want" ]; then
        fail "$name" "exit code $code, not $want"
    elif ! $test; then
        fail "$name" "exit code $code as wanted, but '$test' does not hold of the output"
    else
        pass "$name"
    fi
}

# What is wanted of outputs.
greets_all() {
    [ "$(grep -cE '^hello from block [0-9]+ thread [0-9]+$' "$work/out")" = "$1" ] &&
        [ "$(grep -E '^hello from' "$work/out" | sort -u | wc -l)" = "$1" ]
}
greets_one() { greets_all 1 && grep -q '^arg .*: a$' "$work/out" && grep -q '^arg .*: b$' "$work/out"; }
greets_8448() { greets_all 8448 && [ "$(grep -vcE '^(hello from|arg [0-9]+:)' "$work/out")" = 0 ]; }
says_paris() { grep -q Paris "$work/out"; }
says_where() { grep -qE '\.rs:[0-9]+' "$work/err" && grep -qi 'index out of bounds' "$work/err"; }
says_something() { [ -s "$work/out" ] || [ -s "$work/err" ]; }
says_nothing() { [ ! -s "$work/out" ] && [ ! -s "$work/err" ]; }
one_sentence() { [ "$(wc -l <"$work/err")" = 1 ] && [ ! -s "$work/out" ]; }

# The programs of both devices, small.
basics() {
    local l=$1
    check "$l hello" 0 greets_one "$loader" "$(image "$l" hello)" a b
    check "$l args" 4 says_paris "$loader" "$(image "$l" args)" 1 2 3
    check "$l exit 42" 42 true "$loader" "$(image "$l" exit)" 42
    check "$l panic" 101 says_where "$loader" "$(image "$l" panic)"
    check "$l unknown" 0 says_something "$loader" "$(image "$l" unknown)"
    check "$l increment, 1x1" 0 true "$loader" "$(image "$l" increment)"
    check "$l increment 2000, 8x16" 0 true "$loader" --blocks 8 --threads 16 "$(image "$l" increment)" 2000
    check "$l diverge 100, 4x8" 0 true "$loader" --blocks 4 --threads 8 "$(image "$l" diverge)" 100
    check "$l stream 300, 4x8" 0 true "$loader" --blocks 4 --threads 8 "$(image "$l" stream)" 300
    check "$l stream 100000, 2x4" 0 true "$loader" --blocks 2 --threads 4 "$(image "$l" stream)" 100000
    check "$l gpurpc-top --once" 0 greets_one "$here/bin/gpurpc-top" --once "$(image "$l" hello)" a b
}

# The same at the size of a GPU.
crowds() {
    local l=$1 i
    check "$l hello, 132x64" 0 greets_8448 "$loader" --blocks 132 --threads 64 "$(image "$l" hello)"
    check "$l increment 1000, 264x128" 0 true "$loader" --blocks 264 --threads 128 "$(image "$l" increment)" 1000
    check "$l increment 1000, 132x128 on 8 ports" 0 true \
        "$loader" --ports 8 --blocks 132 --threads 128 "$(image "$l" increment)" 1000
    for i in 1 2 3 4 5 6 7 8 9 10; do
        check "$l diverge, 64x128, $i of 10" 0 true \
            "$loader" --blocks 64 --threads 128 "$(image "$l" diverge)"
    done
    check "$l panic, 132 blocks" 101 says_where "$loader" --blocks 132 "$(image "$l" panic)"
    check "$l exit 7 by one thread of 132x64, the others calling" 7 true "$loader" --blocks 132 --threads 64 "$(image "$l" exit)" 7
    check "$l launch blocking" 0 true \
        env CUDA_LAUNCH_BLOCKING=1 "$loader" --blocks 8 --threads 64 "$(image "$l" increment)" 100
}

# What must be refused with one sentence and 125.
refusals() {
    local hello
    hello=$(image line hello)
    : >"$work/empty"
    echo "just text" >"$work/text"
    check "refuses --threads 0" 125 one_sentence "$loader" --threads 0 "$hello"
    check "refuses --threads 5000" 125 one_sentence "$loader" --threads 5000 "$hello"
    check "refuses --blocks 4294967295" 125 one_sentence "$loader" --blocks 4294967295 "$hello"
    check "refuses --frob" 125 one_sentence "$loader" --frob "$hello"
    check "refuses a missing file" 125 one_sentence "$loader" "$work/missing"
    check "refuses an empty file" 125 one_sentence "$loader" "$work/empty"
    check "refuses a directory" 125 one_sentence "$loader" "$work"
    check "refuses a text file" 125 one_sentence "$loader" "$work/text"
}

nv_refusals() {
    sed 's/^.visible .entry _start/.visible .entri _start/' "$(image line hello)" >"$work/bad.ptx"
    check "refuses PTX with a syntax error" 125 one_sentence "$loader" "$work/bad.ptx"
    check "no visible device" 125 one_sentence env CUDA_VISIBLE_DEVICES= "$loader" "$(image line hello)"
    if command -v ldd >/dev/null && ldd "$loader" 2>/dev/null | grep -q libcuda; then
        fail "no libcuda in ldd" "the loader is linked to it"
    else
        pass "no libcuda in ldd"
    fi
}

sanitizer() {
    local tool
    tool=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) || {
        skip "compute-sanitizer (not installed)"
        return
    }
    # The tool starts threads before the loader could set this itself.
    CUDA_MODULE_LOADING=EAGER check "line memcheck" 0 true "$tool" --tool memcheck --error-exitcode 99 \
        "$loader" --blocks 2 --threads 64 "$(image line increment)" 3
    # It takes any system-scope atomic on host memory for an error, which Compact is made of.
    skip "compact memcheck (the tool refuses atomics on host memory)"
}

use_gpu() { device=nvptx64 extension=ptx loader=$here/bin/loader-nv; }
use_cpu() { device=x86_64 extension=so loader=$here/bin/loader-cpu; }

summary() {
    if [ "$skipped" -gt 0 ]; then
        echo "$passed passed, $failed failed, $skipped skipped"
    else
        echo "$passed passed, $failed failed"
    fi
    [ "$failed" = 0 ]
}

# Wall time in ms of one run, or "exit N" if that was not the wanted code.
time_run() {
    local want=$1 start code
    shift
    start=$(now)
    bounded "$@" >"$work/out" 2>"$work/err"
    code=$?
    if [ "$code" = "$want" ]; then ms "$start" "$(now)"; else echo "exit $code"; fi
}

speed() {
    local l name want args cold warm
    echo "== a call beside a bare flag ping-pong"
    bench --only increment --layout "${layouts// /,}" || echo "gpurpc-bench failed with exit code $?"
    echo "== ms from start to end of the loader with one thread: cold (driver's cache empty), warm"
    for l in $layouts; do
        while read -r name want args; do
            mkdir -p "$work/cache"
            # shellcheck disable=SC2086 # the arguments are words
            cold=$(CUDA_CACHE_PATH=$work/cache time_run "$want" "$loader" "$(image "$l" "$name")" $args)
            # shellcheck disable=SC2086
            warm=$(CUDA_CACHE_PATH=$work/cache time_run "$want" "$loader" "$(image "$l" "$name")" $args)
            rm -rf "$work/cache"
            printf '%-8s %-10s %8s B  cold %s  warm %s\n' "$l" "$name" \
                "$(wc -c <"$(image "$l" "$name")")" "$cold" "$warm"
        done <<'PROGRAMS'
hello 0
args 1
increment 0 1
stream 0 1
exit 0 0
panic 101
diverge 0 1
unknown 0
PROGRAMS
    done
}

# The benchmarks: each kernel has a time limit of its own, this one is for all together.
bench() {
    timeout -k 5 "${LIMIT:-300}" "$here/bin/gpurpc-bench" --device-kind nvidia "$@" </dev/null
}

case "${1:-}" in
gpu)
    use_gpu
    for l in $layouts; do basics "$l"; crowds "$l"; done
    refusals
    nv_refusals
    sanitizer
    summary
    ;;
c)
    use_gpu
    limit=${LIMIT:-400} check "C programs" 0 true env GPURPC_GPU=1 GPURPC_REQUIRE_IMAGES=1 \
        "GPURPC_IMAGES=$here/images" "GPURPC_LOADER_NV=$loader" "$here/bin/c-programs"
    # A slab of 2 MiB for each thread at once, and no thread says that it got none.
    for l in llvm line; do
        check "slabs of 8448 threads over $l" 0 says_nothing "$loader" --heap-size 24g --blocks 132 --threads 64 \
            "$here/images/nvptx64/c-opcodes-$l.ptx" slabs "$work"
    done
    summary
    ;;
cpu)
    use_cpu
    for l in $layouts; do basics "$l"; done
    refusals
    summary
    ;;
bench)
    shift
    bench "$@"
    ;;
speed)
    use_gpu
    speed
    ;;
exec)
    shift
    [ $# -gt 0 ] && [ -x "$here/bin/$1" ] || { echo "run.sh exec: PROGRAM is one of:" && ls "$here/bin"; exit 125; }
    program=$1
    shift
    cd "$here" && timeout -k 5 "${LIMIT:-120}" "bin/$program" "$@"
    ;;
list)
    cd "$here" && find . -type f -printf '%10s %P\n' | sort -k 2
    ;;
*)
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    exit 125
    ;;
esac
