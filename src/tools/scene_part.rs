//! A scene named together with one of its arms, such as `two_arms:left`: every tool takes it as that scene with that `arm`.

use args::{ArgumentComplaint, ArgumentReading, ArgumentRefusal, ReaderRule};
use scene::PART;
use serde_json::Value;

/// Returns a reading whose scene and arm are named apart.
///
/// # Errors
/// The call names another arm as well.
pub(super) fn apart(mut reading: ArgumentReading) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
    let named = reading.given.get("scene").and_then(Value::as_str);
    let Some((scene, arm)) = named.and_then(|named| named.split_once(PART)) else {
        return Ok(reading);
    };
    let (scene, arm) = (Value::from(scene), Value::from(arm));
    match reading.given.get("arm") {
        Some(other) if *other != arm => return Err(refusal(&reading, other)),
        _ => {}
    }
    for arguments in [&mut reading.given, &mut reading.understood] {
        arguments.insert("scene".to_owned(), scene.clone());
        arguments.insert("arm".to_owned(), arm.clone());
    }
    Ok(reading)
}

fn refusal(reading: &ArgumentReading, other: &Value) -> Box<ArgumentRefusal> {
    let received = other.as_str().unwrap_or_default();
    Box::new(ArgumentRefusal {
        complaints: vec![ArgumentComplaint {
            code: "two_arms_named",
            path: "arm".to_owned(),
            received: received.to_owned(),
            expected: "the arm that `scene` names, or none".to_owned(),
            valid: Vec::new(),
            why: "`scene` names another arm".to_owned(),
        }],
        good: reading.given.clone(),
        repairs: reading.repairs.clone(),
        kind: ReaderRule::Contradiction,
    })
}
