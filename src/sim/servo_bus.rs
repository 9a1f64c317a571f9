//! All servos of one bus, independent of their protocol: their ids, and the faults of each.

use std::marker::PhantomData;
use std::time::Duration;

use crate::arm_dynamics::{ArmDynamics, ServoDrive, ServoReadings};
use crate::bus_device::{BusDevice, ServoAnswer};
use base::units::ClockInstant;

/// The id that all of them obey.
pub(crate) const BROADCAST: u8 = 254;

/// Step of the return delay in both families, in microseconds. The delay counts no further than the maximum below.
const DELAY_STEP_US: u64 = 2;
const DELAY_MAX: u8 = 254;

/// A request as servos hear it.
pub(crate) struct Request {
    pub(crate) id: u8,
    pub(crate) instruction: u8,
    pub(crate) parameters: Vec<u8>,
    /// True if its checksum is right.
    pub(crate) whole: bool,
}

/// The particulars of one family of servos: its frames, its registers, and what they do.
pub(crate) trait SimulatedFamily: Send + Sized + 'static {
    /// Bytes of memory.
    const MEMORY: usize;
    /// Memory below this address outlives the power.
    const KEPT: usize;
    /// Memory as a servo leaves the factory, then set up for an arm: address, value.
    const FACTORY: &'static [(usize, u8)];
    /// Address of the id.
    const ID: usize;
    /// Address of the return delay.
    const DELAY: usize;
    /// Bytes of an address and of a length in a request.
    const WIDTH: usize;
    /// The error of a request that came damaged, where servos answer one.
    const DAMAGED: u8 = 0;
    /// The error of a request that a servo does not know; without one it does not answer.
    const UNKNOWN: Option<u8> = None;
    /// The error of a read beyond the memory; without one it does not answer.
    const BEYOND: Option<u8> = None;
    /// True if a servo restarts on request.
    const RESTARTS: bool = false;

    /// The request that this byte completes, collected as a servo's own receiver does.
    fn hear(frame: &mut Vec<u8>, byte: u8) -> Option<Request>;

    /// A whole reply.
    fn status(id: u8, error: u8, data: &[u8]) -> Vec<u8>;

    /// Returns the error byte of a reply for the errors that a servo has.
    fn alert(error: u8) -> u8;

    /// Returns the parameters of the answer to a ping.
    fn greeting(_memory: &ServoMemory) -> Vec<u8> {
        Vec::new()
    }

    /// Returns the status return level: 1 reads alone, 2 writes too.
    fn level(memory: &ServoMemory) -> u8;

    /// Returns whether a servo obeys this id without a word, though it is not its own.
    fn is_shadow(_memory: &ServoMemory, _id: u8) -> bool {
        false
    }

    /// Takes note that somebody speaks.
    fn heard(_servo: &mut RegisterServo<Self>, _body: &ArmDynamics) {}

    /// Handles, for all servos, a request that other families do not have, and answer.
    fn obey_all(
        servos: &mut [RegisterServo<Self>],
        request: &Request,
        body: &mut ArmDynamics,
    ) -> Vec<ServoAnswer> {
        each(servos, request, body)
    }

    /// Sets the registers that report the present, which are computed when they are read.
    fn feel(servo: &RegisterServo<Self>, memory: &mut ServoMemory, felt: &ServoReadings);

    /// Takes what is written, as far as a servo takes it.
    fn write(
        servo: &mut RegisterServo<Self>,
        first: usize,
        data: &[u8],
        body: &mut ArmDynamics,
    ) -> Result<(), u8>;

    /// Returns the address of the goal, and its bytes at a position.
    fn goal_at(servo: &RegisterServo<Self>, ticks: f64) -> (usize, Vec<u8>);

    /// Returns the drive that the registers now ask of the body.
    fn drive(servo: &RegisterServo<Self>) -> ServoDrive;

    /// Forgets what is not kept over power cycles.
    fn restart(memory: &mut ServoMemory);

    /// Applies the error bits that a servo now has.
    fn fail(_servo: &mut RegisterServo<Self>) {}

    /// Acts on the silence of the host when it is due.
    fn wake(_memory: &mut ServoMemory) {}
}

