//! Cells of printed tags: the first thirty of either family, as published; enough for any
//! simulated sheet.

use vision::Family;

/// Number of tags of a family that the simulator can print.
pub const PRINTED: u16 = 30;

const SMALL: [u64; 30] = [
    0x27c8, 0x31b6, 0x3859, 0x569c, 0x6c76, 0x7ddb, 0xaf09, 0xf5a1, 0xfb8b, 0x1cb9, 0x28ca, 0xe8dc,
    0x1426, 0x5770, 0x9253, 0xb702, 0x063a, 0x8f34, 0xb4c0, 0x51ec, 0xe6f0, 0x5fa4, 0xdd43, 0x1aaa,
    0xe62f, 0x6dbc, 0xb6eb, 0xde10, 0x154d, 0xb57a,
];

const LARGE: [u64; 30] = [
    0xd_7e00_984b,
    0xd_da66_4ca7,
    0xd_c4a1_c821,
    0xe_17b4_70e9,
    0xe_f91d_01b1,
    0xf_429c_dd73,
    0x0_5da2_9225,
    0x1_106c_ba43,
    0x2_23be_d79d,
    0x2_1f51_213c,
    0x3_3eb1_9ca6,
    0x3_f76e_b0f8,
    0x4_69a9_7414,
    0x4_5dcf_e0b0,
    0x4_a646_5f72,
    0x5_1801_db96,
    0x5_eb94_6b4e,
    0x6_8a7c_c2ec,
    0x6_f0ba_2652,
    0x7_8765_559d,
    0x8_7b83_d129,
    0x8_6cc4_a5c5,
    0x8_b64d_f90f,
    0x9_c577_b611,
    0xa_3810_f2f5,
    0xa_f4d7_5b83,
    0xb_59a0_3fef,
    0xb_b109_6f85,
    0xd_1b92_fc76,
    0xd_0dd5_09d2,
];

/// Returns whether a cell of a tag is white. Columns count from the left and rows from the top of its black
/// square; -1 and one past the last are the white edge. `None` beyond that edge, and for a tag
/// that cannot be printed here.
pub(super) fn is_white(family: Family, id: u16, column: i32, row: i32) -> Option<bool> {
    let cells = i32::from(family.cells_per_side());
    if !(-1..=cells).contains(&column) || !(-1..=cells).contains(&row) {
        return None;
    }
    if [column, row].iter().any(|at| [-1, cells].contains(at)) {
        return Some(true);
    }
    let codes = match family {
        Family::Tag16h5 => &SMALL,
        Family::Tag36h11 => &LARGE,
    };
    let code = codes.get(usize::from(id))?;
    if [column, row].iter().any(|at| [0, cells - 1].contains(at)) {
        return Some(false);
    }
    let bits = (cells - 2) * (cells - 2);
    let bit = bit_index(cells - 2, column - 1, row - 1);
    Some(code >> (bits - 1 - bit) & 1 == 1)
}

/// Returns the index of a cell's bit in the code, from the first: a triangle of each quarter is written row
/// by row, and the quarters follow each other clockwise.
fn bit_index(side: i32, mut column: i32, mut row: i32) -> i32 {
    let quarter = side * side / 4;
    for rotation in 0..4 {
        // In this quarter's triangle each row begins one cell later and ends one cell earlier.
        if row < side / 2 && (row..side - 1 - row).contains(&column) {
            let before: i32 = (0..row).map(|earlier_row| side - 1 - 2 * earlier_row).sum();
            return rotation * quarter + before + column - row;
        }
        (column, row) = (row, side - 1 - column);
    }
    // Only an odd side has a centre cell; ours are even.
    side * side - 1
}
