//! Hashes parts of a scene for its revision, each with its length, so that no two lists of parts hash alike.

use design::DesignStroke;

/// Hashes one part.
pub(in super::super) fn hash_part(hash: &mut blake3::Hasher, part: &[u8]) {
    hash.update(&(part.len() as u64).to_le_bytes());
    hash.update(part);
}

/// Hashes files, and the names of those of a set, because these decide which pen draws what.
pub(super) fn hash_files(hash: &mut blake3::Hasher, files: &[(String, Vec<u8>)]) {
    for (name, bytes) in files {
        if design::set_of(name).is_some() {
            hash_part(hash, name.as_bytes());
        }
        hash_part(hash, bytes);
    }
}

/// Hashes the points of strokes.
pub(super) fn hash_strokes(hash: &mut blake3::Hasher, strokes: &[DesignStroke]) {
    for stroke in strokes {
        let numbers = stroke.points_mm.iter().flatten();
        let bytes: Vec<u8> = numbers.flat_map(|mm| mm.to_le_bytes()).collect();
        hash_part(hash, &bytes);
    }
}
