//! All servos of one bus, independent of their protocol: their ids, memories and faults.

use std::marker::PhantomData;
use std::time::Duration;

use crate::arm_dynamics::{ArmDynamics, ServoDrive, ServoReadings};
use crate::bus_device::{BusDevice, ServoAnswer};
use base::units::ClockInstant;

/// The id that addresses all servos.
pub(crate) const BROADCAST: u8 = 254;

/// Step of the return delay in both families, in microseconds, and its largest number of steps.
const DELAY_STEP_US: u64 = 2;
const DELAY_MAX: u8 = 254;

/// A received request.
pub(crate) struct Request {
    pub(crate) id: u8,
    pub(crate) instruction: u8,
    pub(crate) parameters: Vec<u8>,
    /// True if its checksum is correct.
    pub(crate) is_intact: bool,
}

/// Frames, registers and behaviour of one family of servos.
pub(crate) trait SimulatedFamily: Send + Sized + 'static {
    /// Number of bytes of memory.
    const MEMORY: usize;
    /// Memory below this address survives a power cycle.
    const PERSISTENT_END: usize;
    /// Addresses and values of a servo's memory, as set at the factory and then for an arm.
    const FACTORY: &'static [(usize, u8)];
    /// Address of the gain P, where a family's servos without measured figures say that they have none: they do not yield.
    const GAIN_P: Option<usize> = None;
    /// Address of the id.
    const ID: usize;
    /// Address of the model, a word.
    const MODEL: usize;
    /// Address of the speed, and the speeds by its values.
    const BAUD: usize;
    const BAUDS: &'static [u32];
    /// Address of the return delay.
    const DELAY: usize;
    /// Number of bytes of an address and of a length in a request.
    const WIDTH: usize;
    /// The error in the answer to a damaged request, if servos answer one.
    const DAMAGED: u8 = 0;
    /// The error in the answer to an unknown request; `None` if servos do not answer one.
    const UNKNOWN: Option<u8> = None;
    /// The error in the answer to a read beyond the memory; `None` if servos do not answer one.
    const BEYOND: Option<u8> = None;
    /// True if a servo restarts on request.
    const RESTARTS: bool = false;

    /// Returns the request that this byte completes, collected as a servo's receiver does.
    fn receive(frame: &mut Vec<u8>, byte: u8) -> Option<Request>;

    /// Returns the frame of a reply.
    fn status(id: u8, error: u8, data: &[u8]) -> Vec<u8>;

    /// Returns the error byte of a reply for a servo's error bits.
    fn alert(error: u8) -> u8;

    /// Returns the parameters of the answer to a ping.
    fn greeting(_memory: &ServoMemory) -> Vec<u8> {
        Vec::new()
    }

    /// Returns the status return level: 1 answers reads, 2 answers writes too.
    fn status_level(memory: &ServoMemory) -> u8;

    /// Returns whether a servo executes requests to this other id without answering.
    fn is_shadow(_memory: &ServoMemory, _id: u8) -> bool {
        false
    }

    /// Handles the arrival of any request.
    fn on_request(_servo: &mut RegisterServo<Self>, _body: &ArmDynamics) {}

    /// Executes a request on all servos, including requests that other families do not have.
    fn execute_all(
        servos: &mut [RegisterServo<Self>],
        request: &Request,
        dynamics: &mut ArmDynamics,
    ) -> Vec<ServoAnswer> {
        execute_each(servos, request, dynamics)
    }

    /// Sets the registers that report present readings, which are computed when they are read.
    fn report(servo: &RegisterServo<Self>, memory: &mut ServoMemory, readings: &ServoReadings);

    /// Writes data as far as a servo accepts it.
    fn write(
        servo: &mut RegisterServo<Self>,
        first: usize,
        data: &[u8],
        dynamics: &mut ArmDynamics,
    ) -> Result<(), u8>;

    /// Returns the address of the goal, and its bytes at a position.
    fn goal_at(servo: &RegisterServo<Self>, ticks: f64) -> (usize, Vec<u8>);

    /// Returns the drive that the registers command.
    fn drive(servo: &RegisterServo<Self>) -> ServoDrive;

    /// Resets memory that does not survive a power cycle.
    fn restart(memory: &mut ServoMemory);

    /// Applies the error bits that a servo now has.
    fn fail(_servo: &mut RegisterServo<Self>) {}

    /// Handles the timeout of the host.
    fn wake(_memory: &mut ServoMemory) {}
}

