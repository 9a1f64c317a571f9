//! View and keys of the jog's terminal. It draws and decides; it sends no requests.

use crossterm::event::KeyCode;

use node::jog::{JogAxis, JogJoint, JogRequest, JogState};

/// Current state, selection and message.
#[derive(Debug, Default)]
pub(super) struct JogView {
    pub(super) stance: JogState,
    pub(super) message: String,
    joint: usize,
    /// Index into [`STEPS`].
    size: usize,
    /// True if the next `y` takes torque off.
    confirms_let_go: bool,
}

/// A line on the terminal.
#[derive(Debug)]
pub(super) struct ViewLine {
    pub(super) text: String,
    pub(super) is_bold: bool,
}

impl ViewLine {
    fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_bold: false,
        }
    }
}

/// Step sizes in millimetres, or degrees of a joint.
const STEPS: [f64; 3] = [0.1, 1.0, 10.0];

/// Action that a key asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum JogAction {
    /// One step.
    Step(JogRequest),
    /// Stop the arm.
    Stop,
    /// Take torque off.
    LetGo,
    /// Record the pose.
    Record,
    /// End the view.
    Quit,
    /// A change of the view only.
    ViewOnly,
}

impl JogView {
    pub(super) fn new(stance: JogState) -> Self {
        Self {
            stance,
            ..Self::default()
        }
    }

    /// Handles a key. The space bar always stops, in any state.
    pub(super) fn press(&mut self, key: KeyCode) -> JogAction {
        let is_confirming = std::mem::take(&mut self.confirms_let_go);
        let by = STEPS.get(self.size).copied().unwrap_or(0.1);
        let step = |axis, by| JogAction::Step(JogRequest { axis, by });
        match key {
            KeyCode::Char(' ') => JogAction::Stop,
            KeyCode::Char('q') | KeyCode::Esc => JogAction::Quit,
            KeyCode::Char('y') if is_confirming => JogAction::LetGo,
            KeyCode::Char('x') => step(JogAxis::X, by),
            KeyCode::Char('X') => step(JogAxis::X, -by),
            KeyCode::Char('y') => step(JogAxis::Y, by),
            KeyCode::Char('Y') => step(JogAxis::Y, -by),
            KeyCode::Char('z') => step(JogAxis::Z, by),
            KeyCode::Char('Z') => step(JogAxis::Z, -by),
            KeyCode::Right => step(JogAxis::Joint(self.joint), by),
            KeyCode::Left => step(JogAxis::Joint(self.joint), -by),
            KeyCode::Char('p') => JogAction::Record,
            other => self.change_selection(other),
        }
    }

    fn change_selection(&mut self, key: KeyCode) -> JogAction {
        let last = self.stance.joints.len().saturating_sub(1);
        match key {
            KeyCode::Up => self.joint = self.joint.saturating_sub(1),
            KeyCode::Down => self.joint = (self.joint + 1).min(last),
            KeyCode::Char('s') => self.size = (self.size + 1) % STEPS.len(),
            KeyCode::Char('g') => {
                self.confirms_let_go = true;
                "torque goes off and the arm drops: hold the arm, then press y"
                    .clone_into(&mut self.message);
            }
            _ => {}
        }
        JogAction::ViewOnly
    }

    /// Returns all lines of the view, from the top.
    pub(super) fn lines(&self) -> Vec<ViewLine> {
        let joints = self.stance.joints.iter().enumerate();
        let joints = joints.map(|(index, joint)| self.joint_line(index, joint));
        let [keys, more_keys] = KEYS;
        let footer = ["", &self.tip(), "", self.status_line(), "", keys, more_keys];
        let footer = footer.map(ViewLine::plain);
        let header = [&self.title(), "", HEADER].map(ViewLine::plain);
        header.into_iter().chain(joints).chain(footer).collect()
    }

    fn title(&self) -> String {
        let torque = match self.stance.energised {
            true => "",
            false => ", torque off",
        };
        let arm = self.stance.arm.as_ref();
        let arm = arm.map_or_else(String::new, |arm| format!("arm {arm}, "));
        format!("jog: {arm}{}{torque}", self.stance.state)
    }