/// One servo.
pub(crate) struct RegisterServo<F> {
    pub(crate) memory: ServoMemory,
    /// Its index among the servos of the body.
    pub(crate) place: usize,
    pending: Option<(usize, Vec<u8>)>,
    pub(crate) error: u8,
    kept_writes: u64,
    pub(crate) forced_position: Option<u16>,
    /// Returns the time of its next action without a request.
    pub(crate) due: Option<ClockInstant>,
    family: PhantomData<fn() -> F>,
}

impl<F: SimulatedFamily> RegisterServo<F> {
    fn new(id: u8, place: usize, return_delay_steps: u8) -> Self {
        let mut memory = ServoMemory(vec![0; F::MEMORY]);
        let own = [(F::ID, id), (F::DELAY, return_delay_steps)];
        for (address, value) in F::FACTORY.iter().copied().chain(own) {
            memory.set(address, &[value]);
        }
        Self {
            memory,
            place,
            pending: None,
            error: 0,
            kept_writes: 0,
            forced_position: None,
            due: None,
            family: PhantomData,
        }
    }

    pub(crate) fn id(&self) -> u8 {
        self.memory.byte(F::ID)
    }

    pub(crate) fn answer_delay(&self) -> Duration {
        delay(self.memory.byte(F::DELAY))
    }

    /// The goal becomes the present position.
    pub(crate) fn aim_here(&mut self, body: &ArmDynamics) {
        if let Some(felt) = body.readings(self.place) {
            let (address, goal) = F::goal_at(self, felt.ticks);
            self.memory.set(address, &goal);
        }
    }

    fn drive(&self, body: &mut ArmDynamics) {
        body.drive(self.place, F::drive(self));
    }

    fn restart(&mut self, body: &mut ArmDynamics) {
        F::restart(&mut self.memory);
        self.error = 0;
        self.pending = None;
        self.due = None;
        self.aim_here(body);
        self.drive(body);
    }

    fn answer(&self, error: u8, data: &[u8]) -> ServoAnswer {
        self.answer_as(self.id(), error, data)
    }

    fn answer_as(&self, id: u8, error: u8, data: &[u8]) -> ServoAnswer {
        ServoAnswer {
            id,
            with: Vec::new(),
            delay: self.answer_delay(),
            bytes: F::status(id, error | F::alert(self.error), data),
        }
    }

    pub(crate) fn read(
        &self,
        address: usize,
        length: usize,
        body: &ArmDynamics,
    ) -> Option<Vec<u8>> {
        let mut memory = self.memory.clone();
        if let Some(felt) = body.readings(self.place) {
            F::feel(self, &mut memory, &felt);
        }
        memory.0.get(address..address + length).map(<[u8]>::to_vec)
    }

    fn write(&mut self, first: usize, data: &[u8], body: &mut ArmDynamics) -> Result<(), u8> {
        let kept = (first..first + data.len()).filter(|at| *at < F::KEPT);
        self.kept_writes += kept.map(|_| 1).sum::<u64>();
        F::write(self, first, data, body)?;
        self.drive(body);
        Ok(())
    }

    fn obey(&mut self, request: &Request, body: &mut ArmDynamics) -> Option<ServoAnswer> {
        // A servo that is given another id answers that request with the one it was asked by.
        let asked = self.id();
        let level = F::level(&self.memory);
        let parameters = request.parameters.as_slice();
        let done = match (request.instruction, number::<F>(parameters)) {
            (1, None) if parameters.is_empty() => {
                return Some(self.answer(0, &F::greeting(&self.memory)));
            }
            (2, Some((address, length))) if length.len() == F::WIDTH => {
                let (length, _) = number::<F>(length)?;
                let data = self.read(address, length, body);
                let error = if data.is_some() { 0 } else { F::BEYOND? };
                return (level >= 1).then(|| self.answer(error, &data.unwrap_or_default()));
            }
            (3, Some((address, data))) => self.write(address, data, body),
            (4, Some((address, data))) => {
                self.pending = Some((address, data.to_vec()));
                Ok(())
            }
            (5, None) if parameters.is_empty() => match self.pending.take() {
                Some((address, data)) => self.write(address, &data, body),
                None => Ok(()),
            },
            (8, None) if parameters.is_empty() && F::RESTARTS => {
                self.restart(body);
                Ok(())
            }
            _ => Err(F::UNKNOWN?),
        };
        (level >= 2).then(|| self.answer_as(asked, done.err().unwrap_or(0), &[]))
    }
}

