# Two commands do everything on a fresh Debian 12 or Ubuntu 24.04 with a Rust toolchain:
#
#     make run     installs what is missing, builds, and runs an example chain on a sample trace
#     make test    installs what the tests need, and passes them all
#
# and beside them: make bench, make lint, make docs, make native, make fuzz, make sanitize, make tree NAME=change.

CARGO ?= cargo
SHELL := bash
TARGET := $(or $(CARGO_TARGET_DIR),target)
CATENA := $(TARGET)/release/catena

# What the build needs: a Debian package, and the program or the file that shows it is there. netbase names ports for
# filters; clang builds the BPF program of `catena isolate`, which says so where it was built without.
BUILD_NEEDS := build-essential:gcc libpcap-dev:/usr/include/pcap/pcap.h netbase:/etc/services clang:clang
# With EXACT=highs plans are made by HiGHS, which is built from source, instead of microlp: docs/planning.md says when
# that is worth the minutes.
EXACT ?= microlp
ifeq ($(EXACT),highs)
BUILD_NEEDS += build-essential:g++ cmake:cmake libclang-dev:/usr/lib/llvm-*/lib/libclang.so
SOLVER := --features highs
else ifneq ($(EXACT),microlp)
$(error EXACT=$(EXACT) is not a solver: microlp (the default) or highs)
endif
# What the tests talk to. Python is there for its web server, which python3-minimal does not have.
TEST_NEEDS := tshark:tshark iproute2:ip iputils-ping:ping curl:curl iperf3:iperf3 graphviz:dot clang:clang++ \
	python3:/usr/lib/python3*/http/server.py
BENCH_NEEDS := dpdk-dev:dpdk-testpmd
# The analysis of C and C++ functions is written on LLVM 19; its tests analyse programs that use libpcap.
ANALYSIS_NEEDS := clang-19:clang-19 llvm-19-dev:/usr/lib/llvm-19/include/llvm/IR/Module.h \
	binutils:objcopy lld-19:ld.lld-19 libz3-dev:/usr/include/z3.h cmake:cmake libpcap-dev:/usr/include/pcap/pcap.h python3:python3

# The folders of the system's programs are not in everybody's PATH.
there = $(if $(filter /%,$(1)),$(wildcard $(1)),$(shell PATH="$$PATH:/usr/sbin:/sbin" command -v $(1)))
missing = $(foreach need,$(1),$(if $(call there,$(word 2,$(subst :, ,$(need)))),,$(word 1,$(subst :, ,$(need)))))
install = $(call fetch,$(strip $(call missing,$(1))))
# Lists of packages that cannot all be read stop nothing. A new machine may be updating itself: wait for its lock.
fetch = $(if $(1),\
	fail() { printf '%s\n' "$$1 What is missing (on Ubuntu partly in universe):" \
		"    apt-get install $(1)" >&2; exit 1; }; \
	command -v apt-get >/dev/null || fail "There is no apt-get here: these are Debian's names."; \
	as=; if [ "$$(id -u)" != 0 ]; then as=sudo; \
		command -v sudo >/dev/null || fail "You are not root and there is no sudo."; fi; \
	echo "Installing $(1)"; \
	$$as apt-get update -qq || true; \
	$$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		-o DPkg::Lock::Timeout=600 $(1) >/dev/null || fail "apt-get failed.",\
	true)

.PHONY: run build test lint analysis test-analysis bench bench-additivity bench-alpine bench-e2 bench-iron bench-lemur \
	bench-planned bench-nfreducer bench-reduced bench-standby bench-statealyzr docs native fuzz fuzz-analysis sanitize deny clean \
	needs

run: build
	$(CATENA) run examples/edge.catena --in examples/edge.pcap.gz

# The wrapper is that of the search for what a compiler lost (`tests/compiler`): the search finds all built.
RELEASED := RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/tests/compiler/mir
build: needs
	$(RELEASED) $(CARGO) build --release --package catena $(SOLVER)

