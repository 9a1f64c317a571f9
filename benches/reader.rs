//! Measures how fast arguments are read, good ones and the worst: prints one line a workload. `benches/README.md` says
//! what they are.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, measures time, and may panic"
)]

use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

use steadyhand::args::{
    ArgumentShape, DeclaredUnit, ForgivenessProfile, ParameterShape, ReaderPolicy,
    ReceivedArguments, ToolEffect, ValueKind, envelope, read,
};
use steadyhand::clock::NodeClock;

const SMALL_BYTES: usize = 64 << 10;
const LARGE_BYTES: usize = 1 << 20;
/// Prose of ordinary words.
const PROSE: &str = "the quick brown fox jumps over a lazy dog and writes of it ";
/// Runs of a short call in one measurement; of many measurements the best counts, as others use this machine too.
const RUNS: u32 = 100;
const MEASUREMENTS: u32 = 600;
/// Longest time for a worst text of 1 MiB.
const WORST_MAX: Duration = Duration::from_millis(50);
/// Measurements of a worst text.
const WORST_MEASUREMENTS: u32 = 5;
/// The variable that makes this program read one worst text and print its own peak memory.
const CHILD: &str = "STEADYHAND_BENCH_CHILD";

/// A call of 100 bytes, to the letter.
const STRICT: &str = r#"{"scene":"koi","overlay":"leaf","debug":true,"fps":25,"lift":0.015,"note":"the usual koi, thin pen"}"#;
/// The same as a model might write it.
const SLOPPY: &str = "```json\n{'scene': 'Koi', overlay: \"leaf\", 'debug': True, \"fps\": \"25\", 'lift': '15 mm', 'note': 'the usual koi, thin pen',}\n```";

fn main() {
    if let Ok(name) = std::env::var(CHILD) {
        return child(&name);
    }
    calls();
    println!(
        "\nworst texts: time for 64 KiB and 1 MiB, their ratio (16 is linear), and peak memory over 1 MiB"
    );
    let mut slowest = Duration::ZERO;
    for (name, make) in WORST {
        slowest = slowest.max(worst(name, make));
    }
    println!("slowest 1 MiB: {:.1} ms", slowest.as_secs_f64() * 1e3);
    assert!(slowest <= WORST_MAX, "{WORST_MAX:?} are allowed");
}

fn shape() -> ArgumentShape {
    ArgumentShape::new(vec![
        ParameterShape::new("scene", ValueKind::name(["default", "koi", "star"]))
            .default("default"),
        ParameterShape::new("overlay", ValueKind::name(["crosses", "leaf"])).alias("meta"),
        ParameterShape::new("debug", ValueKind::Bool).default(false),
        ParameterShape::new("fps", ValueKind::integer(1, 120)).default(10),
        ParameterShape::new(
            "lift",
            ValueKind::number(0.001, 0.6, DeclaredUnit::named("m")),
        )
        .default(0.01),
        ParameterShape::new("note", ValueKind::Text),
    ])
    .with_tool_names(["stroke"])
}

fn calls() {
    let (shape, policy) = (
        shape(),
        ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded),
    );
    let ours = |text: &str| {
        let reading = read(&shape, &policy, ReceivedArguments::Text(text.to_owned()));
        assert!(reading.is_ok(), "{text}");
    };
    println!(
        "a call of {} bytes, to the letter: {}",
        STRICT.len(),
        micros(|| ours(STRICT))
    );
    println!(
        "the same, repaired and coerced:    {}",
        micros(|| ours(SLOPPY))
    );
    let serde = || serde_json::from_str::<serde_json::Value>(black_box(STRICT)).unwrap();
    println!("serde_json alone on the former:    {}", micros(serde));
}

/// Time that this thread had on processors.
fn now() -> Duration {
    NodeClock::real().thread_cpu_time()
}

/// The best of many measurements, in microseconds a run.
fn micros<T>(run: impl Fn() -> T) -> String {
    let once = || {
        let start = now();
        for _ in 0..RUNS {
            black_box(run());
        }
        (now() - start) / RUNS
    };
    let best = (0..MEASUREMENTS).map(|_| once()).min().unwrap();
    format!("{:.2} µs", best.as_secs_f64() * 1e6)
}

type Make = fn(usize) -> String;

