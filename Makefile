# Two commands do everything on a fresh Debian 12 or Ubuntu 24.04 with a Rust toolchain:
#
#     make run     installs what is missing, builds, and runs an example chain on a sample trace
#     make test    installs what the tests need, and passes them all
#
# and beside them: make bench, make lint, make docs, make native, make fuzz, make sanitize.

CARGO ?= cargo
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
TARGET := $(or $(CARGO_TARGET_DIR),target)
CATENA := $(TARGET)/release/catena

# What the build needs: package and a file that shows it is there.
BUILD_NEEDS := libpcap-dev:/usr/include/pcap/pcap.h build-essential:/usr/bin/cc
# What the tests talk to.
TEST_NEEDS := tshark:/usr/bin/tshark iproute2:/sbin/ip iputils-ping:/bin/ping curl:/usr/bin/curl \
	iperf3:/usr/bin/iperf3 python3-minimal:/usr/bin/python3 iptables:/usr/sbin/iptables ethtool:/sbin/ethtool \
	graphviz:/usr/bin/dot
BENCH_NEEDS := dpdk:/usr/bin/dpdk-testpmd

missing = $(foreach need,$(1),$(if $(wildcard $(word 2,$(subst :, ,$(need)))),,$(word 1,$(subst :, ,$(need)))))
install = $(if $(strip $(call missing,$(1))),\
	$(SUDO) apt-get update -qq && \
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(call missing,$(1)) >/dev/null,\
	true)

.PHONY: run build test lint bench bench-lemur docs native fuzz sanitize deny clean needs

run: build
	$(CATENA) run examples/edge.catena --in examples/edge.pcap.gz

build: needs
	$(CARGO) build --release --quiet

needs:
	@command -v $(CARGO) >/dev/null || { echo "There is no Rust toolchain: install rustup, then rust 1.88 or newer."; exit 1; }
	@$(call install,$(BUILD_NEEDS))

test: needs
	@$(call install,$(TEST_NEEDS))
	$(CARGO) test --workspace --quiet
	$(MAKE) --no-print-directory docs

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

# Licences and sources of all dependencies, and none twice.
deny:
	@$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install --locked --debug --quiet cargo-deny
	$(CARGO) deny --log-level error check licenses bans sources

bench: build
	-@$(call install,$(BENCH_NEEDS))
	$(TARGET)/release/bench-dataplane
	$(CATENA) bench report --into docs/benchmarks.md --plot docs/benchmarks.svg >/dev/null

# Lemur's experiments with Catena's planners: bench/results/lemur.jsonl.
bench-lemur: needs
	$(CARGO) run --release --quiet -p catena-bench --bin bench-lemur

# The manual pages in docs/functions are made from the code; this fails when they are not up to date.
docs:
	$(CARGO) run --release --quiet -p catena -- functions --book docs/functions --check

native:
	$(MAKE) --no-print-directory -C examples/native

# Every fuzz target for a minute, from its seeds; what fails is kept in fuzz/artifacts.
FUZZ_SECONDS ?= 60
NIGHTLY_FLAGS := $(if $(filter x86_64,$(shell uname -m)),-C target-cpu=x86-64-v3)
fuzz:
	@$(CARGO) +nightly --version >/dev/null 2>&1 || { \
		echo "Fuzzing needs the nightly toolchain: rustup toolchain install nightly"; exit 1; }
	@$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --locked --quiet cargo-fuzz
	cd fuzz && for target in $$($(CARGO) +nightly fuzz list); do \
		mkdir -p corpus/$$target && RUSTFLAGS="$(NIGHTLY_FLAGS)" $(CARGO) +nightly fuzz run $$target \
			corpus/$$target seeds/$$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done

# Address and leak sanitizer and Miri over the tests of what is unsafe. Without nightly all are skipped,
# without its components those that need them.
sanitize: needs
	@if ! $(CARGO) +nightly --version >/dev/null 2>&1; then \
		echo "skipped: sanitizers need nightly: rustup toolchain install nightly -c rust-src,miri"; exit 0; fi; \
	set -e; \
	export LSAN_OPTIONS=suppressions=$(CURDIR)/fuzz/leaks.txt; \
	export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-disable-isolation" PROPTEST_CASES=4; \
	sanitized() { kind=$$1; shift; echo "$$kind sanitizer: $$*"; \
		CARGO_TARGET_DIR=target/sanitize/$$kind RUSTFLAGS="-Zsanitizer=$$kind $(NIGHTLY_FLAGS)" \
		$(CARGO) +nightly test --quiet --target $$(rustc +nightly --print host-tuple) --lib "$$@"; }; \
	interpreted() { echo "Miri: $$*"; \
		CARGO_TARGET_DIR=target/sanitize/miri $(CARGO) +nightly miri test --quiet --lib "$$@"; }; \
	(unset PROPTEST_CASES; sanitized address -p catena-packet -p catena-state -p catena-dataplane; \
	sanitized address -p catena-functions -- native:: nat:: acl::classifier:: acl::cache:: ipv4fwd::block::); \
	if $(CARGO) +nightly miri --version >/dev/null 2>&1; then \
		interpreted -p catena-packet -- batch:: pool:: --skip between_workers --skip outlive; \
		interpreted -p catena-dataplane -- queue:: --skip in_order; \
		interpreted -p catena-state -- values_are_dropped sweep_round small::; \
	else echo "skipped: Miri is not there: rustup component add miri --toolchain nightly"; fi

clean:
	$(CARGO) clean