# What the benchmarks run, all of it.
.PHONY: build-bench
build-bench: build
	$(RELEASED) $(CARGO) build --release --package catena-bench $(SOLVER)

needs:
	@command -v $(CARGO) >/dev/null || { echo "There is no Rust toolchain: install rustup, then rust 1.88 or newer."; exit 1; }
	@$(call install,$(BUILD_NEEDS))

# What tests could not do here is listed last, also when a test failed; CATENA_REQUIRE_ALL=1 makes it a failure. Each
# test appends a line to this file.
SKIPS := $(abspath $(TARGET))/skips
test: needs
	@mkdir -p $(TARGET) && : >$(SKIPS)
	@CATENA_SKIPS=$(SKIPS) $(MAKE) --no-print-directory test-all; status=$$?; \
	if [ -s $(SKIPS) ]; then echo "Skipped:"; sort -u $(SKIPS); else echo "Nothing was skipped."; fi; exit $$status

.PHONY: test-all
test-all:
	@$(call install,$(TEST_NEEDS))
	tests/timed $(CARGO) test --workspace
	CATENA_CHECKED=$(abspath $(TARGET))/debug/catena $(MAKE) --no-print-directory test-optimised test-analysis

# And as users run it: a compiler that loses code does so only when it optimises. These are the tests of what packets pass, and those of
# the very command that `make build` builds; of planning there are more in `make test-plans`. Two parts of the tests build what a
# user begins with, by Cargo and as it says, so they would do the same again.
PASSED := $(addprefix --package ,catena-packet catena-dataplane catena-state catena-functions)
.PHONY: test-optimised
test-optimised: needs
	@$(call install,$(TEST_NEEDS))
	$(RELEASED) tests/timed $(CARGO) test --release --package catena --test main -- --skip new_function:: --skip starter::
	tests/timed $(CARGO) test --profile optimised $(PASSED) --lib --tests

# Random cases alone, of what packets pass, with whatever PROPTEST_RNG_SEED says.
.PHONY: test-properties
test-properties: needs
	@$(call install,$(TEST_NEEDS))
	tests/timed $(CARGO) test --profile optimised $(PASSED) --lib --tests

# Plans, more than the tests have: racks, changes one after the other, and problems whose best plan is known.
.PHONY: test-plans
test-plans: needs
	CATENA_PLAN_SEEDS=4000 CATENA_PLAN_CHANGES=10000 CATENA_LEMUR_FAR=1 \
		tests/timed $(CARGO) test --package catena-plan --package catena-plan-lemur --profile optimised --lib

# A chain that loses instances of its functions, with more seeds than the tests have.
SEEDS ?= 10000
.PHONY: test-losses
test-losses:
	CATENA_SEEDS=$(SEEDS) $(CARGO) test --package catena-functions --lib --profile optimised chain_tests

# What of plans is decided by a solver, by both solvers: every program that a test poses.
.PHONY: test-solvers
test-solvers:
	@$(MAKE) --no-print-directory EXACT=highs needs
	tests/timed $(CARGO) test --package catena-solver --package catena-plan-lemur --package catena-plan-alpine \
		--features catena-solver/compare

# catena-analyze, for `catena analyze`: LLVM is many minutes to build and one to install, so it comes from Debian.
ANALYSIS := $(TARGET)/analysis
analysis:
	@$(call install,$(ANALYSIS_NEEDS))
	@cmake -S analysis -B $(ANALYSIS) -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 >/dev/null
	cmake --build $(ANALYSIS) --parallel $$(nproc)

