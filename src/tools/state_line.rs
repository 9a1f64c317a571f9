//! The state of an arm as the last line of every answer, because small models forget it: what the arm does, the sheet, and what is
//! enabled.

use serde_json::Value;

use super::live_sheet::LiveTip;
use super::reply::Reply;
use super::{AttachedArm, Node};
use base::units::short;
use base::wording::count;

/// Height over the sheet from which a pen is up.
const PEN_UP_MM: f64 = 0.5;

impl Node {
    /// Ends an answer with the state of the arm that it is about, or of the first.
    pub(super) fn with_state(&self, mut reply: Reply) -> Reply {
        let understood = reply.structured.get("understood");
        let named = understood.and_then(|understood| understood.get("arm"));
        let named = named.and_then(Value::as_str);
        if let Some(arm) = self.arm(named).or_else(|| self.arm(None)) {
            reply.set(call::NOW, self.state_line(arm));
        }
        reply
    }

    /// Describes the state of an arm in a line. Waits for no disk.
    fn state_line(&self, arm: &AttachedArm) -> String {
        let condition = self.condition(arm);
        let doing = lower_first(&condition.sentence);
        let name = match self.has_several_arms() {
            true => format!("arm {}", arm.name),
            false => "arm".to_owned(),
        };
        let pen = pen_words(arm).filter(|_| !doing.contains("pen"));
        let pen = pen.map_or_else(String::new, |pen| format!(", {pen}"));
        let enabled = match self.motion_withheld() {
            Some(_) => "nothing".to_owned(),
            None => arm.permits().enabled_for_text(arm.motion.clock().now()),
        };
        let sheet = self.sheet_words(arm);
        format!("{name} {doing}{pen}; {sheet}; enabled: {enabled}")
    }

    fn sheet_words(&self, arm: &AttachedArm) -> String {
        let Some(scene) = arm.sheet_scene() else {
            return "no sheet yet".to_owned();
        };
        let [width, height] = scene.surface.size_mm().map(short);
        let on_it = match self.drawings_on_sheet(arm, &scene).len() {
            0 => "empty".to_owned(),
            some => format!("{} on it", count(some, "drawing")),
        };
        format!("sheet {} {width} x {height} mm, {on_it}", scene.name)
    }
}

/// Says whether the first pen's tip was measured over its sheet or on it.
fn pen_words(arm: &AttachedArm) -> Option<&'static str> {
    let (scene, measured) = arm.last_scene().zip(arm.motion.snapshot().measured)?;
    let tip = LiveTip::of(&scene, &measured.position_rad)?;
    Some(match tip.height_mm >= PEN_UP_MM {
        true => "pen up",
        false => "pen down",
    })
}

fn lower_first(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars.next().map(|first| first.to_lowercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}