/// An address or a length in front of the rest of a request.
fn number<F: SimulatedFamily>(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_at_checked(F::WIDTH)?;
    let highest_first = number.iter().rev();
    Some((
        highest_first.fold(0, |sum, byte| sum * 256 + usize::from(*byte)),
        rest,
    ))
}

/// Address, length, and what follows them.
pub(crate) fn block<F: SimulatedFamily>(parameters: &[u8]) -> Option<(usize, usize, &[u8])> {
    let (address, rest) = number::<F>(parameters)?;
    let (length, rest) = number::<F>(rest)?;
    Some((address, length, rest))
}

/// Returns the servo that has this id.
pub(crate) fn find<F: SimulatedFamily>(
    servos: &[RegisterServo<F>],
    id: u8,
) -> Option<&RegisterServo<F>> {
    servos.iter().find(|servo| servo.id() == id)
}

/// The answer of one of them to a read that is sent to several.
pub(crate) fn read_of<F: SimulatedFamily>(
    servos: &[RegisterServo<F>],
    id: u8,
    (address, length): (usize, usize),
    body: &ArmDynamics,
) -> Option<ServoAnswer> {
    let servo = find(servos, id)?;
    let data = servo.read(address, length, body)?;
    Some(servo.answer(0, &data))
}

/// A write that nobody answers.
pub(crate) fn write_to<F: SimulatedFamily>(
    servos: &mut [RegisterServo<F>],
    id: u8,
    address: usize,
    data: &[u8],
    body: &mut ArmDynamics,
) {
    for servo in servos.iter_mut() {
        if servo.id() == id || F::is_shadow(&servo.memory, id) {
            let _ = servo.write(address, data, body);
        }
    }
}

/// A request to one servo, or to all of them when it is broadcast.
pub(crate) fn each<F: SimulatedFamily>(
    servos: &mut [RegisterServo<F>],
    request: &Request,
    body: &mut ArmDynamics,
) -> Vec<ServoAnswer> {
    let all = request.id == BROADCAST;
    let mut answers = Vec::new();
    for servo in servos.iter_mut() {
        let shadow = F::is_shadow(&servo.memory, request.id) && !all;
        if all || shadow || servo.id() == request.id {
            let answer = servo.obey(request, body);
            // A broadcast is answered to a ping only, by id in turn; a shadow never speaks.
            answers.extend(answer.filter(|_| !shadow && (!all || request.instruction == 1)));
        }
    }
    answers
}

/// Lets all servos obey a request, and returns their answers.
fn obey_all<F: SimulatedFamily>(
    servos: &mut [RegisterServo<F>],
    request: &Request,
    body: &mut ArmDynamics,
) -> Vec<ServoAnswer> {
    if !request.whole {
        let asked = servos.iter().filter(|servo| servo.id() == request.id);
        return asked.map(|servo| servo.answer(F::DAMAGED, &[])).collect();
    }
    for servo in servos.iter_mut() {
        F::heard(servo, body);
    }
    match (request.instruction, block::<F>(&request.parameters)) {
        (0x82, Some((address, length, ids))) => {
            let answers = ids.iter();
            answers
                .filter_map(|id| read_of(servos, *id, (address, length), body))
                .collect()
        }
        (0x83, Some((address, length, blocks))) => {
            for block in blocks.chunks_exact(length + 1) {
                if let [id, data @ ..] = block {
                    write_to(servos, *id, address, data, body);
                }
            }
            Vec::new()
        }
        _ => F::obey_all(servos, request, body),
    }
}