test-analysis: analysis
	analysis/tests/run $(ANALYSIS)/catena-analyze
	analysis/tests/damaged $(ANALYSIS)/catena-analyze
	analysis/tests/trace $(ANALYSIS)
	$(ANALYSIS)/catena-random-programs --count 60
	analysis/tests/builds $(ANALYSIS)/catena-analyze
	analysis/tests/manifests $(ANALYSIS)/catena-analyze
	analysis/tests/pages $(ANALYSIS)/catena-analyze
	analysis/tests/files $(ANALYSIS)/catena-analyze $(ANALYSIS)/catena-reduce
	analysis/tests/library/run
	analysis/tests/reduction/run $(ANALYSIS)/catena-reduce
	analysis/tests/reduction/splice $(ANALYSIS)/catena-reduce
	analysis/tests/reduction/built $(ANALYSIS)/catena-analyze $(ANALYSIS)/catena-reduce
	$(ANALYSIS)/catena-random-reductions --count 10
	@# The command as the tests have it: nothing is built a second time with other features.
	$(CARGO) test --workspace --no-run --quiet
	analysis/tests/reduction/chain $(ANALYSIS)/catena-reduce $(TARGET)/debug/catena
	analysis/tests/reduction/spliced $(ANALYSIS)/catena-reduce $(TARGET)/debug/catena
	analysis/tests/reduction/refused_exchanges $(ANALYSIS)/catena-reduce $(TARGET)/debug/catena
	analysis/tests/standby/run $(ANALYSIS)/catena-analyze $(ANALYSIS)/libcatena-standby.a
	$(MAKE) --no-print-directory fuzz-analysis

# The readers of lists and bitcode, for a few seconds each.
fuzz-analysis:
	@$(call install,$(ANALYSIS_NEEDS) libclang-rt-19-dev:/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-x86_64.a)
	@cmake -S analysis -B $(ANALYSIS) -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 -DCATENA_FUZZ=ON >/dev/null
	@cmake --build $(ANALYSIS) --parallel $$(nproc) --target fuzz-lists fuzz-bitcode >/dev/null
	analysis/tests/fuzz $(ANALYSIS)

# StateAlyzr on real programs, fetched from Debian's archive: Khalid's dissertation, §4.6.
bench-statealyzr: analysis
	bench/statealyzr/run $(ANALYSIS)/catena-analyze --steps --into docs/analyze.md

.PHONY: random-programs bench-trace
# Many random packet loops, run traced, against the analysis: two processes, some five minutes each.
random-programs: analysis
	$(ANALYSIS)/catena-random-programs --seed 1000000 --count 5000 & first=$$!; \
	$(ANALYSIS)/catena-random-programs --seed 2000000 --count 5000; second=$$?; \
	wait $$first && exit $$second

.PHONY: random-reductions
# Random network functions, each reduced with five configurations and compared: some hours on one core. Then wrong reductions.
random-reductions: analysis
	$(ANALYSIS)/catena-random-reductions --seed 1000000 --count 10000
	$(ANALYSIS)/catena-random-reductions --seed 2000000 --count 500 --mutants

# Real programs, traced over the captures in the folder of CATENA_TRACES.
bench-trace: bench-statealyzr
	bench/statealyzr/trace $(ANALYSIS)

# What reducing functions gains: NFReducer, section VI-B.
bench-nfreducer: analysis
	bench/nfreducer/run $(ANALYSIS)/catena-reduce
	bench/nfreducer/chains $(ANALYSIS)/catena-reduce
	bench/nfreducer/real $(ANALYSIS)/catena-reduce

# What goes between a primary and its hot standby, and what updated bits cost: Khalid's dissertation, §4.6.2.
bench-standby: analysis
	bench/statealyzr/standby $(ANALYSIS) --into docs/standby.md

