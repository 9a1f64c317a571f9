//! An arm at the far end of a wire that a test listens to and breaks at a chosen frame.
//!
//! What is judged are the bytes that left the port, read here by the manuals, apart from the drivers.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic; not every test uses every helper"
)]

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use firmware_protocol::{Decoder, Message, Received};
use steadyhand::clock::NodeClock;
use steadyhand::gate::{self, CheckedTrajectory};
use steadyhand::link::memory::MemoryLink;
use steadyhand::link::{ByteLink, LinkError, LinkFuture};
use steadyhand::motion::{BusThread, MotionError, MotionHandle, MotionOutcome, PortOpener};
use steadyhand::permit::{ActorRank, MotionPermit, PermitRegistry};
use steadyhand::plan::{self, SilentObserver, SpanKind, Trajectory};
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::sim::{ArmSimulator, SimulatedFault};
use steadyhand::units::ClockInstant;

/// The script of a broken wire: at each frame with goals it is told how many came before since the
/// pen first touched the paper.
pub(crate) type Script = Box<dyn FnMut(usize, &mut Hands<'_>) + Send>;

/// Everything that a script may lay its hands on.
pub(crate) struct Hands<'a> {
    pub(crate) sim: &'a ArmSimulator,
    pub(crate) clock: &'a NodeClock,
    /// From now on the port takes no bytes.
    pub(crate) stuck: &'a mut bool,
}

/// The period of a cycle.
pub(crate) const PERIOD: Duration = Duration::from_millis(10);

/// The families that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Sts,
    Dxl2,
    /// A controller over `firmware-protocol`; its frames are judged in that crate.
    Firmware,
}

impl Family {
    /// Those whose servos the node speaks to itself.
    pub(crate) const ALL: [Self; 2] = [Self::Sts, Self::Dxl2];

    pub(crate) fn arm(self) -> &'static str {
        match self {
            Self::Sts => "so101",
            Self::Dxl2 => "widowx250s",
            Self::Firmware => "custom",
        }
    }
}

/// One frame of goals as it left the port: who, and to which tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Goals {
    pub(crate) at: ClockInstant,
    pub(crate) ticks: Vec<(u8, i32)>,
}

#[derive(Default)]
pub(crate) struct WireState {
    /// Every request, with its moment.
    pub(crate) sent: Vec<(ClockInstant, Vec<u8>)>,
    goal_frames: usize,
    /// The first send since the script was set.
    began: Option<ClockInstant>,
    /// Number of frames of goals before the script begins.
    from: usize,
    script: Option<Script>,
    /// Time at which the script first ran.
    pub(crate) broken_at: Option<ClockInstant>,
    stuck: bool,
    /// The first send behind the break that found something latched.
    pub(crate) latched_at: Option<ClockInstant>,
}

/// The near end of the wire, as the test sees it; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<WireState>>);

impl Wire {
    pub(crate) fn state(&self) -> MutexGuard<'_, WireState> {
        self.0.lock().unwrap()
    }

    /// Runs a script at every frame of goals behind the first `from`.
    pub(crate) fn script(&self, from: usize, script: Script) {
        let mut state = self.state();
        state.from = from;
        state.goal_frames = 0;
        state.began = None;
        state.broken_at = None;
        state.latched_at = None;
        state.script = Some(script);
    }

    /// Takes the script away and lets the port take bytes again.
    pub(crate) fn mend(&self) {
        let mut state = self.state();
        state.script = None;
        state.stuck = false;
    }

    /// Returns how long after the break something was latched; `now` counts where nothing was sent since.
    pub(crate) fn latched_after(&self, now: ClockInstant) -> Duration {
        let state = self.state();
        state
            .latched_at
            .unwrap_or(now)
            .since(state.broken_at.unwrap())
    }

    /// Every frame of goals so far.
    pub(crate) fn goals(&self, family: Family) -> Vec<Goals> {
        let state = self.state();
        let frames = state.sent.iter().filter_map(|(at, bytes)| {
            let ticks = goals(family, bytes)?;
            Some(Goals { at: *at, ticks })
        });
        frames.collect()
    }

    /// Returns everything sent to a controller so far.
    pub(crate) fn messages(&self) -> Vec<(ClockInstant, Message)> {
        let (mut decoder, mut found) = (Decoder::new(), Vec::new());
        for (at, bytes) in &self.state().sent {
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                if let Received::Frame(frame) = decoder.take(&mut rest)
                    && let Ok(message) = Message::decode(&frame)
                {
                    found.push((*at, message));
                }
            }
        }
        found
    }

    /// Returns where the last piece of a controller's motion ends, in microradians.
    pub(crate) fn last_segment(&self) -> Option<Vec<(u8, i32)>> {
        let messages = self.messages().into_iter().rev();
        let mut segments = messages.filter_map(|(_, message)| match message {
            Message::Segment(segment) => Some(segment),
            _ => None,
        });
        let ends = segments.next()?.end;
        let ends = (1..).zip(&ends);
        Some(ends.map(|(id, end)| (id, end.position_urad)).collect())
    }

    /// Every write so far: address, and the bytes for each servo.
    pub(crate) fn writes(&self, family: Family) -> Vec<Write> {
        let state = self.state();
        let requests = state
            .sent
            .iter()
            .flat_map(|(_, bytes)| requests(family, bytes));
        requests
            .flat_map(|request| writes(family, &request))
            .collect()
    }
}

