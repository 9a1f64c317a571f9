//! Any bytes as a JSON-RPC line or body: what a moving tool would do with the arguments in it equals what is understood.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use steadyhand::args::{ReceivedArguments, envelope};
use steadyhand_fuzz::{calls, judge};

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = envelope::read(bytes) else {
        return;
    };
    let text = String::from_utf8_lossy(bytes);
    for arguments in calls(&read.message) {
        let received = arguments.map_or(ReceivedArguments::Absent, |value| {
            ReceivedArguments::Value(value.clone())
        });
        judge(&received, &text);
    }
    // A message that was mended is a message: it needs no mending again.
    let again =
        envelope::read(read.message.to_string().as_bytes()).expect("a mended message can be read");
    assert_eq!(
        without_decimals(again.message),
        without_decimals(read.message)
    );
});

/// The JSON library may read the last digit of a long decimal another way than it writes it.
fn without_decimals(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => Value::Null,
        Value::Array(items) => items.into_iter().map(without_decimals).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, without_decimals(value)))
            .collect(),
        other => other,
    }
}
