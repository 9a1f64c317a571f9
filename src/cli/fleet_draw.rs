//! `fleet draw`: a queue of drawings for several nodes. The nodes' own journals hold what is drawn, so that the same command
//! continues the queue after any interruption.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use futures::StreamExt as _;
use futures::future::{BoxFuture, join_all};
use futures::stream::FuturesUnordered;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::design_files;
use super::placement_args::{length_mm, point_mm};
use super::{ExitStatus, NodeOptions, terminal_output};
use base::signals::{SignalKind, SignalListener};
use base::units::Finite;
use base::wording::{count, cut};
use fleet::draw_queue::{DrawQueue, DrawingNews, Handout, HandoutOutcome};
use fleet::queue_desk::LEASE;
use fleet::{Fleet, FleetPeer, QueueTag};
use node::{open, peers};

/// Error if there is no node to hand drawings to.
pub(super) const NO_PEERS: &str = "the node file names no other nodes. Next: add each as `[[peers]]` with its address and token, and name the file with --config";

/// Interval at which the nodes are asked.
const ROUND: Duration = Duration::from_secs(2);

/// Most drawings of one batch: a node keeps that many jobs by default, with room for others.
const DRAWINGS_MAX: usize = 100;

/// Number of digits in a batch's name.
const BATCH_DIGITS: usize = 12;

#[derive(Debug, Args)]
pub(super) struct FleetDrawArgs {
    /// SVG files or folders of them: each file is one drawing, and a file given twice is drawn twice
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The nodes that draw, by their names in the node file [default: all]
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    nodes: Vec<String>,
    /// Nodes that you declare gone, with nothing of this batch drawn: they are not waited for
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    without: Vec<String>,
    /// The canvas of each node
    #[arg(long, value_name = "NAME", default_value = "canvas")]
    scene: String,
    /// The longer side of each drawing's page, such as 60mm [default: as in the file]
    #[arg(long, value_name = "LENGTH", value_parser = length_mm, allow_hyphen_values = true)]
    size: Option<Finite>,
    /// The page's lower left corner on the sheet, such as 20mm,30mm [default: in the middle]
    #[arg(long, value_name = "X,Y", value_parser = point_mm, allow_hyphen_values = true)]
    at: Option<[Finite; 2]>,
    /// Another name makes another batch of the same files, which are then all drawn again
    #[arg(long, value_name = "NAME", default_value = "")]
    batch: String,
    /// End as soon as everything left waits for a node or a person
    #[arg(long)]
    no_wait: bool,
    /// Print the outcome of each drawing as JSON at the end
    #[arg(long)]
    json: bool,
}

/// One drawing of a batch.
struct BatchDrawing {
    name: String,
    svg: String,
}

pub(super) async fn run(options: &NodeOptions, args: &FleetDrawArgs) -> anyhow::Result<ExitStatus> {
    let drawings = drawings(&args.files)?;
    let file = open::file(options)?;
    let fleet = peers::fleet(&file).context(NO_PEERS)?;
    let peers = fleet.peers();
    check_names(&peers, args.nodes.iter().chain(&args.without))?;
    let is_listed = |list: &[String], peer: &FleetPeer| list.contains(&peer.name);
    let nodes = peers.iter().map(|peer| {
        let is_excused = is_listed(&args.without, peer);
        let draws = !is_excused && (args.nodes.is_empty() || is_listed(&args.nodes, peer));
        (peer.name.clone(), draws, is_excused)
    });
    let numbers = u32::try_from(drawings.len()).context("too many drawings")?;
    let mut batch = BatchRun {
        queue: DrawQueue::new(nodes, numbers),
        batch: batch_name(args, &drawings),
        holder: format!("{:016x}", getrandom::u64()?),
        fleet,
        peers,
        args,
        drawings,
        printed: BTreeMap::new(),
    };
    batch.announce();
    let exit = batch.run().await?;
    batch.report()?;
    Ok(exit)
}

