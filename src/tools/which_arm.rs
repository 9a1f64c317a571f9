//! Which of a node's arms is meant, and how texts name it where a node has several.

use std::sync::Arc;

use super::node::check_is_for;
use super::reply::Reply;
use super::{AttachedArm, Node};
use call::{Refusal, refusal};
use scene::Scene;

/// Beginning of a command in a text.
const COMMAND: &str = "`steadyhand ";

/// Commands that act on one arm and take `--arm`.
const OF_ONE_ARM: [&str; 10] = [
    "calibrate play",
    "calibrate restore",
    "calibrate touch",
    "draw",
    "enable",
    "first-line",
    "jog",
    "reset",
    "teach",
    "trim",
];

/// The command that names an arm by its model where its name on the node is not known.
const JOINTS: &str = "calibrate joints";

/// Number of scenes that the refusal of a scene of another arm names.
const SCENES_NAMED_MAX: usize = 3;

impl Node {
    /// Returns whether the node has several arms, so that texts must say which one they are about.
    #[must_use]
    pub const fn has_several_arms(&self) -> bool {
        self.arms.len() > 1
    }

    /// Returns the arms that draw a scene.
    #[must_use]
    pub fn arms_of(&self, scene: &Scene) -> Vec<&Arc<AttachedArm>> {
        let arms = self.arms.iter();
        arms.filter(|arm| check_is_for(arm, scene).is_ok())
            .collect()
    }

    /// Names some of the scenes that the arms of this node draw.
    fn own_scenes_text(&self) -> String {
        let arms = self.arms.iter();
        let arms: Vec<&str> = arms.map(|arm| &*arm.motion.arm().file.name).collect();
        let scenes = self.scenes.scenes_for(&arms);
        let named = scenes.iter().take(SCENES_NAMED_MAX);
        let named: Vec<String> = named.map(|name| format!("`{name}`")).collect();
        format!("such as {}", named.join(", "))
    }

    /// Returns the named arm that draws a scene, or the only one.
    ///
    /// # Errors
    /// No arm draws the scene, the named one does not, or several do and none is named.
    pub fn arm_for(&self, scene: &Scene, name: Option<&str>) -> Result<&Arc<AttachedArm>, Refusal> {
        let candidates = self.arms_of(scene);
        let names: Vec<&str> = candidates.iter().map(|arm| arm.name.as_str()).collect();
        let (names, title) = (names.join(", "), scene.title());
        let is_named = |arm: &&&Arc<AttachedArm>| name.is_none_or(|name| arm.name == name);
        let matching: Vec<_> = candidates.iter().filter(is_named).collect();
        match (matching.as_slice(), name) {
            ([one], _) => Ok(one),
            _ if candidates.is_empty() => Err(refusal!(
                "scene {title} is for an arm of model {}, but this node has none. Next: name a scene of this node's arms, {}, or a node with that arm",
                scene.arm.file.name,
                self.own_scenes_text()
            )),
            ([], Some(name)) => Err(refusal!(
                "this node has no arm `{name}` for scene {title}. Valid: {names}"
            )),
            _ => Err(refusal!(
                "several arms of this node draw scene {title}. Next: name one with --arm: {names}"
            )),
        }
    }

    /// Returns a text about an arm, which begins with its name where the node has several, as do the commands in it.
    #[must_use]
    pub fn text_of_arm(&self, arm: &AttachedArm, text: &str) -> String {
        let text = self.commands_for_arm(arm, text);
        match self.has_several_arms() {
            true => format!("{}: {text}", arm.name),
            false => text,
        }
    }

    /// Returns a text about an arm in which commands that act on one arm name it, where the node has several.
    #[must_use]
    pub fn commands_for_arm(&self, arm: &AttachedArm, text: &str) -> String {
        match self.has_several_arms() {
            true => with_arm_option(text, arm.into()),
            false => text.to_owned(),
        }
    }

    /// Returns an answer about an arm in which commands name the arm, where the node has several.
    pub(super) fn with_commands_for_arm(&self, arm: &AttachedArm, mut reply: Reply) -> Reply {
        if !self.has_several_arms() {
            return reply;
        }
        reply.text = with_arm_option(&reply.text, arm.into());
        for key in ["message", "fault", "steps", "usage_hints"] {
            if let Some(value) = reply.structured.get_mut(key) {
                name_in_value(value, arm.into());
            }
        }
        reply
    }

    /// Returns an answer about an arm that begins with its name, where the node has several.
    pub(super) fn with_arm_name(&self, arm: &AttachedArm, reply: Reply) -> Reply {
        let mut reply = self.with_commands_for_arm(arm, reply);
        if self.has_several_arms() {
            let named = |text: &str| format!("{}: {text}", arm.name);
            reply.text = named(&reply.text);
            if let Some(serde_json::Value::String(message)) = reply.structured.get_mut("message") {
                *message = named(message);
            }
        }
        reply
    }