/// A link that keeps what is sent and lets a script break things.
struct Tapped {
    inner: MemoryLink<ArmSimulator>,
    wire: Wire,
    sim: ArmSimulator,
    clock: NodeClock,
    permits: Arc<PermitRegistry>,
    family: Family,
}

impl Tapped {
    /// Returns whether this send is one of a motion. What a controller is sent does not come cycle by
    /// cycle: there the time says where the motion is.
    fn counts(&self, state: &mut WireState, bytes: &[u8]) -> bool {
        if self.family != Family::Firmware {
            return goals(self.family, bytes).is_some();
        }
        let now = self.clock.now();
        let began = *state.began.get_or_insert(now);
        let due = now.since(began) >= PERIOD * u32::try_from(state.from).unwrap();
        if due {
            state.goal_frames = state.goal_frames.max(state.from);
        }
        due
    }

    /// Notes the bytes and runs the script where it is due; returns whether the port takes them.
    fn note(&mut self, bytes: &[u8]) -> bool {
        let wire = self.wire.clone();
        let mut state = wire.state();
        state.sent.push((self.clock.now(), bytes.to_vec()));
        if state.broken_at.is_some() && self.permits.latched().is_some() {
            state.latched_at.get_or_insert(self.clock.now());
        }
        if self.counts(&mut state, bytes) {
            let number = state.goal_frames;
            state.goal_frames += 1;
            let due = number >= state.from;
            if let Some(mut script) = state.script.take_if(|_| due) {
                let mut stuck = state.stuck;
                state.broken_at.get_or_insert(self.clock.now());
                let mut hands = Hands {
                    sim: &self.sim,
                    clock: &self.clock,
                    stuck: &mut stuck,
                };
                script(number - state.from, &mut hands);
                state.stuck = stuck;
                state.script = Some(script);
            }
        }
        !state.stuck
    }
}

impl ByteLink for Tapped {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        Box::pin(async move {
            if self.note(bytes) {
                return self.inner.send(bytes).await;
            }
            // As a real port that takes no bytes is given up; others that share the clock go on.
            let later = self.clock.now().after(Duration::from_millis(100));
            self.clock.alarm().unwrap().until(later).await.unwrap();
            Err(LinkError::Write(std::io::ErrorKind::TimedOut.into()))
        })
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        self.inner.receive(into, until)
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        self.inner.discard_input()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}

/// A short drawing, its arm on a tapped wire, and a simulated clock.
pub(crate) struct Rig {
    pub(crate) family: Family,
    pub(crate) scene: Arc<Scene>,
    pub(crate) sim: ArmSimulator,
    pub(crate) wire: Wire,
    pub(crate) clock: NodeClock,
    pub(crate) permits: Arc<PermitRegistry>,
    pub(crate) folder: tempfile::TempDir,
}

/// Three lines of 30 mm.
const LINES: &str = "polylines = [[[0.0, 0.0], [30.0, 0.0]], [[30.0, 12.0], [0.0, 12.0]], [[0.0, 24.0], [30.0, 24.0]]]";

