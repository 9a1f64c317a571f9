//! Recordings: what an arm did while a job moved it, in formats that other people's programs open.