    /// Returns the option by which a command names an arm, after a blank; empty where the node has one.
    pub(super) fn arm_option(&self, arm: &AttachedArm) -> String {
        match self.has_several_arms() {
            true => format!(" {}", arm_option(&arm.name)),
            false => String::new(),
        }
    }

    /// Returns the call with which a planner resumes an arm's unfinished drawing, or that of all arms of a scene.
    pub(super) fn resume_call(&self, arm: &str, scene: &str) -> String {
        let is_of_one = self.has_several_arms() && !scene.contains(scene::PART);
        let arm = is_of_one.then(|| format!(",\"arm\":{}", serde_json::Value::from(arm)));
        format!("stroke {{\"resume\":true{}}}", arm.unwrap_or_default())
    }
}

/// An arm's name in the node file, and its model.
#[derive(Clone, Copy)]
struct ArmNames<'a> {
    name: &'a str,
    model: &'a str,
}

impl<'a> From<&'a AttachedArm> for ArmNames<'a> {
    fn from(arm: &'a AttachedArm) -> Self {
        Self {
            name: &arm.name,
            model: &arm.motion.arm().file.name,
        }
    }
}

/// Names the arm in the commands of a text or of a list of texts.
fn name_in_value(value: &mut serde_json::Value, arm: ArmNames<'_>) {
    match value {
        serde_json::Value::String(text) => *text = with_arm_option(text, arm),
        serde_json::Value::Array(texts) => {
            texts.iter_mut().for_each(|text| name_in_value(text, arm));
        }
        _ => {}
    }
}

/// Returns a text in which every command in backticks that acts on one arm, and names none, names this one.
fn with_arm_option(text: &str, arm: ArmNames<'_>) -> String {
    let mut parts = text.split(COMMAND);
    let mut named = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let command = part.split('`').next().unwrap_or_default();
        let rest = part.strip_prefix(command).unwrap_or_default();
        named.push_str(COMMAND);
        named.push_str(&command_for_arm(command, arm));
        named.push_str(rest);
    }
    named
}

/// Returns a command with the option that names the arm behind its words, and before its other options.
fn command_for_arm(command: &str, arm: ArmNames<'_>) -> String {
    let option = arm_option(arm.name);
    if command.strip_prefix(JOINTS) == Some(&format!(" --arm {}", arm.model)) {
        return format!("{JOINTS} {option}");
    }
    let begins_with = |verb: &&str| {
        let rest = command.strip_prefix(*verb);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    // What was before a calibration belongs to the arm of that calibration.
    let names_its_arm = command.contains(" --arm") || command.ends_with(" --before");
    if names_its_arm || !OF_ONE_ARM.iter().any(begins_with) {
        return command.to_owned();
    }
    match command.split_once(" --") {
        Some((words, options)) => format!("{words} {option} --{options}"),
        None => format!("{command} {option}"),
    }
}

/// Returns the option that names an arm, quoted for a shell where it must be.
pub(super) fn arm_option(arm: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !arm.starts_with('-') && arm.chars().all(is_plain) {
        true => format!("--arm {arm}"),
        false => format!("--arm='{}'", arm.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_one_arm_name_it_and_others_stay() {
        for (text, named) in [
            (
                "look: `steadyhand reset` lifts it",
                "look: `steadyhand reset --arm right` lifts it",
            ),
            (
                "`steadyhand enable --scene a`, then `steadyhand clear`",
                "`steadyhand enable --arm right --scene a`, then `steadyhand clear`",
            ),
            (
                "`steadyhand reset --arm left`",
                "`steadyhand reset --arm left`",
            ),
            (
                "`steadyhand status` and `steadyhand torque-off`",
                "`steadyhand status` and `steadyhand torque-off`",
            ),
            (
                "zeros: `steadyhand calibrate joints --arm so101`, then `steadyhand calibrate touch tool --scene a --pen b`",
                "zeros: `steadyhand calibrate joints --arm right`, then `steadyhand calibrate touch tool --arm right --scene a --pen b`",
            ),
            (
                "`steadyhand teach sheet --scene a`, `steadyhand calibrate play --scene a` or `steadyhand calibrate accept`",
                "`steadyhand teach sheet --arm right --scene a`, `steadyhand calibrate play --arm right --scene a` or `steadyhand calibrate accept`",
            ),
            (
                "`steadyhand calibrate restore 3`",
                "`steadyhand calibrate restore 3 --arm right`",
            ),
            (
                "`steadyhand calibrate restore 3 --before`",
                "`steadyhand calibrate restore 3 --before`",
            ),
            (
                "`steadyhand calibrate joints --arm koch`",
                "`steadyhand calibrate joints --arm koch`",
            ),
            ("call reset", "call reset"),
            ("", ""),
        ] {
            let right = ArmNames {
                name: "right",
                model: "so101",
            };
            assert_eq!(with_arm_option(text, right), named);
            assert_eq!(with_arm_option(named, right), named);
        }
        let big = ArmNames {
            name: "the big one",
            model: "so101",
        };
        assert_eq!(
            with_arm_option("`steadyhand reset`", big),
            "`steadyhand reset --arm='the big one'`"
        );
    }
}