/// One servo.
pub(crate) struct RegisterServo<F> {
    pub(crate) memory: ServoMemory,
    /// Its index among the arm's servos.
    pub(crate) place: usize,
    pending: Option<(usize, Vec<u8>)>,
    pub(crate) error: u8,
    kept_writes: u64,
    pub(crate) forced_position: Option<u16>,
    forced_supply_v: Option<f64>,
    /// Time of its next action without a request.
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
            forced_supply_v: None,
            due: None,
            family: PhantomData,
        }
    }

    pub(crate) fn id(&self) -> u8 {
        self.memory.byte(F::ID)
    }

    /// Returns whether it understands what is sent at a speed.
    fn hears(&self, baud: u32) -> bool {
        let own = F::BAUDS.get(usize::from(self.memory.byte(F::BAUD)));
        own.is_none_or(|own| *own == baud)
    }

    pub(crate) fn answer_delay(&self) -> Duration {
        delay(self.memory.byte(F::DELAY))
    }

    /// Sets the goal to the present position.
    pub(crate) fn set_goal_to_present(&mut self, dynamics: &ArmDynamics) {
        if let Some(readings) = dynamics.readings(self.place) {
            let (address, goal) = F::goal_at(self, readings.ticks);
            self.memory.set(address, &goal);
        }
    }

    fn drive(&self, dynamics: &mut ArmDynamics) {
        dynamics.drive(self.place, F::drive(self));
    }

    fn restart(&mut self, dynamics: &mut ArmDynamics) {
        F::restart(&mut self.memory);
        self.error = 0;
        self.pending = None;
        self.due = None;
        self.set_goal_to_present(dynamics);
        self.drive(dynamics);
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
        dynamics: &ArmDynamics,
    ) -> Option<Vec<u8>> {
        let mut memory = self.memory.clone();
        if let Some(mut readings) = dynamics.readings(self.place) {
            readings.voltage_v = self.forced_supply_v.unwrap_or(readings.voltage_v);
            F::report(self, &mut memory, &readings);
        }
        memory.0.get(address..address + length).map(<[u8]>::to_vec)
    }

    fn write(&mut self, first: usize, data: &[u8], dynamics: &mut ArmDynamics) -> Result<(), u8> {
        let persistent = (first..first + data.len()).filter(|at| *at < F::PERSISTENT_END);
        self.kept_writes += persistent.map(|_| 1).sum::<u64>();
        F::write(self, first, data, dynamics)?;
        self.drive(dynamics);
        Ok(())
    }

    fn execute(&mut self, request: &Request, dynamics: &mut ArmDynamics) -> Option<ServoAnswer> {
        // A servo that is given another id answers that request with its old one.
        let own_id = self.id();
        let status_level = F::status_level(&self.memory);
        let parameters = request.parameters.as_slice();
        let result = match (request.instruction, number::<F>(parameters)) {
            (1, None) if parameters.is_empty() => {
                return Some(self.answer(0, &F::greeting(&self.memory)));
            }
            (2, Some((address, length))) if length.len() == F::WIDTH => {
                let (length, _) = number::<F>(length)?;
                let data = self.read(address, length, dynamics);
                let error = if data.is_some() { 0 } else { F::BEYOND? };
                return (status_level >= 1).then(|| self.answer(error, &data.unwrap_or_default()));
            }
            (3, Some((address, data))) => self.write(address, data, dynamics),
            (4, Some((address, data))) => {
                self.pending = Some((address, data.to_vec()));
                Ok(())
            }
            (5, None) if parameters.is_empty() => match self.pending.take() {
                Some((address, data)) => self.write(address, &data, dynamics),
                None => Ok(()),
            },
            (8, None) if parameters.is_empty() && F::RESTARTS => {
                self.restart(dynamics);
                Ok(())
            }
            _ => Err(F::UNKNOWN?),
        };
        (status_level >= 2).then(|| self.answer_as(own_id, result.err().unwrap_or(0), &[]))
    }
}

/// Splits an address or a length from the rest of a request.
fn number<F: SimulatedFamily>(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_at_checked(F::WIDTH)?;
    let value = number
        .iter()
        .rev()
        .fold(0, |sum, byte| sum * 256 + usize::from(*byte));
    Some((value, rest))
}

/// Splits an address and a length from the rest of a request.
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

