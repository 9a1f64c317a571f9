//! A real serial port, by tokio-serial.
