//! The digits of floats are those of PostgreSQL: `shortest_golden.txt` has the type, the bits and the text of each.

use crate::float::{show, show_float4};

#[test]
fn floats_print_as_postgresql_prints_them() {
    for line in include_str!("shortest_golden.txt").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [ty, bits, text] = fields[..] else { panic!("{line}") };
        let bits = u64::from_str_radix(bits, 16).unwrap();
        let shown = match ty {
            "float8" => show(f64::from_bits(bits)),
            _ => show_float4(f32::from_bits(bits.try_into().unwrap())),
        };
        assert_eq!(shown, text, "{line}");
    }
}

#[test]
fn floats_print_as_numbers_that_are_read_as_the_same() {
    let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let value = f64::from_bits(bits);
        if value.is_finite() {
            assert_eq!(show(value).parse(), Ok(value));
        }
        let value = f32::from_bits((bits >> 32) as u32);
        if value.is_finite() {
            assert_eq!(show_float4(value).parse(), Ok(value));
        }
    }
}
