//! Letter-like characters that Unicode normalisation does not map to plain letters.

/// Returns the plain letter for a small capital, a letter in a disc or a square, or a flag letter; these have no decomposition.
#[must_use]
pub fn plain_letter(c: char) -> char {
    const SMALL_CAPITALS: &str = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡ?ʏᴢ";
    let first = match c {
        '\u{1f150}'..='\u{1f169}' => 0x1f150,
        '\u{1f170}'..='\u{1f189}' => 0x1f170,
        '\u{1f1e6}'..='\u{1f1ff}' => 0x1f1e6,
        c if c.is_ascii() => return c,
        c => {
            let mut capitals = ('a'..='z').zip(SMALL_CAPITALS.chars());
            let letter = capitals.find_map(|(letter, small)| (small == c).then_some(letter));
            return letter.unwrap_or(c);
        }
    };
    char::from_u32(u32::from('a') + u32::from(c) - first).unwrap_or(c)
}

/// Returns whether a character is a joiner, a direction mark or another invisible one.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{feff}' | '\u{180e}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}
