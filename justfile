# Recipes that a contributor types; `.ci/run` is `check`, `test` and `peers` in one.

# Form and lints.
check:
    cargo fmt --all --check
    cargo clippy --locked --workspace --all-targets -- -D warnings
    cargo clippy --locked --test timing -- -D warnings

# Everything that needs no hardware and little time.
test:
    cargo test --workspace

# The same with the tests that are marked as slow.
slow:
    STEADYHAND_CASES=1000000 STEADYHAND_MINUTES=10 cargo test --workspace --release -- --include-ignored
    cargo test --release --test timing -- stop_bounds:: call_cost::
    STEADYHAND_RECORD=1 cargo test --release --test timing -- stop_bounds::
    STEADYHAND_RUN_S=600 cargo test --release --test timing -- recorded_run:: --nocapture
    cargo test --locked -p steadyhand-recording --features live live::
    tests/recordings/run 200
    STOP_BOUND_MS=50 STEADYHAND=target/release/steadyhand tests/page/run
    cargo clippy --locked -p steadyhand-fleet -p steadyhand-node --features steadyhand-fleet/zenoh,steadyhand-node/zenoh --all-targets -- -D warnings
    tests/fleet/run
    tests/fleet/run 20
    tests/fleet/run 6 drawings
    STEADYHAND=target/release/steadyhand tests/physics/run all

# Telemetry of so many simulated nodes through the real router: what one costs it and an observer (needs root).
fleet-load nodes="1000":
    tests/fleet/run {{nodes}} load

# Random trouble in so many rounds, from a seed; 200 are in `test`.
chaos rounds="2000" seed="20261121":
    STEADYHAND_CHAOS_ROUNDS={{rounds}} STEADYHAND_CHAOS_SEED={{seed}} cargo test --test timing chaos:: -- --nocapture

# A thousand stops for each bound, as histograms; a hundred are in `slow`.
stops count="1000":
    STEADYHAND_STOPS={{count}} cargo test --test timing stop_bounds:: -- --nocapture

# On a real arm: name its port in STEADYHAND_PORT. Somebody stands by the switch.
metal:
    cargo test --workspace --features hardware -- --test-threads 1

# Every line of the gate is tested and its mutants must die (needs cargo-llvm-cov and cargo-mutants).
gate-proof:
    tests/gate_proof/run

# Programs that others wrote, against our simulated servos. `.ci/run` also runs tests/clients/run.
peers:
    tests/peers/run

# Loops a second beside rustypot and the vendors' kits, in turns; wants a quiet machine.
compare:
    tests/peers/run compare

# Ten million texts, or so many, against one target of `fuzz/` (needs cargo-fuzz); files want a longer `length` than arguments.
fuzz target="text" runs="10000000" length="300":
    cd fuzz && cargo run --example seeds
    cd fuzz && RUSTC_BOOTSTRAP=1 cargo fuzz run -O -s none {{target}} -- -max_len={{length}} -runs={{runs}} -timeout=20

# A minute, or so many seconds, against every kind of file that other people make (needs cargo-fuzz).
fuzz-minute seconds="60" targets="svg gcode hpgl dxf polylines urdf scene":
    cd fuzz && cargo run --example seeds
    cd fuzz && for target in {{targets}}; do \
        RUSTC_BOOTSTRAP=1 cargo fuzz run -O -s none $target -- -max_len=32768 -max_total_time={{seconds}} -timeout=20 || exit 1; \
    done

# The crates that are useful alone, packed and each built from its package.
crates:
    cargo package -p firmware-protocol -p steadyhand-args -p steadyhand-kin -p steadyhand-servo -p steadyhand-design \
        -p steadyhand-plan -p steadyhand-base -p steadyhand-link -p steadyhand-arm -p steadyhand-config \
        -p steadyhand-mesh -p steadyhand-scene -p steadyhand-vision

# How fast arguments are read, good ones and the worst; and other readers on the same rows.
reader:
    cargo bench --bench reader
    cargo run --release --manifest-path benches/peers/reader/Cargo.toml

# All icons of a published set, planned and measured by another program; `tests/icons/run 300` takes some.
icons:
    tests/icons/run all

# The C firmware on an emulated Cortex-M3 (needs gcc-arm-none-eabi, make and qemu-system-arm).
emulated:
    cargo test -p firmware-protocol --test emulated -- --ignored --test-threads 1
    cargo test --test node emulated:: -- --ignored --test-threads 1

# Ten million fuzzed bytes for every decoder; a million are in `test`.
fuzz-decoders:
    STEADYHAND_FUZZ_BYTES=10000000 cargo test -p steadyhand-driver rates::

