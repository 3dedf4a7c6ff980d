# Two commands do everything on a fresh Debian 12 or Ubuntu 24.04 with a Rust toolchain:
#
#     make run     installs what is missing, builds, and runs an example chain on a sample trace
#     make test    installs what the tests need, and passes them all
#
# and beside them: make bench, make lint, make docs, make native, make fuzz.

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

.PHONY: run build test lint bench docs native fuzz deny clean needs

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

# The manual pages in docs/functions are made from the code; this fails when they are not up to date.
docs:
	$(CARGO) run --release --quiet -p catena -- functions --book docs/functions --check

native:
	$(MAKE) --no-print-directory -C examples/native

fuzz:
	@$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --locked --quiet cargo-fuzz
	cd fuzz && for target in $$($(CARGO) +nightly fuzz list); do \
		$(CARGO) +nightly fuzz run $$target -- -max_total_time=60 || exit 1; done

clean:
	$(CARGO) clean