/// An STS3215 of the 12 V kit, as kscalelabs/sysid measured it.
const TWELVE_VOLTS: &str = "\n[simulation.servo]\nstall_n_m = 4.98\nerror_gain = 0.165\narmature_kg_m2 = 0.0266\n\
    back_emf_n_m_s = 1.51\nviscous_n_m_s = 0.0616\nfriction_n_m = 0.12\n";

/// A scene that is shipped, with three lines to draw in the place of its design.
fn short_scene(
    family: Family,
    edit: impl FnOnce(&mut toml::Table),
) -> (Arc<Scene>, tempfile::TempDir) {
    let name = match family {
        Family::Sts | Family::Firmware => "default",
        Family::Dxl2 => "widowx",
    };
    let path = format!("{}/scenes/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let mut text: toml::Table = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    text.insert("name".to_owned(), "short".into());
    text.insert("arm".to_owned(), family.arm().into());
    let design: toml::Table = toml::from_str(LINES).unwrap();
    text.insert("design".to_owned(), design.into());
    edit(&mut text);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("short.toml"), text.to_string()).unwrap();
    let library = SceneLibrary::new(Some(folder.path().to_path_buf()));
    (library.scene("short", None).unwrap(), folder)
}

impl Rig {
    pub(crate) fn new(family: Family) -> Self {
        Self::with(family, |_| {})
    }

    /// Creates a rig with an edited scene file.
    pub(crate) fn with(family: Family, edit: impl FnOnce(&mut toml::Table)) -> Self {
        let (scene, folder) = short_scene(family, edit);
        let clock = NodeClock::simulated();
        Self {
            family,
            sim: ArmSimulator::new(&scene.arm, &scene.rest_rad),
            scene,
            wire: Wire::default(),
            clock,
            permits: Arc::new(PermitRegistry::everything()),
            folder,
        }
    }

    /// Creates a rig of an SO-101 whose servos are those of 12 V, which its file does not say.
    pub(crate) fn twelve_volts() -> Self {
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/arms/so101.toml");
        let arm = std::fs::read_to_string(shipped).unwrap() + TWELVE_VOLTS;
        Self::of_arm(&arm, |_| {})
    }

    /// Creates a rig of an SO-101 with a file of its own, and an edited scene file.
    pub(crate) fn of_arm(arm: &str, edit: impl FnOnce(&mut toml::Table)) -> Self {
        let rig = Self::with(Family::Sts, edit);
        let arms = rig.folder.path().join("arms");
        std::fs::create_dir(&arms).unwrap();
        std::fs::write(arms.join("so101.toml"), arm).unwrap();
        let library = SceneLibrary::new(Some(rig.folder.path().to_path_buf()));
        let scene = library.scene("short", None).unwrap();
        let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
        Self { scene, sim, ..rig }
    }

    pub(crate) fn break_all(&self, faults: &[SimulatedFault]) {
        let each = faults.iter().cloned();
        each.for_each(|fault| self.sim.break_it(fault));
    }

    pub(crate) fn opener(&self) -> PortOpener {
        let (wire, sim, family) = (self.wire.clone(), self.sim.clone(), self.family);
        let permits = Arc::clone(&self.permits);
        Box::new(move |clock| {
            let inner = MemoryLink::new(sim.clone(), clock, "wire").map_err(LinkError::Read)?;
            Ok(Box::new(Tapped {
                inner,
                wire: wire.clone(),
                sim: sim.clone(),
                clock: clock.clone(),
                permits: Arc::clone(&permits),
                family,
            }) as Box<dyn ByteLink>)
        })
    }

    /// Opens the port and attaches.
    pub(crate) fn attach(&self) -> Result<MotionHandle, MotionError> {
        self.attach_on(&BusThread::start("arm")?)
    }

    /// Opens the port and attaches on a thread that other arms may share, as those of one simulated clock do.
    pub(crate) fn attach_on(&self, thread: &BusThread) -> Result<MotionHandle, MotionError> {
        let arm = Arc::clone(&self.scene.arm);
        let permits = Arc::clone(&self.permits);
        thread.attach(arm, self.clock.clone(), permits, self.opener())
    }

    pub(crate) fn permit(&self) -> MotionPermit {
        self.permits.ask(&self.scene, self.clock.now()).unwrap()
    }

