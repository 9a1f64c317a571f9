//! What a person would ask for, ready to be chosen in clients that show prompts.

/// One prompt.
#[derive(Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// The request, with `{scene}` for the chosen scene.
    text: &'static str,
}

/// The prompts. Each takes an optional `scene`.
pub static PROMPTS: [Prompt; 3] = [
    Prompt {
        name: "calibrate",
        description: "Check the arm and measure how well it tracks in a scene.",
        text: "Call sense. If nothing is wrong, call align with {\"scene\": \"{scene}\"}. \
               Tell me the largest tracking error and every point above 1 mm.",
    },
    Prompt {
        name: "draw",
        description: "Draw a scene's design and show the result.",
        text: "Call stroke with {\"scene\": \"{scene}\", \"dry_run\": true} and describe the plan. \
               When I agree, call stroke with {\"scene\": \"{scene}\"}. While its job runs, look with sense. \
               At the end show me the picture and the largest deviation.",
    },
    Prompt {
        name: "recover",
        description: "Find out why the arm stands still and bring it back to rest.",
        text: "Call sense and tell me in plain words what state the arm is in and why. \
               If an emergency stop is latched, ask me to clear it. Otherwise call reset with {} and look again with sense.",
    },
];

impl Prompt {
    /// The prompt of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        PROMPTS.iter().find(|prompt| prompt.name == name)
    }

    /// The request for one scene.
    #[must_use]
    pub fn fill(&self, scene: Option<&str>) -> String {
        self.text.replace("{scene}", scene.unwrap_or("default"))
    }

    /// Whether the request names a scene.
    #[must_use]
    pub fn takes_scene(&self) -> bool {
        self.text.contains("{scene}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_here;
    use super::PROMPTS;

    #[test]
    fn prompts_name_tools_that_exist() {
        for prompt in &PROMPTS {
            let text = prompt.fill(Some("letters"));
            assert!(!text.contains("{scene}"), "{text}");
            let called = text
                .split("all ")
                .skip(1)
                .filter_map(|rest| rest.split([' ', '.']).next());
            for tool in called {
                assert!(tests_here().find(tool).is_some(), "{tool} in {text}");
            }
        }
    }
}