fn check_names<'a>(
    peers: &[FleetPeer],
    requested: impl Iterator<Item = &'a String>,
) -> anyhow::Result<()> {
    let is_known = |name: &str| peers.iter().any(|peer| peer.name == name);
    for name in requested {
        ensure!(
            is_known(name),
            "the node file has no peer `{name}` in `[[peers]]`. Valid: {}",
            names(peers)
        );
    }
    Ok(())
}

fn names(peers: &[FleetPeer]) -> String {
    let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
    names.join(", ")
}

fn drawings(files: &[PathBuf]) -> anyhow::Result<Vec<BatchDrawing>> {
    let mut drawings = Vec::new();
    for design in design_files::designs(files)? {
        for (name, bytes) in design.read()? {
            let is_svg = name.to_lowercase().ends_with(".svg");
            let svg = String::from_utf8(bytes).ok().filter(|_| is_svg);
            let svg = svg.with_context(|| {
                format!("{} is not an SVG; other nodes draw only SVG. Next: draw it on one node with `steadyhand draw`", design.path.display())
            })?;
            drawings.push(BatchDrawing { name, svg });
        }
    }
    match drawings.len() {
        0 => bail!("there is nothing to draw"),
        1..=DRAWINGS_MAX => Ok(drawings),
        count => bail!(
            "these are {count} drawings (at most {DRAWINGS_MAX} in a batch). Next: split them"
        ),
    }
}

/// Returns the name of a batch: a hash of its drawings and options.
fn batch_name(args: &FleetDrawArgs, drawings: &[BatchDrawing]) -> String {
    let mut hasher = blake3::Hasher::new();
    let options = json!([args.batch, args.scene, args.size, args.at]);
    hasher.update(options.to_string().as_bytes());
    for drawing in drawings {
        hasher.update(blake3::hash(drawing.svg.as_bytes()).as_bytes());
    }
    cut(&hasher.finalize().to_hex(), BATCH_DIGITS)
}

/// A call under way that hands out a drawing.
type PendingHandout = BoxFuture<'static, (Handout, HandoutOutcome)>;

struct BatchRun<'a> {
    queue: DrawQueue,
    batch: String,
    holder: String,
    fleet: Arc<Fleet>,
    peers: Vec<FleetPeer>,
    args: &'a FleetDrawArgs,
    drawings: Vec<BatchDrawing>,
    /// Last printed line of each drawing, without its progress.
    printed: BTreeMap<u32, String>,
}

