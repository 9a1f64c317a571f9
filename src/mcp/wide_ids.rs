//! Keeps ids that the protocol library cannot hold: numbers beyond 64 signed bits (modelcontextprotocol/rust-sdk#416). Inside the
//! server they are texts that keep every digit; answers carry the number again, so that the caller recognises its answer.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use serde_json::{Number, Value};

/// Prefix of the text that stands for such a number. It differs from process to process and is told to no client, so that no id of a
/// client's own begins with it.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let secret = RandomState::new().hash_one(std::process::id());
    format!("steadyhand:number:{secret:016x}:")
});

/// Longest number that is kept to its last digit.
const DIGITS_MAX: usize = 400;

/// Replaces a number that the library cannot hold by a text; `written` finds the number as it was sent.
pub(super) fn stand_in<'t>(id: &mut Value, written: impl FnOnce() -> Option<&'t str>) {
    let Value::Number(number) = id else {
        return;
    };
    if is_held(number) {
        return;
    }
    let is_same = |text: &&str| {
        text.len() <= DIGITS_MAX && text.parse::<Number>().is_ok_and(|same| same == *number)
    };
    let digits = match written().filter(is_same) {
        Some(exact) => exact.to_owned(),
        None => number.to_string(),
    };
    *id = format!("{}{digits}", *MARK).into();
}

/// Returns whether the library can hold the number: its limit for floats is 2^53, above which they are not exact.
fn is_held(number: &Number) -> bool {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let is_exact = |value: f64| value.abs() < EXACT_MAX;
    number.is_i64() || (!number.is_u64() && number.as_f64().is_some_and(is_exact))
}

/// Returns whether an id stands for such a number.
pub(super) fn is_stand_in(id: &Value) -> bool {
    id.as_str()
        .is_some_and(|text| text.starts_with(MARK.as_str()))
}

/// Returns an id as its sender would compare it: a number's digits, in whatever form it is kept here.
pub(super) fn compared(id: &Value) -> String {
    let trimmed = |text: &str| text.trim().to_owned();
    match id {
        Value::String(text) => match text.strip_prefix(MARK.as_str()) {
            Some(digits) => digits
                .parse::<Number>()
                .map_or_else(|_| trimmed(digits), |number| number.to_string()),
            None => trimmed(text),
        },
        other => other.to_string(),
    }
}

/// Returns an outgoing message with the numbers restored.
pub(super) fn restored(message: Vec<u8>) -> Vec<u8> {
    let mut open = b"\"".to_vec();
    open.extend_from_slice(MARK.as_bytes());
    let Some(mut at) = find(&message, &open) else {
        return message;
    };
    let mut out = Vec::with_capacity(message.len());
    let mut rest = message.as_slice();
    loop {
        let (before, marked) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        let digits = marked.get(open.len()..).unwrap_or_default();
        let end = digits.iter().position(|byte| *byte == b'"');
        let number = end.and_then(|end| digits.get(..end));
        let is_id = before.ends_with(b"\"id\":") || before.ends_with(b"\"requestId\":");
        out.extend_from_slice(before);
        match number.filter(|number| is_id && is_number(number)) {
            Some(number) => {
                out.extend_from_slice(number);
                rest = digits.get(number.len() + 1..).unwrap_or_default();
            }
            None => {
                out.extend_from_slice(&open);
                rest = digits;
            }
        }
        match find(rest, &open) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.extend_from_slice(rest);
    out
}

fn is_number(digits: &[u8]) -> bool {
    std::str::from_utf8(digits).is_ok_and(|text| text.parse::<Number>().is_ok())
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len())
        .position(|window| window == needle)
}

/// Restores the ids in a response's body, whose frames each hold complete messages. A number is shorter than its text, so the
/// length is not known in advance.
pub(super) fn restored_body(body: Body) -> Body {
    let restore = |bytes: Bytes| Bytes::from(restored(bytes.to_vec()));
    Body::new(body.map_frame(move |frame| frame.map_data(restore)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_number_of_any_length_comes_back_to_its_last_digit() {
        for written in [
            "9223372036854775808",
            "18446744073709551615",
            "123456789012345678901234567890",
            "-9223372036854775809",
            "1e300",
            "9007199254740992.0",
        ] {
            let mut id: Value = serde_json::from_str(written).unwrap();
            let expected = compared(&id);
            stand_in(&mut id, || Some(written));
            assert!(is_stand_in(&id), "{written}");
            assert_eq!(compared(&id), expected, "{written}");
            let sent = json!({"id": id, "result": {}}).to_string().into_bytes();
            let sent = String::from_utf8(restored(sent)).unwrap();
            assert_eq!(sent, format!("{{\"id\":{written},\"result\":{{}}}}"));
        }
    }

    #[test]
    fn other_ids_and_texts_stay_unchanged() {
        for held in [json!(7), json!(-1), json!(i64::MAX), json!(7.0), json!("a")] {
            let mut id = held.clone();
            stand_in(&mut id, || None);
            assert_eq!(id, held);
        }
        let mark = MARK.as_str();
        for text in [
            format!("{{\"text\":\"{mark}12\"}}"),
            format!("{{\"id\":\"{mark}x\"}}"),
            format!("{{\"id\":\"{mark}12"),
            r#"{"id":"steadyhand:number:12"}"#.to_owned(),
        ] {
            assert_eq!(restored(text.clone().into_bytes()), text.into_bytes());
        }
    }
}