/// Returns one servo's answer to a read that is sent to several.
pub(crate) fn read_from<F: SimulatedFamily>(
    servos: &[RegisterServo<F>],
    id: u8,
    (address, length): (usize, usize),
    dynamics: &ArmDynamics,
) -> Option<ServoAnswer> {
    let servo = find(servos, id)?;
    let data = servo.read(address, length, dynamics)?;
    Some(servo.answer(0, &data))
}

/// Writes to servos that do not answer.
pub(crate) fn write_unanswered<F: SimulatedFamily>(
    servos: &mut [RegisterServo<F>],
    id: u8,
    address: usize,
    data: &[u8],
    dynamics: &mut ArmDynamics,
) {
    for servo in servos.iter_mut() {
        if servo.id() == id || F::is_shadow(&servo.memory, id) {
            let _ = servo.write(address, data, dynamics);
        }
    }
}

/// Executes a request to one servo, or a broadcast on all of them.
pub(crate) fn execute_each<F: SimulatedFamily>(
    servos: &mut [RegisterServo<F>],
    request: &Request,
    dynamics: &mut ArmDynamics,
) -> Vec<ServoAnswer> {
    let is_broadcast = request.id == BROADCAST;
    let mut answers = Vec::new();
    for servo in servos.iter_mut() {
        let is_shadow = F::is_shadow(&servo.memory, request.id) && !is_broadcast;
        if is_broadcast || is_shadow || servo.id() == request.id {
            let answer = servo.execute(request, dynamics);
            // Of broadcasts only a ping is answered, in the order of ids; a shadow never answers.
            answers.extend(
                answer.filter(|_| !is_shadow && (!is_broadcast || request.instruction == 1)),
            );
        }
    }
    answers
}

/// Dispatches a request to all servos, and returns their answers.
fn dispatch<F: SimulatedFamily>(
    servos: &mut [RegisterServo<F>],
    request: &Request,
    dynamics: &mut ArmDynamics,
) -> Vec<ServoAnswer> {
    if !request.is_intact {
        let addressed = servos.iter().filter(|servo| servo.id() == request.id);
        return addressed
            .map(|servo| servo.answer(F::DAMAGED, &[]))
            .collect();
    }
    for servo in servos.iter_mut() {
        F::on_request(servo, dynamics);
    }
    match (request.instruction, block::<F>(&request.parameters)) {
        (0x82, Some((address, length, ids))) => ids
            .iter()
            .filter_map(|id| read_from(servos, *id, (address, length), dynamics))
            .collect(),
        (0x83, Some((address, length, blocks))) => {
            for block in blocks.chunks_exact(length + 1) {
                if let [id, data @ ..] = block {
                    write_unanswered(servos, *id, address, data, dynamics);
                }
            }
            Vec::new()
        }
        _ => F::execute_all(servos, request, dynamics),
    }
}

/// The bus.
pub(crate) struct SimulatedBus<F> {
    frame: Vec<u8>,
    /// Speed of the line.
    baud: u32,
    servos: Vec<RegisterServo<F>>,
    unpowered: Vec<RegisterServo<F>>,
}

impl<F: SimulatedFamily> SimulatedBus<F> {
    pub(crate) fn new(dynamics: &ArmDynamics, return_delay: Duration) -> Self {
        let steps = return_delay.as_micros() / u128::from(DELAY_STEP_US);
        let steps = u8::try_from(steps).unwrap_or(DELAY_MAX).min(DELAY_MAX);
        let servos = dynamics.servos().enumerate().map(|(place, servo)| {
            let mut servo = RegisterServo::new(servo.id, place, steps);
            if let Some(gain_p) = F::GAIN_P.filter(|_| !dynamics.has_measured_servos()) {
                servo.memory.set(gain_p, &[0]);
            }
            servo.set_goal_to_present(dynamics);
            servo
        });
        Self {
            frame: Vec::new(),
            baud: 0,
            servos: servos.collect(),
            unpowered: Vec::new(),
        }
    }

    /// Yields every servo that has this id; there may be two.
    fn servos_with_id(&mut self, id: u8) -> impl Iterator<Item = &mut RegisterServo<F>> {
        self.servos.iter_mut().filter(move |servo| servo.id() == id)
    }
}

