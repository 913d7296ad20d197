//! Private keys at rest: a file that only its owner can read, under a passphrase if wanted.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | `heda key` | what this is (8) |
//! | 1 | version |
//! | 0 or 1 | in clear, or under a passphrase |
//! | salt (16), nonce (24) | only under a passphrase |
//! | content | the key, or the key encrypted with its 16-byte tag |
//!
//! The passphrase goes through Argon2id (RFC 9106, second recommended choice: 64 MiB, 3 passes, 4
//! lanes) to a key for XChaCha20-Poly1305, which also authenticates everything before the content.
//! The cost is fixed by the version and not read from the file, so a forged file cannot demand
//! more.

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use rand_core::CryptoRng;
use std::io::{Read, Write};
use std::path::Path;
use zeroize::Zeroizing;

const MAGIC: &[u8; 9] = b"heda key\x01";
const CLEAR: u8 = 0;
const SEALED: u8 = 1;
const SALT: usize = 16;
const NONCE: usize = 24;
const HEADER: usize = MAGIC.len() + 1;
/// No key is longer; more is not read.
const LARGEST: u64 = 64 * 1024;

/// What is refused.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// Not a key file, or of another version.
    #[error("this is no key file that this version reads")]
    Format,
    /// The file ends too early.
    #[error("the key file ends too early; is it whole?")]
    Truncated,
    /// Under a passphrase, but none was given.
    #[error("the key file is under a passphrase; give it")]
    PassphraseMissing,
    /// In clear, but a passphrase was given.
    #[error("the key file is not under a passphrase; it may have been exchanged")]
    PassphraseUnexpected,
    /// An empty passphrase protects nothing.
    #[error("the passphrase is empty; give one, or none at all")]
    PassphraseEmpty,
    /// Wrong passphrase or changed file: these cannot be told apart.
    #[error("the passphrase is wrong or the key file was changed")]
    WrongPassphrase,
    /// The key derivation could not run, for want of memory.
    #[error("the passphrase could not be processed; it needs 64 MiB of memory")]
    Derivation,
    /// Others can read the file.
    #[error("others can read the key file (mode {mode:o}); make it yours alone with chmod 600")]
    Exposed {
        /// The permissions found.
        mode: u32,
    },
    /// Far longer than any key.
    #[error("the key file is longer than any key")]
    TooLong,
    /// The file system refused.
    #[error("key file: {0}")]
    Io(#[from] std::io::Error),
}

/// A key's bytes as the content of a key file, under a passphrase if one is given.
pub fn seal<R: CryptoRng + ?Sized>(
    key: &[u8],
    passphrase: Option<&str>,
    rng: &mut R,
) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let Some(passphrase) = passphrase else {
        return Ok(Zeroizing::new([MAGIC, [CLEAR].as_slice(), key].concat()));
    };
    if passphrase.is_empty() {
        return Err(KeyFileError::PassphraseEmpty);
    }
    let mut random = [0; SALT + NONCE];
    rng.fill_bytes(&mut random);
    let mut file = [MAGIC, [SEALED].as_slice(), &random].concat();
    let cipher = cipher(passphrase, &random[..SALT])?;
    let payload = Payload {
        msg: key,
        aad: &file,
    };
    let nonce = nonce(&random[SALT..])?;
    let content = cipher.encrypt(&nonce, payload);
    file.extend(content.map_err(|_| KeyFileError::TooLong)?);
    Ok(Zeroizing::new(file))
}

/// The key's bytes from the content of a key file.
pub fn open(file: &[u8], passphrase: Option<&str>) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    if file.len() < HEADER {
        return Err(KeyFileError::Truncated);
    }
    let (header, content) = file.split_at(HEADER);
    if header[..MAGIC.len()] != MAGIC[..] {
        return Err(KeyFileError::Format);
    }
    match (header[MAGIC.len()], passphrase) {
        (CLEAR, None) => Ok(Zeroizing::new(content.to_vec())),
        (CLEAR, Some(_)) => Err(KeyFileError::PassphraseUnexpected),
        (SEALED, None) => Err(KeyFileError::PassphraseMissing),
        (SEALED, Some(passphrase)) => open_sealed(file, passphrase),
        _ => Err(KeyFileError::Format),
    }
}