/// Texts made to cost the most: each begins to mean something again and again and never does, or does so at length.
const WORST: [(&str, Make); 41] = [
    ("open braces", |n| "{".repeat(n)),
    ("open brackets", |n| "[".repeat(n)),
    ("open parentheses", |n| "(".repeat(n)),
    ("objects in objects", |n| "{\"a\":".repeat(n / 5)),
    ("empty objects", |n| "{}".repeat(n / 2)),
    ("objects after prose", |n| "x {a} ".repeat(n / 6)),
    ("small objects", |n| "{\"a\":1} ".repeat(n / 8)),
    ("quotes", |n| "\"".repeat(n)),
    ("single quotes", |n| "'".repeat(n)),
    ("backticks", |n| "`".repeat(n)),
    ("quotes and blanks", |n| {
        "{\"a\": \"".to_owned() + &"\" ".repeat(n / 2)
    }),
    ("inner quotes", |n| {
        format!("{{\"note\": \"{}\"}}", " \"b\" c".repeat(n / 6))
    }),
    ("apostrophes", |n| {
        format!("{{'note': '{}'}}", "it's ".repeat(n / 5))
    }),
    ("backslashes", |n| "\\".repeat(n)),
    ("escaped quotes", |n| {
        "{\\\"".to_owned() + &"\\\"".repeat(n / 2)
    }),
    ("escaped again and again", |n| "\\\\\\\"".repeat(n / 4)),
    ("many pairs", |n| {
        format!("{{{}}}", "\"a\":1,".repeat(n / 6))
    }),
    ("many keys", |n| {
        format!(
            "{{{}\"z\":1}}",
            (0..n / 12)
                .map(|i| format!("\"k{i}\":1,"))
                .collect::<String>()
        )
    }),
    ("a long key", |n| format!("{{\"{}\": 1}}", "k".repeat(n))),
    ("a long bare key", |n| format!("{{{}: 1}}", "k".repeat(n))),
    ("a long text", |n| {
        format!("{{\"note\": \"{}\"}}", "x".repeat(n))
    }),
    ("a long sloppy text", |n| {
        format!("{{'note': '{}',}}", "x".repeat(n))
    }),
    ("a long list", |n| {
        format!("{{\"note\": [{}1]}}", "1,".repeat(n / 2))
    }),
    ("words", |n| "word ".repeat(n / 5)),
    ("words and colons", |n| "a: b ".repeat(n / 5)),
    ("lines", |n| "a: b\n".repeat(n / 5)),
    ("options", |n| "--a b ".repeat(n / 6)),
    ("url pairs", |n| "a=b&".repeat(n / 4)),
    ("open tags", |n| "<a>".repeat(n / 3)),
    ("tags", |n| "<a>b</a>".repeat(n / 8)),
    ("angle brackets", |n| "<".repeat(n)),
    ("comments", |n| "{".to_owned() + &"/* */".repeat(n / 5)),
    ("other comments", |n| {
        let comments = (0..n / 12).map(|i| format!("/*{:8}*/", i % 99_999_999));
        "{".to_owned() + &comments.collect::<String>()
    }),
    ("prose in comments", |n| {
        let comment = format!("/* {} */", PROSE.repeat(80));
        "{".to_owned() + &comment.repeat(n / comment.len())
    }),
    ("texts under keys", |n| {
        let pairs = (0..400).map(|i| format!("\"k{i}\": \"{}\",", PROSE.repeat(n / 30_000)));
        "{".to_owned() + &pairs.collect::<String>()
    }),
    ("lines in an object", |n| {
        "{\"x\": {".to_owned() + &"mmscene: koi\n\u{200b}".repeat((n / 16).min(9000)) + "}}"
    }),
    ("keys in an object", |n| {
        let pairs = (0..(n / 64).min(9000)).map(|i| format!("\"{i} {PROSE}\": 1,"));
        format!("{{\"x\": {{{}}}}}", pairs.collect::<String>())
    }),
    ("an invisible key", |n| {
        format!("{{\"{}\": 1}}", "\u{200b}".repeat(n / 3))
    }),
    ("lines of comments", |n| "# a\n".repeat(n / 4) + "a: b"),
    ("comments without end", |n| {
        "{".to_owned() + &"/*".repeat(n / 2)
    }),
    ("labels", |n| "Action Input:\n".repeat(n / 14)),
];

/// Times one worst text, as arguments and as a message, and prints its line.
fn worst(name: &str, make: Make) -> Duration {
    let [small, large] = [SMALL_BYTES, LARGE_BYTES].map(|bytes| {
        let text = make(bytes - 64);
        (0..WORST_MEASUREMENTS).map(|_| once(&text)).min().unwrap()
    });
    println!(
        "{name:>24}: {:7.2} ms {:7.2} ms  ×{:4.1}  {}",
        small.as_secs_f64() * 1e3,
        large.as_secs_f64() * 1e3,
        large.as_secs_f64() / small.as_secs_f64().max(1e-9),
        peak(name).map_or_else(
            || "no /proc here".to_owned(),
            |peak| format!("{peak:.1} × input")
        ),
    );
    large
}

fn once(text: &str) -> Duration {
    let (shape, policy) = (
        shape(),
        ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded),
    );
    let received = ReceivedArguments::Text(text.to_owned());
    let start = now();
    let _ = black_box(read(&shape, &policy, received));
    let arguments = now() - start;
    let start = now();
    let _ = black_box(envelope::read(text.as_bytes()));
    arguments.max(now() - start)
}

/// Peak memory of a process that reads this text, less that of one which only makes it, over the text's size.
fn peak(name: &str) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let run = |name: &str| {
        let out = Command::new(&program).env(CHILD, name).output().ok()?;
        String::from_utf8(out.stdout)
            .ok()?
            .trim()
            .parse::<f64>()
            .ok()
    };
    let (reads, makes) = (run(name)?, run(&format!("only {name}"))?);
    Some((reads - makes).max(0.0) * 1024.0 / LARGE_BYTES as f64)
}

/// Reads one worst text (or only makes it) and prints the peak resident memory in KiB.
fn child(name: &str) {
    let (only, name) = name
        .strip_prefix("only ")
        .map_or((false, name), |name| (true, name));
    let make = WORST
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, make)| make);
    let text = make.unwrap()(LARGE_BYTES - 64);
    let received = ReceivedArguments::Text(text);
    if !only {
        let _ = black_box(read(
            &shape(),
            &ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded),
            received,
        ));
    } else {
        black_box(received);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    println!(
        "{}",
        line.map_or("", |line| line.trim().trim_end_matches("kB").trim())
    );
}