/// The bus.
pub(crate) struct SimulatedBus<F> {
    frame: Vec<u8>,
    servos: Vec<RegisterServo<F>>,
}

impl<F: SimulatedFamily> SimulatedBus<F> {
    pub(crate) fn new(body: &ArmDynamics, return_delay: Duration) -> Self {
        let steps = return_delay.as_micros() / u128::from(DELAY_STEP_US);
        let steps = u8::try_from(steps).unwrap_or(DELAY_MAX).min(DELAY_MAX);
        let servos = body.servos().enumerate().map(|(place, servo)| {
            let mut servo = RegisterServo::new(servo.id, place, steps);
            servo.aim_here(body);
            servo
        });
        Self {
            frame: Vec::new(),
            servos: servos.collect(),
        }
    }

    /// Every servo that has this id; two may.
    fn called(&mut self, id: u8) -> impl Iterator<Item = &mut RegisterServo<F>> {
        let all = self.servos.iter_mut();
        all.filter(move |servo| servo.id() == id)
    }
}

impl<F: SimulatedFamily> BusDevice for SimulatedBus<F> {
    fn receive(&mut self, byte: u8, body: &mut ArmDynamics) -> Vec<ServoAnswer> {
        match F::hear(&mut self.frame, byte) {
            Some(request) => obey_all(&mut self.servos, &request, body),
            None => Vec::new(),
        }
    }

    fn next_due(&self) -> Option<ClockInstant> {
        self.servos.iter().filter_map(|servo| servo.due).min()
    }

    fn wake(&mut self, body: &mut ArmDynamics) -> Vec<ServoAnswer> {
        let now = body.at();
        for servo in &mut self.servos {
            if servo.due.take_if(|due| *due <= now).is_some() {
                F::wake(&mut servo.memory);
                servo.aim_here(body);
                servo.drive(body);
            }
        }
        Vec::new()
    }

    fn power_cycle(&mut self, id: u8, body: &mut ArmDynamics) {
        self.called(id).for_each(|servo| servo.restart(body));
    }

    fn poke(&mut self, id: u8, address: u16, value: u8) {
        self.called(id)
            .for_each(|servo| servo.memory.set(usize::from(address), &[value]));
    }

    fn set_error(&mut self, id: u8, bits: u8, body: &mut ArmDynamics) {
        for servo in self.called(id) {
            servo.error = bits;
            F::fail(servo);
            servo.drive(body);
        }
    }

    fn force_position(&mut self, id: u8, word: Option<u16>) {
        self.called(id)
            .for_each(|servo| servo.forced_position = word);
    }

    fn place(&self, id: u8) -> Option<usize> {
        self.servos.iter().position(|servo| servo.id() == id)
    }

    fn kept_writes(&self) -> u64 {
        self.servos.iter().map(|servo| servo.kept_writes).sum()
    }
}

/// Returns the delay of a servo before its answer, by its register.
fn delay(steps: u8) -> Duration {
    Duration::from_micros(DELAY_STEP_US * u64::from(steps))
}

/// A servo's memory. Addresses beyond it read as zero and take nothing.
#[derive(Clone)]
pub(crate) struct ServoMemory(Vec<u8>);

impl ServoMemory {
    pub(crate) fn set(&mut self, address: usize, bytes: &[u8]) {
        for (slot, byte) in self.0.iter_mut().skip(address).zip(bytes) {
            *slot = *byte;
        }
    }

    pub(crate) fn byte(&self, address: usize) -> u8 {
        self.0.get(address).copied().unwrap_or(0)
    }

    /// Two bytes, the lower first.
    pub(crate) fn word(&self, address: usize) -> u16 {
        u16::from_le_bytes([0, 1].map(|at| self.byte(address + at)))
    }

    /// Four bytes, the lowest first.
    pub(crate) fn long(&self, address: usize) -> i32 {
        i32::from_le_bytes([0, 1, 2, 3].map(|at| self.byte(address + at)))
    }

    /// Everything from `kept` on is lost.
    pub(crate) fn forget(&mut self, kept: usize) {
        self.0.iter_mut().skip(kept).for_each(|byte| *byte = 0);
    }
}