# The bus loop's share of the wire, and nanoseconds a packet.
bus:
    cargo bench --bench bus

# The Debian package, built, installed in an empty Debian and looked at, and so the wheel (needs root, a network and debootstrap);
# they are in target/package.
package:
    tests/package/run

# The wheel for PyPI, its binary linked against glibc 2.17 by zig, so that nearly every Linux takes it; it is in target/package.
wheel machine=`uname -m`:
    mkdir -p target/package
    python3 -m venv target/zig
    target/zig/bin/pip install --quiet ziglang cargo-zigbuild
    PATH=$PWD/target/zig/bin:$PATH cargo zigbuild --locked --profile dist --features fonts --target {{machine}}-unknown-linux-gnu.2.17
    python3 tests/package/wheel.py target/{{machine}}-unknown-linux-gnu/dist/steadyhand target/package

# For a Raspberry Pi: the wheel for 64-bit Arm, and its binary run on an emulated processor (needs qemu-user-static and libc6-arm64-cross).
pi:
    rustup target add aarch64-unknown-linux-gnu
    just wheel aarch64
    tests/package/pi target/aarch64-unknown-linux-gnu/dist/steadyhand

# The bundle for desktop clients and the registry's server.json, judged and run; they are in target/package.
bundle: dist
    mkdir -p target/package
    tests/package/desktop target/dist/steadyhand target/package

# A minute of 32 callers while an arm draws, with the binary as it is installed.
load: dist
    STEADYHAND_BINARY=$PWD/target/dist/steadyhand STEADYHAND_LOAD_S=60 cargo test --test timing load::thirty_two -- --nocapture

# What a node costs at rest: its binary, its memory, its share of a processor, and how soon it is ready.
footprint: dist
    STEADYHAND_BINARY=$PWD/target/dist/steadyhand STEADYHAND_LOAD_S=20 cargo test --test timing load::a_node_at_rest -- --nocapture

# The whole program checked for Windows and macOS by the compiler, built for Windows, and run there under Wine if it is installed.
cross-check:
    tests/package/cross_check

# The binary as it is installed.
dist:
    cargo build --locked --profile dist --features fonts

# SmolLM2-135M, a real and very small model, examined end to end: 5 minutes; installs it and llama.cpp below target/.
smollm2:
    cargo build
    tests/peers/smollm2/run

# A report of an exam, recorded answers scored, in headless Chromium: on phones and in print.
report-in-browser:
    cargo build
    tests/exam/of_recorded

# The operator's page in headless Chromium; its pictures are in target/page.
page:
    cargo build
    tests/page/run target/page

# Two minutes, or so many seconds, without and with a recording of two cameras: lost cycles, disk rate and size.
recorded-run seconds="120":
    STEADYHAND_RUN_S={{seconds}} cargo test --test timing recorded_run:: -- --nocapture

# How accurately worn arms draw before and after they are calibrated: the tables of docs/internals/measurements.md, each shipped arm and these seeds.
accuracy seeds="1 2 3 4 5 6":
    cargo build --release
    cargo run --release --example accuracy -- {{seeds}}

# The view in MCP clients, in the official host library; its pictures are in target/app.
app:
    cargo build
    tests/app/run target/app

# The pictures of MCP Inspector in docs, made anew (needs Node 22 and chromium-headless-shell).
inspector-picture:
    cargo build
    npm --prefix target/inspector install --silent --no-audit --no-fund @modelcontextprotocol/inspector@2.12.0 playwright-core@1.65.1
    cp tests/clients/inspector_picture.mjs target/inspector/
    cd target/inspector && node inspector_picture.mjs "$OLDPWD/target/debug/steadyhand" "$(command -v chromium-headless-shell)" "$OLDPWD/docs"

# An arm that nobody here wrote: the maker's model in MuJoCo, its servos as others measured them. `just physics list` names the cases.
physics cases="quick":
    cargo build
    tests/physics/run {{cases}}

# Recordings judged by other people's programs, and a node that records killed 200 times.
recordings:
    cargo build
    tests/recordings/run 200

# Every question of three files of the Berkeley Function-Calling Leaderboard; a tenth of them is in `test`.
bfcl:
    tests/exam/whole_bfcl

# The same trivial call against FastMCP and the TypeScript SDK, interleaved.
servers:
    benches/peers/mcp/run

# What must not move an arm, or must stop it, counted at its wire: under 2 minutes; the table of docs/safety.md.
safety:
    cargo build
    tests/safety/run --write docs/safety.md
