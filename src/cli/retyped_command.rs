//! The command that was typed, with other options, for a person to copy.

use super::given_options::quoted_for_shell;
use base::units::short;

/// Options that say how large a drawing is, and whether a value follows.
const SIZE_OPTIONS: [(&str, bool); 4] = [
    ("--size", true),
    ("--letter-height", true),
    ("--fit", false),
    ("--fit-page", false),
];

/// The option that says where a drawing lies, which a value follows.
const PLACE_OPTION: (&str, bool) = ("--at", true);

/// The command that shows where an arm can draw, for a drawing that fits nowhere at a sensible size.
const REACH: &str = "`steadyhand scene reach`";

/// What makes a drawing lie on its sheet: moved before it is made smaller.
pub(super) fn fitting(
    moves_to_mm: Option<[f64; 2]>,
    fits_mm: Option<f64>,
    fits_centred: bool,
    is_outside: bool,
) -> Option<String> {
    // The place of what fits in the middle of the sheet is left out.
    let place_options: &[_] = if fits_centred { &[PLACE_OPTION] } else { &[] };
    let left_out = [&SIZE_OPTIONS, place_options].concat();
    match (moves_to_mm, fits_mm) {
        (Some([x, y]), _) => {
            let at = format!("{}mm,{}mm", short(x), short(y));
            Some(command(&[PLACE_OPTION], &["--at", &at]))
        }
        (None, Some(fits_mm)) if is_outside => {
            let command = command(&left_out, &["--fit"]);
            Some(format!(
                "{command} ({} mm on its longer side)",
                short(fits_mm)
            ))
        }
        (None, Some(fits_mm)) => {
            let size = format!("{}mm", short(fits_mm));
            let place = if fits_centred {
                " (in the middle of the sheet)"
            } else {
                ""
            };
            Some(command(&left_out, &["--size", &size]) + place)
        }
        (None, None) if is_outside => None,
        (None, None) => Some(format!("{REACH} (it shows where a sheet may lie)")),
    }
    .map(|next| format!("Next: {next}"))
}

/// Returns this process' command in backticks, without some options and with others.
pub(super) fn command(without: &[(&str, bool)], with: &[&str]) -> String {
    format!("`{}`", retyped(std::env::args().skip(1), without, with))
}

/// Returns a command as it was typed, without some options, each with whether a value follows it, and
/// with others.
pub(super) fn retyped(
    arguments: impl Iterator<Item = String>,
    without: &[(&str, bool)],
    with: &[&str],
) -> String {
    let mut words = Vec::new();
    let (mut skips_value, mut has_ended) = (false, false);
    let mut options_end = None;
    for word in arguments {
        if std::mem::take(&mut skips_value) {
            continue;
        }
        has_ended |= word == "--";
        if has_ended && options_end.is_none() {
            options_end = Some(words.len());
        }
        let (name, value) = word
            .split_once('=')
            .map_or((&*word, None), |(n, v)| (n, Some(v)));
        let dropped = without
            .iter()
            .find(|(option, _)| !has_ended && *option == name);
        match dropped {
            Some((_, takes_value)) => skips_value = *takes_value && value.is_none(),
            None => words.push(quoted_for_shell(&word)),
        }
    }
    let at = options_end.unwrap_or(words.len());
    let with = with.iter().map(|word| quoted_for_shell(word));
    words.splice(at..at, with);
    format!("steadyhand {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_command_is_printed_as_it_works_with_other_options() {
        for (typed, with, printed) in [
            (
                "draw a.svg --size 9mm",
                "--yes",
                "steadyhand draw a.svg --size 9mm --yes",
            ),
            (
                "draw --port p -- -x.svg",
                "--yes",
                "steadyhand draw --port p --yes -- -x.svg",
            ),
        ] {
            let words = typed.split(' ').map(str::to_owned);
            assert_eq!(retyped(words, &[], &[with]), printed);
        }
        for (typed, printed) in [
            ("draw a.svg", "steadyhand draw a.svg --fit"),
            ("draw --size 200mm a.svg", "steadyhand draw a.svg --fit"),
            (
                "draw --size=200 a.svg --fit-page",
                "steadyhand draw a.svg --fit",
            ),
            (
                "draw --text hi --letter-height 90",
                "steadyhand draw --text hi --fit",
            ),
            (
                "draw --at 1,2 -- --size",
                "steadyhand draw --at 1,2 --fit -- --size",
            ),
        ] {
            let words = typed.split(' ').map(str::to_owned);
            assert_eq!(retyped(words, &SIZE_OPTIONS, &["--fit"]), printed);
        }
    }
}
