//! A hash over every layout of this version, by which HELLO reveals that two programs differ.

use crate::crc::crc32c;

/// All layouts of this version in one canonical text. Within a major version its lines never
/// change; each new type adds a line and raises the minor version.
pub const SCHEMA: &str = "\
firmware-protocol 1
00 HELLO major:u8 minor:u8 lost_host:u8 zero:u8
01 BEAT clock:u32us
02 TIME_REQ token:u32
03 SEGMENT epoch:u16 index:u16 start:u32us duration:u16us joints*(position:i32urad velocity:i32urad/s)
04 HOLD
05 RESUME
06 FLUSH
07 CLEAR_FAULT nonce:u32
08 TORQUE on:u8
09 PARK
20 HELLO_ACK major:u8 minor:u8 queue:u8 reset:u8 schema:u32 boot:u32 epoch:u16 tick:u16us firmware:12*u8 joints*(min:i32urad max:i32urad velocity:u32urad/s acceleration:u32urad/s2 stop:u32urad/s2)
21 TIME_RESP token:u32 received:u32us sent:u32us
22 SEGMENT_ACK epoch:u16 next:u16 free:u8 status:u8 joint:u8 answers:u8 tail:u32us
23 STATE clock:u32us boot:u32 shift:u32us nonce:u32 epoch:u16 faults:u16 corrupt:u16 ignored:u16 mode:u8 cause:u8 flags:u8 free:u8 command:u8 result:u8 zero:u16 joints*(commanded:i32urad measured:i32urad velocity:i32urad/s)
24 LOG level:u8 text:0..120*u8
3F ESTOP
";

/// CRC-32C of [`SCHEMA`]. HELLO_ACK carries it; a host refuses a device whose hash it does not know.
pub const SCHEMA_HASH: u32 = crc32c(SCHEMA.as_bytes());
