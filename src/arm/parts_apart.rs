//! Which parts of an arm must keep apart: the one rule, by which the planner chooses its ways and the gate judges them.

use super::ArmModel;

impl ArmModel {
    /// Returns the pairs of parts that must keep apart: all but those of one link, of neighbouring links, and those that the
    /// arm's file allows. Parts are its capsules in their order, and after them so many tools at its mount.
    #[must_use]
    pub fn pairs_kept_apart(&self, tools: usize) -> Vec<(usize, usize)> {
        let body = self.capsules.iter();
        // A tool has no name here: `may_touch` is of capsules, whatever a scene calls its pens.
        let body = body.map(|capsule| (capsule.joints_before, Some(&capsule.name)));
        let parts: Vec<_> = body
            .chain(std::iter::repeat_n((self.dof(), None), tools))
            .collect();
        let mut links: Vec<usize> = parts.iter().map(|(link, _)| *link).collect();
        links.sort_unstable();
        links.dedup();
        // A link without a part lies between no neighbours.
        let rank = |link: usize| links.partition_point(|of| *of < link);
        let may_touch = |one: Option<&String>, other: Option<&String>| {
            let mut allowed = self.file.may_touch.iter();
            allowed.any(|[a, b]| {
                let pair = (Some(a), Some(b));
                pair == (one, other) || pair == (other, one)
            })
        };
        let mut pairs = Vec::new();
        for (first, (link, name)) in parts.iter().enumerate() {
            for (second, (of, other)) in parts.iter().enumerate().skip(first + 1) {
                if rank(*link).abs_diff(rank(*of)) > 1 && !may_touch(*name, *other) {
                    pairs.push((first, second));
                }
            }
        }
        pairs
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn so101() -> ArmModel {
        let text = include_str!("../../scenes/arms/so101.toml");
        ArmModel::new(toml::from_str(text).unwrap()).unwrap()
    }

    /// Two links are neighbours if no link with a part lies between them.
    #[test]
    fn parts_of_one_link_and_of_neighbours_may_touch() {
        let mut arm = so101();
        arm.file.may_touch.clear();
        for tools in 0..3 {
            let capsules = arm.capsules.iter().map(|capsule| capsule.joints_before);
            let links: Vec<usize> = capsules.chain(vec![arm.dof(); tools]).collect();
            let kept = arm.pairs_kept_apart(tools);
            let (mut apart, mut near) = (0, 0);
            for (second, b) in links.iter().enumerate() {
                for (first, a) in links.iter().enumerate().take(second) {
                    let (low, high) = (a.min(b), a.max(b));
                    let is_between = links.iter().any(|link| low < link && link < high);
                    assert_eq!(
                        kept.contains(&(first, second)),
                        is_between,
                        "{first} {second}"
                    );
                    apart += usize::from(is_between);
                    near += usize::from(!is_between);
                }
            }
            assert_eq!(kept.len(), apart);
            assert!(apart > 20 && near > 20, "{apart} {near}");
        }
        // Without the lower arm, the upper arm and the wrist are neighbours.
        let place = |arm: &ArmModel, name: &str| {
            let mut parts = arm.capsules.iter();
            parts.position(|capsule| capsule.name == name).unwrap()
        };
        let pair = (place(&arm, "upper arm"), place(&arm, "wrist"));
        assert!(arm.pairs_kept_apart(0).contains(&pair));
        arm.capsules.retain(|capsule| capsule.name != "lower arm");
        let pair = (place(&arm, "upper arm"), place(&arm, "wrist"));
        assert!(!arm.pairs_kept_apart(0).contains(&pair));
    }

    #[test]
    fn parts_may_touch_where_the_arms_file_says_so_either_way_round() {
        let mut arm = so101();
        arm.file.may_touch.clear();
        let all = arm.pairs_kept_apart(1);
        let name =
            |arm: &ArmModel, part: usize| arm.capsules.get(part).map(|part| part.name.clone());
        let named = |(a, b): (usize, usize)| Some([name(&arm, a)?, name(&arm, b)?]);
        let named: Vec<_> = all.iter().map(|pair| (*pair, named(*pair))).collect();
        assert!(named.iter().filter(|(_, names)| names.is_some()).count() > 3);
        for (pair, names) in &named {
            let Some([a, b]) = names.clone() else {
                continue;
            };
            let without: Vec<_> = all.iter().copied().filter(|one| one != pair).collect();
            for allowed in [[a.clone(), b.clone()], [b, a]] {
                arm.file.may_touch = vec![allowed];
                assert_eq!(arm.pairs_kept_apart(1), without);
            }
        }
        // That each of two parts may touch a third does not allow the two to touch.
        let (pair, [a, b]) = named
            .iter()
            .find_map(|(pair, names)| Some((*pair, names.clone()?)))
            .unwrap();
        let third = arm.capsules.last().unwrap().name.clone();
        assert!(a != third && b != third);
        arm.file.may_touch = vec![[a, third.clone()], [third, b]];
        assert!(arm.pairs_kept_apart(1).contains(&pair));
    }
}
