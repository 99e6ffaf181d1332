//! Digests: `md5` and the functions of the SHA-2 family, of bytes. The digest of a text is that of its UTF-8.

use md5::Md5;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// `md5`: the digest in hexadecimal.
pub fn md5(bytes: &[u8]) -> String {
    super::encoding::hex(&Md5::digest(bytes))
}

/// `sha224`
pub fn sha224(bytes: &[u8]) -> Vec<u8> {
    Sha224::digest(bytes).to_vec()
}

/// `sha256`
pub fn sha256(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// `sha384`
pub fn sha384(bytes: &[u8]) -> Vec<u8> {
    Sha384::digest(bytes).to_vec()
}

/// `sha512`
pub fn sha512(bytes: &[u8]) -> Vec<u8> {
    Sha512::digest(bytes).to_vec()
}
