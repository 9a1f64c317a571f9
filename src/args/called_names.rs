//! The name that arguments call, as in `{"name": "stop"}` or `stop()`.

use super::{ReceivedArguments, candidates, parsed_value::ParsedValue, thought};

/// Longest text that is parsed to find a name in it. The search runs before the call's turn, so it must be short.
const TEXT_BYTES_MAX: usize = 4096;

/// Returns the name for which a test holds, if arguments call it.
#[must_use]
pub fn called_name(
    arguments: &ReceivedArguments,
    is_name: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let text = match arguments {
        ReceivedArguments::Absent => return None,
        ReceivedArguments::Value(value) => return call::called_name(value, is_name),
        ReceivedArguments::Text(text) => text,
    };
    let said = thought::without_thoughts(text);
    let parsed = || {
        let short = Some(said.as_ref()).filter(|said| said.len() <= TEXT_BYTES_MAX)?;
        candidates::of_text(short)
            .into_iter()
            .find_map(|candidate| {
                let callee = candidate.tool.filter(|tool| is_name(tool));
                let inner = || match &candidate.node {
                    node @ (ParsedValue::Map(_) | ParsedValue::List(_)) => {
                        call::called_name(&node.to_value(), is_name)
                    }
                    _ => None,
                };
                callee.or_else(inner)
            })
    };
    // What is data as a parameter is data here too: a text that was read as arguments is not searched as a whole.
    match candidates::of_inner_text(&said).map(|inner| inner.node) {
        Some(ParsedValue::Map(_) | ParsedValue::List(_)) => parsed(),
        _ => parsed().or_else(|| call::called_in_text(&said, is_name)),
    }
}
