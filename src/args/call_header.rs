//! Recognises the header of a call whose arguments are missing: an open fence, `[TOOL_CALLS]stroke[ARGS]`, `const args =`.

/// Marks that begin a call, or stand between its name and its arguments.
const MARKS: [&str; 7] = ["<|", "<｜", "‹|", "‹｜", ">>>", "[TOOL_CALL", "[ARGS]"];

/// Beginnings of tags around a call.
const TAGS: [&str; 4] = [
    "<tool_call",
    "<function",
    "<invoke",
    "<start_function_call>",
];

/// Returns whether a text in which no arguments could be read announces some.
pub(super) fn announces_arguments(text: &str) -> bool {
    let text = without_last_tokens(text);
    let has_open_fence = text.matches("```").count() % 2 == 1;
    let has_any = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    let has_open_tag = !text.contains("</") && has_any(&TAGS);
    has_open_fence || has_open_tag || text.ends_with(['=', ':']) || has_any(&MARKS)
}

/// Returns a text without the tokens at its end, which announce nothing: `draw the koi<|im_end|>`.
fn without_last_tokens(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some((before, token)) = text
        .strip_suffix("|>")
        .and_then(|rest| rest.rsplit_once("<|"))
        && !token.contains(char::is_whitespace)
    {
        text = before.trim_end();
    }
    text
}