    fn joint_line(&self, index: usize, joint: &JogJoint) -> ViewLine {
        let margin_deg = (joint.deg - joint.lower_deg).min(joint.upper_deg - joint.deg);
        let no_value = || "-".to_owned();
        let load = joint
            .load
            .map_or_else(no_value, |load| format!("{:.0} %", load * 1e2));
        let heat = joint
            .temperature_c
            .map_or_else(no_value, |c| format!("{c:.0} C"));
        let limits = format!("{:.0} to {:.0}", joint.lower_deg, joint.upper_deg);
        let mark = if index == self.joint { ">" } else { " " };
        ViewLine {
            text: format!(
                "{mark} {:<16}{:>9.2}  {limits:<14}{margin_deg:>5.0}{load:>8}{heat:>7}",
                joint.name, joint.deg
            ),
            // Bold near a limit, where the next step may be refused.
            is_bold: margin_deg < STEPS[2],
        }
    }

    fn tip(&self) -> String {
        let [x, y, z] = self.stance.tip_mm;
        let step = STEPS.get(self.size).copied().unwrap_or(0.1);
        format!(
            "tip {x:.2} {y:.2} {z:.2} mm, {:.2} mm over the sheet; step {step} mm or degrees",
            self.stance.height_mm
        )
    }

    fn status_line(&self) -> &str {
        match &self.stance.denied {
            Some(reason) if self.message.is_empty() => reason,
            _ => &self.message,
        }
    }
}

/// Header of the lines of [`JogView::joint_line`].
const HEADER: &str = "  joint             degrees  limits         left    load   heat";

const KEYS: [&str; 2] = [
    "space: stop   x X y Y z Z: move the tip   up down: choose a joint   left right: turn it   s: step size",
    "g: let go (the arm drops)   p: record the pose   q: quit",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> JogView {
        let joint = |name: &str, deg| JogJoint {
            name: name.to_owned(),
            deg,
            lower_deg: -90.0,
            upper_deg: 90.0,
            load: Some(0.12),
            temperature_c: Some(31.0),
        };
        JogView {
            stance: JogState {
                arm: None,
                state: "holding".to_owned(),
                energised: true,
                denied: Some("motion is not enabled".to_owned()),
                joints: vec![joint("shoulder_pan", 10.0), joint("elbow", -85.0)],
                tip_mm: [1.0, -170.25, 30.0],
                height_mm: 25.0,
            },
            ..JogView::default()
        }
    }

    #[test]
    fn keys_are_steps_of_three_sizes_and_space_stops() {
        let mut view = view();
        let step = |axis, by| JogAction::Step(JogRequest { axis, by });
        for (key, action) in [
            (KeyCode::Char('x'), step(JogAxis::X, 0.1)),
            (KeyCode::Char('Z'), step(JogAxis::Z, -0.1)),
            (KeyCode::Char('s'), JogAction::ViewOnly),
            (KeyCode::Char('y'), step(JogAxis::Y, 1.0)),
            (KeyCode::Down, JogAction::ViewOnly),
            (KeyCode::Down, JogAction::ViewOnly),
            (KeyCode::Left, step(JogAxis::Joint(1), -1.0)),
            (KeyCode::Char('s'), JogAction::ViewOnly),
            (KeyCode::Right, step(JogAxis::Joint(1), 10.0)),
            (KeyCode::Char('s'), JogAction::ViewOnly),
            (KeyCode::Char('X'), step(JogAxis::X, -0.1)),
            (KeyCode::Char(' '), JogAction::Stop),
            (KeyCode::Char('q'), JogAction::Quit),
        ] {
            assert_eq!(view.press(key), action, "{key:?}");
        }
    }

    #[test]
    fn torque_goes_off_only_after_a_second_key() {
        let mut view = view();
        assert_eq!(view.press(KeyCode::Char('g')), JogAction::ViewOnly);
        assert!(view.message.contains("hold"));
        assert_eq!(view.press(KeyCode::Char(' ')), JogAction::Stop);
        assert!(matches!(view.press(KeyCode::Char('y')), JogAction::Step(_)));
        view.press(KeyCode::Char('g'));
        assert_eq!(view.press(KeyCode::Char('y')), JogAction::LetGo);
    }

    #[test]
    fn the_view_shows_joints_limits_tip_and_what_forbids_motion() {
        let lines = view().lines();
        let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        let text = text.join("\n");
        for expected in [
            "jog: holding",
            "shoulder_pan",
            "10.00",
            "-90 to 90",
            "12 %",
            "31 C",
            "tip 1.00 -170.25 30.00 mm, 25.00 mm over the sheet",
            "motion is not enabled",
            "space: stop",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        // Only the joint near its limit stands out.
        let bold: Vec<&ViewLine> = lines.iter().filter(|line| line.is_bold).collect();
        assert!(
            matches!(bold[..], [line] if line.text.contains("elbow")),
            "{bold:?}"
        );
    }
}