    /// The drawing, planned from where the arm stands.
    pub(crate) fn plan(&self, motion: &MotionHandle) -> Trajectory {
        let start = motion.snapshot().measured.unwrap();
        plan::draw(&self.scene, &start.position_rad, &SilentObserver)
            .unwrap()
            .trajectory
    }

    pub(crate) fn check(
        &self,
        motion: &MotionHandle,
        permit: MotionPermit,
        trajectory: Trajectory,
    ) -> CheckedTrajectory {
        let start = motion.snapshot().measured.unwrap();
        gate::check(&self.scene, permit, &start, self.clock.now(), trajectory).unwrap()
    }

    /// Draws, with a script that begins in the middle of the first line.
    pub(crate) async fn draw(
        &self,
        motion: &MotionHandle,
        script: Option<Script>,
    ) -> MotionOutcome {
        let trajectory = self.plan(motion);
        if let Some(script) = script {
            self.wire.script(middle_of_ink(&trajectory), script);
        }
        let proof = self.check(motion, self.permit(), trajectory);
        let outcome = motion.run(proof, motion.stops_requested()).await.unwrap();
        self.wire.mend();
        outcome
    }

    /// Does what `reset` does: goes to the ready pose and to rest, out of a stop or a fault.
    pub(crate) async fn reset(&self, motion: &MotionHandle, by: ActorRank) -> MotionOutcome {
        let permit = self
            .permits
            .ask_reset(&self.scene, by, self.clock.now())
            .unwrap();
        let start = motion.snapshot().measured.unwrap();
        let poses = [self.scene.ready_rad, self.scene.rest_rad];
        let plan = plan::go_to(&self.scene, &start.position_rad, &poses, &SilentObserver).unwrap();
        let proof = self.check(motion, permit.clone(), plan.trajectory);
        let outcome = motion.run(proof, motion.stops_requested()).await.unwrap();
        if matches!(outcome, MotionOutcome::Reached { .. }) {
            assert!(self.permits.unlatch(&permit), "the latch stays");
        }
        outcome
    }
}

/// A sample in the middle of the first line.
pub(crate) fn middle_of_ink(trajectory: &Trajectory) -> usize {
    let kinds = (0..trajectory.samples.len())
        .filter(|sample| {
            trajectory
                .span_at(*sample)
                .is_some_and(|span| span.kind == SpanKind::Draw)
        })
        .collect::<Vec<_>>();
    kinds[kinds.len() / 6]
}

/// An instruction on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: u8,
    pub(crate) instruction: u8,
    pub(crate) parameters: Vec<u8>,
}

/// Bytes for one servo's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) id: u8,
    pub(crate) address: u16,
    pub(crate) data: Vec<u8>,
}

/// Takes apart what was sent in one go.
pub(crate) fn requests(family: Family, bytes: &[u8]) -> Vec<Request> {
    match family {
        Family::Sts => sts_requests(bytes),
        Family::Dxl2 => dxl_requests(bytes),
        Family::Firmware => Vec::new(),
    }
}

/// FF FF ID LENGTH INSTRUCTION PARAMETER… CHECKSUM
fn sts_requests(mut bytes: &[u8]) -> Vec<Request> {
    let mut found = Vec::new();
    while let [0xFF, 0xFF, id, length, rest @ ..] = bytes {
        let (body, next) = rest.split_at(usize::from(*length));
        let sum = body
            .iter()
            .fold(u32::from(*id) + u32::from(*length), |sum, byte| {
                sum + u32::from(*byte)
            });
        assert_eq!(sum % 256, 255, "a checksum that does not fit left the port");
        found.push(Request {
            id: *id,
            instruction: body[0],
            parameters: body[1..body.len() - 1].to_vec(),
        });
        bytes = next;
    }
    assert!(
        bytes.is_empty(),
        "no whole frame left the port: {bytes:02X?}"
    );
    found
}