lint: needs
	@$(call install,clang-format-19:clang-format-19)
	clang-format-19 --dry-run -Werror analysis/lib/*/*.h analysis/lib/*/*.cpp analysis/tool/*.cpp analysis/fuzz/*.cpp
	clang-format-19 --dry-run -Werror analysis/runtime/trace/*.[ch] analysis/tests/*.[ch] analysis/tests/random*/*.h \
		analysis/tests/random*/*.cpp
	@{ $(CARGO) fmt --version && $(CARGO) clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

# Licences, sources and known weaknesses of all dependencies, and none twice. The list of weaknesses is in a repository of
# its own on GitHub; where that cannot be reached, this says so.
ADVISORIES := https://github.com/RustSec/advisory-db
deny: needs
	@$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install --locked --debug --quiet cargo-deny
	$(CARGO) deny --log-level error check licenses bans sources
	@if GIT_TERMINAL_PROMPT=0 timeout 30 git ls-remote --exit-code $(ADVISORIES) HEAD >/dev/null 2>&1; \
	then $(CARGO) deny --log-level error check advisories; \
	else echo "Known weaknesses are not looked up: $(ADVISORIES) cannot be reached."; fi

bench: build-bench
	-@$(call install,$(BENCH_NEEDS))
	$(TARGET)/release/bench-dataplane
	$(CATENA) bench report --into docs/benchmarks.md --plot docs/benchmarks.svg >/dev/null
	$(MAKE) --no-print-directory bench-additivity

# The tables of docs/planning-benchmarks.md: each is measured and written anew by one command.
PLANNING := docs/planning-benchmarks.md

# E2's planning: Lan's dissertation, §3.6.2.
bench-e2: build-bench
	$(TARGET)/release/bench-e2
	$(CATENA) bench report bench/results/e2.jsonl --into $(PLANNING) --plot docs/planning-e2.svg >/dev/null

# Lemur's experiments, planned: Lemur, §5.
bench-lemur: build-bench
	$(TARGET)/release/bench-lemur
	$(CATENA) bench report bench/results/lemur.jsonl --into $(PLANNING) --plot docs/planning-lemur.svg >/dev/null

# Whether a chain costs what its functions cost: Lemur, §3.2.
bench-additivity: build-bench
	$(TARGET)/release/bench-additivity
	$(CATENA) bench report bench/results/additivity.jsonl --into $(PLANNING) >/dev/null

# Whether a planned chain runs as planned.
bench-planned: build-bench
	$(TARGET)/release/bench-planned
	$(CATENA) bench report bench/results/planned.jsonl --into docs/profiles.md >/dev/null

# What taking redundant logic out of a chain's graph gains.
bench-reduced: build-bench
	$(TARGET)/release/bench-reduced
	$(CATENA) bench report bench/results/reduced.jsonl --into docs/reduced-graphs.md >/dev/null

# What a victim loses beside those who send and receive, without and with enforcement: Khalid's dissertation, §2.1.3 and §2.3.1.
bench-iron: build-bench
	$(TARGET)/release/bench-iron
	$(CATENA) bench report bench/results/iron.jsonl --into docs/isolation.md >/dev/null

# How long Alpine's partition takes, and what it holds on the dataplane: Lan's dissertation, §5.5.
bench-alpine: build-bench
	$(TARGET)/release/bench-alpine-solve bench/results/alpine.jsonl
	$(TARGET)/release/bench-alpine-run bench/results/alpine.jsonl
	$(CATENA) bench report bench/results/alpine.jsonl --into docs/alpine.md >/dev/null

# The manual pages in docs/functions are made from the code; this fails when they are not up to date.
docs: needs
	$(CARGO) run --quiet -p catena -- functions --book docs/functions --check

native: needs
	$(MAKE) --no-print-directory -C examples/native

# Fuzz targets, sanitizers and Miri want nightly. Where it is not there and cannot be fetched, they are skipped and say so.
NIGHTLY_FLAGS := $(if $(filter x86_64,$(shell uname -m)),-Ctarget-cpu=x86-64-v3)
.PHONY: nightly
nightly: needs
	@$(CARGO) +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal || true
	@$(CARGO) +nightly miri --version >/dev/null 2>&1 || rustup component add miri rust-src --toolchain nightly || true
has_nightly = { $(CARGO) +nightly --version >/dev/null 2>&1 || \
	{ echo "skipped: this needs nightly: rustup toolchain install nightly -c rust-src,miri"; exit 0; }; }

# Every fuzz target for a minute, from its seeds, as many at a time as there are cores; what fails is kept in
# fuzz/artifacts. The flags are those of cargo-fuzz, which would be one more program to build.
FUZZ_SECONDS ?= 60
# libFuzzer's random numbers; 0: new ones each time.
FUZZ_SEED ?= 0
FUZZ_FLAGS := --cfg fuzzing -Zsanitizer=address -Cdebug-assertions -Cpasses=sancov-module \
	-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares $(NIGHTLY_FLAGS)
fuzz: nightly
	@$(has_nightly); cd fuzz && host=$$(rustc +nightly --print host-tuple) && \
	RUSTFLAGS="$(FUZZ_FLAGS)" $(CARGO) +nightly build --release --target $$host --target-dir target && \
	ls fuzz_targets | sed 's/\.rs$$//' | xargs -P $$(nproc) -I TARGET sh -c ' \
		mkdir -p corpus/TARGET artifacts/TARGET; \
		if target/'$$host'/release/TARGET corpus/TARGET seeds/TARGET -artifact_prefix=artifacts/TARGET/ \
			-seed=$(FUZZ_SEED) -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 >artifacts/TARGET.log 2>&1; \
		then echo "TARGET: $$(sed -n "s/stat::number_of_executed_units: *//p" artifacts/TARGET.log) runs"; \
		else tail -40 artifacts/TARGET.log; echo "TARGET: failed"; exit 255; fi'

