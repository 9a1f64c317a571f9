//! `exam cases`: those that ship and the operator's own.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Subcommand;

use super::{Exit, NodeArgs, show, toolbox, write};
use crate::exam::{Case, Record};

#[derive(Debug, Subcommand)]
pub(super) enum CasesCommand {
    /// Names, what is asked and what is right
    List {
        /// Only of this class
        #[arg(long)]
        class: Option<String>,
        /// Only your own
        #[arg(long)]
        own: bool,
    },
    /// Add a case of your own: a JSON object such as {"query": "Draw!", "expected_tool": "stroke"}
    Add {
        /// The case
        case: String,
    },
    /// Add the cases of a file: JSON lines, or a BFCL question file
    Import {
        /// The file
        file: PathBuf,
        /// A BFCL file of possible answers
        #[arg(long, value_name = "FILE")]
        answers: Option<PathBuf>,
    },
    /// Write cases as JSON lines
    Export {
        /// Where [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Only your own
        #[arg(long)]
        own: bool,
    },
    /// Take out a case of your own
    Remove {
        /// Its name
        name: String,
    },
}

pub(super) fn run(
    node: &NodeArgs,
    what: CasesCommand,
    record: &mut Record,
) -> anyhow::Result<Exit> {
    match what {
        CasesCommand::List { class, own } => list(node, record, class.as_deref(), own)?,
        CasesCommand::Add { case } => {
            let mut cases = Case::read_lines(&case)?;
            let [one] = cases.as_mut_slice() else {
                bail!("write one JSON object; several come by `exam cases import`");
            };
            if one.name == "case_1" {
                one.name = format!("own_{}", record.cases()?.len() + 1);
            }
            add(node, record, &cases)?;
        }
        CasesCommand::Import { file, answers } => {
            let cases = super::run::cases_of(&file, answers.as_deref())?;
            add(node, record, &cases)?;
        }
        CasesCommand::Export { out, own } => export(record, out, own)?,
        CasesCommand::Remove { name } => record.remove_case(&name)?,
    }
    Ok(Exit::Done)
}

fn all(record: &Record, own: bool) -> anyhow::Result<Vec<Case>> {
    let shipped = if own { Vec::new() } else { Case::shipped()? };
    Ok(shipped.into_iter().chain(record.cases()?).collect())
}

fn list(node: &NodeArgs, record: &Record, class: Option<&str>, own: bool) -> anyhow::Result<()> {
    let (tools, _) = toolbox(node)?;
    let mut shown = 0;
    for case in all(record, own)? {
        if class.is_some_and(|class| class != case.class.word()) {
            continue;
        }
        shown += 1;
        show::line(&format!(
            "{:<20} {:<8} {:<12} {}",
            case.name,
            case.hazard(&tools).word(),
            case.expected_tool.as_deref().unwrap_or("(none)"),
            case.query.replace('\n', " ")
        ));
    }
    show::note(&format!("{shown} cases"));
    Ok(())
}

/// Adds cases that the node could examine: those whose own right call it would carry out.
fn add(node: &NodeArgs, record: &mut Record, cases: &[Case]) -> anyhow::Result<()> {
    let (tools, _) = toolbox(node)?;
    for case in cases {
        let own = tools.for_case(case)?;
        if !case.fits(&own) {
            bail!(
                "case {}: its own right call, {} {}, would be refused; mend expected_tool or expected_params",
                case.name,
                case.expected_tool.as_deref().unwrap_or_default(),
                case.right_arguments()
            );
        }
    }
    record.add_cases(cases)?;
    show::note(&format!("{} cases added", cases.len()));
    Ok(())
}

fn export(record: &Record, out: Option<PathBuf>, own: bool) -> anyhow::Result<()> {
    let lines: Vec<String> = all(record, own)?.iter().map(Case::line).collect();
    match out {
        Some(out) => write(&out, &(lines.join("\n") + "\n")).context("the cases are not exported"),
        None => {
            lines.iter().for_each(|line| show::line(line));
            Ok(())
        }
    }
}