/// FF FF FD 00 ID LENGTH LENGTH INSTRUCTION PARAMETER… CRC CRC, with FD after FF FF FD
fn dxl_requests(mut bytes: &[u8]) -> Vec<Request> {
    static CRC: crc::Crc<u16> = crc::Crc::<u16>::new(&crc::CRC_16_UMTS);
    let mut found = Vec::new();
    while let [0xFF, 0xFF, 0xFD, 0, id, low, high, ..] = bytes {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (frame, next) = bytes.split_at(7 + length);
        let (covered, check) = frame.split_at(frame.len() - 2);
        assert_eq!(
            check,
            CRC.checksum(covered).to_le_bytes(),
            "a wrong CRC left the port"
        );
        let mut body = Vec::new();
        let mut stuffed = covered[7..].iter();
        while let Some(byte) = stuffed.next() {
            body.push(*byte);
            if body.ends_with(&[0xFF, 0xFF, 0xFD]) {
                stuffed.next();
            }
        }
        found.push(Request {
            id: *id,
            instruction: body[0],
            parameters: body[1..].to_vec(),
        });
        bytes = next;
    }
    assert!(
        bytes.is_empty(),
        "no whole frame left the port: {bytes:02X?}"
    );
    found
}

const SYNC_WRITE: u8 = 0x83;

/// Returns what a request writes, servo by servo.
pub(crate) fn writes(family: Family, request: &Request) -> Vec<Write> {
    let parameters = request.parameters.as_slice();
    let wide = family == Family::Dxl2;
    let word = |at: usize| u16::from_le_bytes([parameters[at], parameters[at + 1]]);
    match (request.instruction, wide) {
        _ if family == Family::Firmware => Vec::new(),
        (SYNC_WRITE, false) => blocks(
            u16::from(parameters[0]),
            parameters[1].into(),
            &parameters[2..],
        ),
        (SYNC_WRITE, true) => blocks(word(0), word(2).into(), &parameters[4..]),
        (3 | 4, false) => one(request.id, u16::from(parameters[0]), &parameters[1..]),
        (3 | 4, true) => one(request.id, word(0), &parameters[2..]),
        // Reading is all that a node does beside: ping, read, sync read and fast sync read.
        (1 | 2 | 0x82 | 0x8A, _) => Vec::new(),
        (other, _) => panic!("instruction {other:#x} left the port"),
    }
}

fn one(id: u8, address: u16, data: &[u8]) -> Vec<Write> {
    vec![Write {
        id,
        address,
        data: data.to_vec(),
    }]
}

fn blocks(address: u16, length: usize, blocks: &[u8]) -> Vec<Write> {
    let blocks = blocks.chunks_exact(length + 1);
    let write = |block: &[u8]| one(block[0], address, &block[1..]);
    blocks.flat_map(write).collect()
}

/// The goal position in a write, if there is one: STS 42, a word with its sign in bit 15;
/// Dynamixel X 116, four bytes.
pub(crate) fn goal_of(family: Family, write: &Write) -> Option<i32> {
    let address: u16 = match family {
        Family::Sts => 42,
        Family::Dxl2 => 116,
        Family::Firmware => return None,
    };
    let at = usize::from(address).checked_sub(usize::from(write.address))?;
    match family {
        Family::Sts => {
            let word = u16::from_le_bytes([*write.data.get(at)?, *write.data.get(at + 1)?]);
            let size = i32::from(word & 0x7FFF);
            Some(if word & 0x8000 == 0 { size } else { -size })
        }
        Family::Dxl2 => {
            let bytes = write.data.get(at..at + 4)?;
            Some(i32::from_le_bytes(bytes.try_into().unwrap()))
        }
        Family::Firmware => None,
    }
}

/// Returns whether a request asks one servo for its goal position.
pub(crate) fn reads_goal(family: Family, request: &Request) -> bool {
    let number = |at: usize| u16::from(request.parameters[at]);
    let (first, count, goal) = match family {
        _ if request.instruction != 2 => return false,
        Family::Sts => (number(0), number(1), 42),
        Family::Dxl2 => (number(0) + 256 * number(1), number(2), 116),
        Family::Firmware => return false,
    };
    (first..first + count).contains(&goal)
}

/// The goals of one send, if it has any.
pub(crate) fn goals(family: Family, bytes: &[u8]) -> Option<Vec<(u8, i32)>> {
    let requests = requests(family, bytes);
    let writes = requests.iter().flat_map(|request| writes(family, request));
    let goals: Vec<_> = writes
        .filter_map(|write| Some((write.id, goal_of(family, &write)?)))
        .collect();
    (!goals.is_empty()).then_some(goals)
}