# Address and leak sanitizer and Miri over the tests of what is unsafe.
sanitize: nightly
	@$(has_nightly); set -e; \
	export LSAN_OPTIONS=suppressions=$(CURDIR)/fuzz/leaks.txt; \
	export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-disable-isolation" PROPTEST_CASES=4; \
	sanitized() { kind=$$1; shift; echo "$$kind sanitizer: $$*"; \
		CARGO_TARGET_DIR=$(TARGET)/sanitize/$$kind RUSTFLAGS="-Zsanitizer=$$kind $(NIGHTLY_FLAGS)" \
		$(CARGO) +nightly test --quiet --target $$(rustc +nightly --print host-tuple) --lib "$$@"; }; \
	interpreted() { echo "Miri: $$*"; \
		CARGO_TARGET_DIR=$(TARGET)/sanitize/miri $(CARGO) +nightly miri test --quiet --lib "$$@"; }; \
	(unset PROPTEST_CASES; sanitized address -p catena-packet -p catena-state -p catena-dataplane; \
	sanitized address -p catena-functions -- native:: nat:: acl::classifier:: acl::cache:: ipv4fwd::block::); \
	if $(CARGO) +nightly miri --version >/dev/null 2>&1; then \
		interpreted -p catena-packet -- batch:: mapping:: pool:: --skip between_workers --skip outlive; \
		interpreted -p catena-dataplane -- queue:: --skip in_order; \
		interpreted -p catena-state -- values_are_dropped sweep_round small::; \
	else echo "skipped: Miri is not there: rustup component add miri rust-src --toolchain nightly"; fi

# A worktree beside this one for another change, on a branch of that name, with all that is built here. What is the same
# keeps its time, so Cargo compiles what differs and nothing else.
TREE = ../$(notdir $(CURDIR))-$(NAME)
.PHONY: tree
tree:
	@test -n "$(NAME)" || { echo "Name the change: make tree NAME=quota" >&2; exit 1; }
	git worktree add -b $(NAME) $(TREE)
	@git ls-files -z | while IFS= read -r -d '' file; do \
		if cmp --silent "$$file" "$(TREE)/$$file"; then touch --reference="$$file" "$(TREE)/$$file"; fi; done
	@if [ -d $(TARGET) ]; then echo "Copying what is built"; cp -a --reflink=auto $(TARGET) $(TREE)/target; fi
	@# What was built with this folder's name in it, such as the path of the command that tests start, is built anew there.
	@grep -rlF "$(CURDIR)/" $(TREE)/target/*/.fingerprint 2>/dev/null | while IFS= read -r file; do \
		rm -rf "$${file%/*}"; done
	@echo "cd $(TREE)"

clean:
	$(CARGO) clean