impl<F: SimulatedFamily> BusDevice for SimulatedBus<F> {
    fn receive(&mut self, byte: u8, dynamics: &mut ArmDynamics) -> Vec<ServoAnswer> {
        let Some(request) = F::receive(&mut self.frame, byte) else {
            return Vec::new();
        };
        let baud = self.baud;
        let deaf = self.servos.extract_if(.., |servo| !servo.hears(baud));
        let deaf: Vec<RegisterServo<F>> = deaf.collect();
        let answers = dispatch(&mut self.servos, &request, dynamics);
        if !deaf.is_empty() {
            self.servos.extend(deaf);
            self.servos.sort_by_key(|servo| servo.place);
        }
        answers
    }

    fn tune(&mut self, baud: u32) -> bool {
        self.baud = baud;
        true
    }

    fn set_baud(&mut self, baud: u32) {
        let code = F::BAUDS.iter().zip(0_u8..).find(|(one, _)| **one == baud);
        for servo in &mut self.servos {
            // A speed that these servos do not have is the line's, whatever it is.
            let code = code.map_or(u8::MAX, |(_, code)| code);
            servo.memory.set(F::BAUD, &[code]);
        }
    }

    fn set_model(&mut self, id: u8, model: u16) {
        self.servos_with_id(id)
            .for_each(|servo| servo.memory.set(F::MODEL, &model.to_le_bytes()));
    }

    fn next_due(&self) -> Option<ClockInstant> {
        self.servos.iter().filter_map(|servo| servo.due).min()
    }

    fn wake(&mut self, dynamics: &mut ArmDynamics) -> Vec<ServoAnswer> {
        let now = dynamics.at();
        for servo in &mut self.servos {
            if servo.due.take_if(|due| *due <= now).is_some() {
                F::wake(&mut servo.memory);
                servo.set_goal_to_present(dynamics);
                servo.drive(dynamics);
            }
        }
        Vec::new()
    }

    fn power_cycle(&mut self, id: u8, dynamics: &mut ArmDynamics) {
        self.servos_with_id(id)
            .for_each(|servo| servo.restart(dynamics));
    }

    fn power_off(&mut self, id: u8, dynamics: &mut ArmDynamics) {
        self.power_cycle(id, dynamics);
        let off = self.servos.extract_if(.., |servo| servo.id() == id);
        self.unpowered.extend(off);
    }

    fn power_on(&mut self, id: u8, dynamics: &mut ArmDynamics) {
        let on = self.unpowered.extract_if(.., |servo| servo.id() == id);
        self.servos.extend(on);
        self.servos.sort_by_key(|servo| servo.place);
        // It may have been turned meanwhile.
        self.power_cycle(id, dynamics);
    }

    fn poke(&mut self, id: u8, address: u16, value: u8) {
        self.servos_with_id(id)
            .for_each(|servo| servo.memory.set(usize::from(address), &[value]));
    }

    fn set_error(&mut self, id: u8, bits: u8, dynamics: &mut ArmDynamics) {
        for servo in self.servos_with_id(id) {
            servo.error = bits;
            F::fail(servo);
            servo.drive(dynamics);
        }
    }

    fn force_position(&mut self, id: u8, word: Option<u16>) {
        self.servos_with_id(id)
            .for_each(|servo| servo.forced_position = word);
    }

    fn force_supply(&mut self, id: u8, volts: Option<f64>) {
        self.servos_with_id(id)
            .for_each(|servo| servo.forced_supply_v = volts);
    }

    fn place(&self, id: u8) -> Option<usize> {
        find(&self.servos, id).map(|servo| servo.place)
    }

    fn kept_writes(&self) -> u64 {
        self.servos.iter().map(|servo| servo.kept_writes).sum()
    }
}

/// Returns the delay before an answer for the value of its register.
fn delay(steps: u8) -> Duration {
    Duration::from_micros(DELAY_STEP_US * u64::from(steps))
}

/// A servo's memory. Addresses beyond it read as zero and ignore writes.
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

    /// Reads two bytes, little-endian.
    pub(crate) fn word(&self, address: usize) -> u16 {
        u16::from_le_bytes([0, 1].map(|at| self.byte(address + at)))
    }

    /// Reads four bytes, little-endian.
    pub(crate) fn long(&self, address: usize) -> i32 {
        i32::from_le_bytes([0, 1, 2, 3].map(|at| self.byte(address + at)))
    }

    /// Clears everything from `first` on.
    pub(crate) fn clear_from(&mut self, first: usize) {
        self.0.iter_mut().skip(first).for_each(|byte| *byte = 0);
    }
}