fn open_sealed(file: &[u8], passphrase: &str) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    if file.len() < HEADER + SALT + NONCE {
        return Err(KeyFileError::Truncated);
    }
    let (aad, msg) = file.split_at(HEADER + SALT + NONCE);
    let (salt, nonce_bytes) = aad[HEADER..].split_at(SALT);
    let cipher = cipher(passphrase, salt)?;
    let key = cipher.decrypt(&nonce(nonce_bytes)?, Payload { msg, aad });
    key.map(Zeroizing::new)
        .map_err(|_| KeyFileError::WrongPassphrase)
}

fn nonce(bytes: &[u8]) -> Result<XNonce, KeyFileError> {
    let bytes: [u8; NONCE] = bytes.try_into().map_err(|_| KeyFileError::Truncated)?;
    Ok(bytes.into())
}

fn cipher(passphrase: &str, salt: &[u8]) -> Result<XChaCha20Poly1305, KeyFileError> {
    let cost = Params::new(64 * 1024, 3, 4, Some(32)).map_err(|_| KeyFileError::Derivation)?;
    let mut key = Zeroizing::new([0u8; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, cost)
        .hash_password_into(passphrase.as_bytes(), salt, key.as_mut())
        .map_err(|_| KeyFileError::Derivation)?;
    Ok(XChaCha20Poly1305::new(&Key::from(*key)))
}

/// Writes a new file that only its owner can read. A file that is there already is not touched.
pub fn write_new(path: &Path, content: &[u8]) -> Result<(), KeyFileError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    Ok(file.sync_all()?)
}

/// Reads a key file, unless others could read it too.
pub fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let file = std::fs::File::open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata()?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyFileError::Exposed { mode });
        }
    }
    let mut content = Zeroizing::new(Vec::with_capacity(LARGEST as usize + 1));
    file.take(LARGEST + 1).read_to_end(&mut content)?;
    match content.len() as u64 <= LARGEST {
        true => Ok(content),
        false => Err(KeyFileError::TooLong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Randomness;

    fn sealed(passphrase: Option<&str>) -> Zeroizing<Vec<u8>> {
        let mut rng = Randomness::seeded(1).fork("keyfile", 0).unwrap();
        seal(b"the key", passphrase, &mut rng).unwrap()
    }

    #[test]
    fn keys_come_back_with_the_right_passphrase_only() {
        assert_eq!(*open(&sealed(None), None).unwrap(), b"the key");
        let file = sealed(Some("open sesame"));
        assert!(!file.windows(7).any(|w| w == b"the key"));
        assert_eq!(*open(&file, Some("open sesame")).unwrap(), b"the key");
        let refused = |file: &[u8], passphrase| open(file, passphrase).unwrap_err();
        assert!(matches!(
            refused(&file, Some("open")),
            KeyFileError::WrongPassphrase
        ));
        assert!(matches!(
            refused(&file, None),
            KeyFileError::PassphraseMissing
        ));
        let clear = sealed(None);
        assert!(matches!(
            refused(&clear, Some("x")),
            KeyFileError::PassphraseUnexpected
        ));
        let mut rng = Randomness::seeded(1).fork("keyfile", 0).unwrap();
        let empty = seal(b"k", Some(""), &mut rng).unwrap_err();
        assert!(matches!(empty, KeyFileError::PassphraseEmpty));
    }

    #[test]
    fn changed_and_truncated_files_are_refused() {
        let file = sealed(Some("open sesame"));
        for place in [HEADER, HEADER + SALT, file.len() - 1] {
            let mut changed = file.to_vec();
            changed[place] ^= 1;
            let refused = open(&changed, Some("open sesame")).unwrap_err();
            assert!(matches!(refused, KeyFileError::WrongPassphrase));
        }
        let refused = |bytes: &[u8]| open(bytes, Some("open sesame")).unwrap_err();
        assert!(matches!(refused(&file[..5]), KeyFileError::Truncated));
        assert!(matches!(
            refused(&file[..HEADER + 3]),
            KeyFileError::Truncated
        ));
        assert!(matches!(refused(b"something else"), KeyFileError::Format));
        assert!(matches!(refused(b"heda key\x01\x07"), KeyFileError::Format));
    }

    #[cfg(unix)]
    #[test]
    fn files_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("heda-keyfile-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("key");
        let _ = std::fs::remove_file(&path);
        write_new(&path, b"content").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert_eq!(*read(&path).unwrap(), b"content");
        assert!(matches!(
            write_new(&path, b"other"),
            Err(KeyFileError::Io(_))
        ));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(
            read(&path),
            Err(KeyFileError::Exposed { mode: 0o640 })
        ));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