impl BatchRun<'_> {
    fn announce(&self) {
        self.print(&format!(
            "batch {}: {}; nodes: {}. Ctrl-C quits, and the same command continues the batch",
            self.batch,
            count(self.drawings.len(), "drawing"),
            names(&self.peers)
        ));
    }

    async fn run(&mut self) -> anyhow::Result<ExitStatus> {
        let mut pending: FuturesUnordered<PendingHandout> = FuturesUnordered::new();
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let began = Instant::now();
        let mut interrupts = SignalListener::listen(SignalKind::Interrupt)?;
        loop {
            tokio::select! {
                _ = rounds.tick() => {
                    self.ask_all().await;
                    let handouts = self.queue.hand_out();
                    pending.extend(handouts.into_iter().map(|handout| self.hand_out(handout)));
                }
                Some((handout, outcome)) = pending.next(), if !pending.is_empty() => {
                    self.queue.answered(handout, outcome);
                }
                _ = interrupts.recv() => {
                    self.print("you quit; the nodes finish the drawings that they have begun");
                    return Ok(ExitStatus::Refused);
                }
            }
            self.print_news();
            if self.queue.is_drawn() {
                return Ok(ExitStatus::Done);
            }
            // The lease of a killed queue of the same batch must run out first.
            let is_early = !self.queue.is_surveyed() && began.elapsed() < LEASE + ROUND * 2;
            let only_waits = pending.is_empty() && self.queue.only_waits();
            if self.args.no_wait && only_waits && !is_early {
                return Ok(ExitStatus::Refused);
            }
        }
    }

    async fn ask_all(&mut self) {
        let requests = self.peers.iter().enumerate().map(|(node, peer)| {
            let tag = self.tag(node, None);
            self.fleet.ask_queue(peer, tag)
        });
        let reports = join_all(requests).await;
        self.queue.apply_reports(reports);
    }

    fn hand_out(&self, handout: Handout) -> PendingHandout {
        let tag = self.tag(handout.node, Some(handout.drawing));
        let fleet = Arc::clone(&self.fleet);
        let peer = self.peers.get(handout.node).cloned();
        let arguments = self.arguments(handout.drawing);
        // A separate task continues while nodes that do not answer are waited for.
        let pending = base::task::spawn(async move {
            let outcome = match (peer, arguments) {
                (Some(peer), Some(arguments)) => fleet.hand_out(&peer, tag, arguments).await,
                _ => HandoutOutcome::NotNow("there is no such drawing or node".to_owned()),
            };
            (handout, outcome)
        });
        Box::pin(async move { pending.await.unwrap_or((handout, HandoutOutcome::Lost)) })
    }

    fn tag(&self, node: usize, drawing: Option<u32>) -> QueueTag {
        QueueTag {
            batch: self.batch.clone(),
            holder: self.holder.clone(),
            generation: self.queue.generation(node),
            drawing,
            grant: self.queue.grant(node),
        }
    }

    /// Returns the arguments of `stroke` for a drawing.
    fn arguments(&self, drawing: u32) -> Option<Map<String, Value>> {
        let arguments = [
            ("scene", Some(json!(self.args.scene))),
            ("svg", Some(json!(self.drawing(drawing)?.svg))),
            ("size_mm", self.args.size.map(|size_mm| json!(size_mm))),
            ("at_mm", self.args.at.map(|at_mm| json!(at_mm))),
        ];
        let given = arguments
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Some(given.collect())
    }

    fn drawing(&self, number: u32) -> Option<&BatchDrawing> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.drawings.get(index)
    }

    fn name(&self, drawing: u32) -> &str {
        self.drawing(drawing).map_or("", |drawing| &drawing.name)
    }

    /// Prints changes other than mere progress.
    fn print_news(&mut self) {
        for number in self.queue.numbers() {
            let (kind, text) = kind_and_text(self.queue.news(number));
            let key = match kind {
                // The text after the colon changes with every stroke; the node's name does not.
                "draws" => text.split(':').next().unwrap_or_default().to_owned(),
                _ => format!("{kind} {text}"),
            };
            let is_news = self.printed.get(&number) != Some(&key);
            if is_news && kind != "queued" {
                let (total, name) = (self.drawings.len(), self.name(number));
                self.print(&format!("{number} of {total} {name}: {kind} {text}"));
                self.printed.insert(number, key);
            }
        }
    }

    fn print(&self, text: &str) {
        if self.args.json {
            terminal_output::note(text);
        } else {
            terminal_output::line(text);
        }
    }

    fn report(&self) -> anyhow::Result<()> {
        if self.args.json {
            let drawings = self.queue.numbers().map(|number| {
                let (kind, words) = kind_and_text(self.queue.news(number));
                let name = self.name(number);
                json!({ "drawing": number, "file": name, "state": kind, "words": words })
            });
            let drawings: Vec<Value> = drawings.collect();
            let result = json!({ "batch": self.batch, "drawings": drawings });
            return terminal_output::json(&result);
        }
        let news = self.queue.numbers().map(|number| self.queue.news(number));
        let drawn = news.filter(|news| matches!(news, DrawingNews::Drawn(_)));
        let total = count(self.drawings.len(), "drawing");
        terminal_output::line(&format!("{} of {total} drawn", drawn.count()));
        Ok(())
    }
}

/// Returns a word for the state of a drawing, and the rest of the sentence.
fn kind_and_text(news: DrawingNews) -> (&'static str, String) {
    match news {
        DrawingNews::Drawn(words) => ("drawn", words),
        DrawingNews::UnderWay(words) => ("draws", words),
        DrawingNews::Queued => ("queued", String::new()),
        DrawingNews::Waits(words) => ("waits", words),
    }
}
