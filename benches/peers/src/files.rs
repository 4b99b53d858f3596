//! Keys as files, each in the form that a prover's own loader reads.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use ark_bls12_381::Bls12_381;
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use prestage_groth16::format::{LoadOptions, PointChecks, load_proving_key, save_params, write_atomically};
use prestage_groth16::{AnyKey, Circom, Libsnark, ProvingKey};

use crate::{Error, Keys, Statement, convert, zkey};

/// A kind of key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyFile {
    /// bellman's parameters.
    Params,
    /// The same key as arkworks' uncompressed bytes.
    Ark,
    /// snarkjs' proving key.
    Zkey,
    /// The circom key as arkworks' uncompressed bytes: taceo-groth16 takes arkworks' type and has no loader.
    ArkCircom,
}

impl KeyFile {
    /// Its name in a folder of one statement's keys.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Params => "libsnark.params",
            Self::Ark => "libsnark.ark",
            Self::Zkey => "circom.zkey",
            Self::ArkCircom => "circom.ark",
        }
    }

    /// Writes the file into `folder`.
    ///
    /// # Errors
    /// What the setup says, [`Error::Format`] for a key that the file cannot hold, [`Error::Io`].
    pub fn write(self, folder: &Path, keys: &Keys) -> Result<PathBuf, Error> {
        let path = folder.join(self.name());
        match self {
            Self::Params => save_params(&path, keys.libsnark()?)?,
            Self::Ark => write_arkworks(&path, &convert::proving_key(keys.libsnark()?))?,
            Self::Zkey => {
                let key = keys.circom()?;
                write_atomically(&path, |w| zkey::write(w, key))?;
            }
            Self::ArkCircom => write_arkworks(&path, &convert::proving_key(keys.circom()?))?,
        }
        Ok(path)
    }
}

fn write_arkworks(path: &Path, key: &ark_groth16::ProvingKey<Bls12_381>) -> io::Result<()> {
    write_atomically(path, |w: &mut dyn Write| key.serialize_uncompressed(w).map_err(io::Error::other))
}

/// Reads arkworks' uncompressed bytes, points believed.
pub(crate) fn arkworks(path: &Path) -> Result<ark_groth16::ProvingKey<Bls12_381>, Error> {
    let file = BufReader::new(File::open(path)?);
    ark_groth16::ProvingKey::deserialize_uncompressed_unchecked(file)
        .map_err(|e| Error::Arkworks(e.to_string()))
}

/// Loads a key of bellman or arkworks by prestage's loader, points believed.
pub(crate) fn libsnark(path: &Path, statement: &Statement) -> Result<ProvingKey<Libsnark>, Error> {
    match load(path, statement)? {
        AnyKey::Libsnark(key) => Ok(key),
        AnyKey::Circom(_) => Err(Error::OtherReduction { path: path.to_owned() }),
    }
}

/// Loads a key of circom by prestage's loader, points believed.
pub(crate) fn circom(path: &Path, statement: &Statement) -> Result<ProvingKey<Circom>, Error> {
    match load(path, statement)? {
        AnyKey::Circom(key) => Ok(key),
        AnyKey::Libsnark(_) => Err(Error::OtherReduction { path: path.to_owned() }),
    }
}

fn load(path: &Path, statement: &Statement) -> Result<AnyKey, Error> {
    let options = LoadOptions { checks: PointChecks::Unchecked, cache: None };
    Ok(load_proving_key(path, Some(statement.r1cs()), &options)?.value)
}

#[cfg(test)]
mod tests {
    use prestage_benches::rng;
    use prestage_harness::circuits::bits;
    use prestage_vram::{Host, HostConfig};

    use super::*;
    use crate::Kind;

    #[test]
    fn a_key_of_the_other_reduction_and_a_file_cut_short_are_refused() {
        let keys = Keys::new(&Statement::from(bits(3, rng(0)).unwrap()));
        let (folder, host) = (tempfile::tempdir().unwrap(), Host::open(HostConfig::default()).unwrap());
        let refusal = |kind: Kind, path: &Path| {
            let refused = kind.load(&host, path, keys.statement().clone()).err().map(|e| e.to_string());
            refused.unwrap_or_else(|| panic!("{kind} took {}", path.display()))
        };
        let zkey = KeyFile::Zkey.write(folder.path(), &keys).unwrap();
        assert!(refusal(Kind::Ours, &zkey).contains("circom.zkey"));
        let params = KeyFile::Params.write(folder.path(), &keys).unwrap();
        assert!(refusal(Kind::OursCircom, &params).contains("libsnark.params"));
        let ark = KeyFile::Ark.write(folder.path(), &keys).unwrap();
        for (kind, path) in [(Kind::Ours, &params), (Kind::Bellperson, &params), (Kind::Arkworks, &ark)] {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
            refusal(kind, path);
            std::fs::write(path, bytes).unwrap();
        }
    }
}
