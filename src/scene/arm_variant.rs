//! Completes the file of an arm that is another one but for some figures, such as its servos.

use toml::{Table, Value};

/// Returns the name of the arm that a text is a variant of: it has no joints of its own, and says which arm it is like.
pub(super) fn origin(text: &str) -> Option<String> {
    // Every scene loads its arm, and few arms are variants.
    let own: Table = text.contains("like").then(|| toml::from_str(text).ok())??;
    match (own.contains_key("joints"), own.get("like")) {
        (false, Some(Value::String(like))) => Some(like.clone()),
        _ => None,
    }
}

/// Returns a variant's text with what it leaves out as in its origin; `None` if either is no TOML. The arm that it is like is
/// the first of its line, whose scenes it draws.
pub(super) fn complete(variant: &str, origin: &str) -> Option<String> {
    let mut whole: Table = toml::from_str(origin).ok()?;
    let first = whole.get("like").cloned();
    put_over(&mut whole, toml::from_str(variant).ok()?);
    whole.extend(first.map(|first| ("like".to_owned(), first)));
    toml::to_string(&whole).ok()
}

/// Puts each key over the one of the same name. Tables are taken key by key, lists whole.
fn put_over(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => put_over(below, above),
            (_, value) => drop(below.insert(key, value)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_variant_states_what_differs_and_nothing_else() {
        let whole = "name = \"a\"\nabout = \"one\"\nbaud = 1\njoints = [1, 2]\n[servo]\nname = \"x\"\ngain_p = 32\n";
        let variant = "name = \"b\"\nlike = \"a\"\n[servo]\ngain_p = 16\n[simulation]\nrate = 2\n";
        assert_eq!(origin(variant), Some("a".to_owned()));
        let completed: Table = toml::from_str(&complete(variant, whole).unwrap()).unwrap();
        let expected = "name = \"b\"\nabout = \"one\"\nlike = \"a\"\nbaud = 1\njoints = [1, 2]\n[servo]\nname = \"x\"\ngain_p = 16\n[simulation]\nrate = 2\n";
        assert_eq!(completed, toml::from_str::<Table>(expected).unwrap());
        let second = complete(
            "name = \"c\"\nlike = \"b\"\n",
            &complete(variant, whole).unwrap(),
        );
        let second: Table = toml::from_str(&second.unwrap()).unwrap();
        let like = second.get("like").and_then(Value::as_str);
        assert_eq!(like, Some("a"));
    }

    #[test]
    fn an_arm_with_joints_of_its_own_is_no_variant() {
        assert_eq!(origin("name = \"b\"\nlike = \"a\"\njoints = []\n"), None);
        assert_eq!(origin("name = \"b\"\n"), None);
        assert_eq!(origin("name ="), None);
    }
}
