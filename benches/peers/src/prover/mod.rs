//! The provers as one trait, on one statement and one key.

mod arkworks;
mod bellperson;
mod ours;
mod taceo;

use std::cell::OnceCell;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use prestage_groth16::{
    Blinding, Circom, Libsnark, Proof, ProvingKey, R1cs, Reduction, Witness, setup_insecure_from_seed,
};
use prestage_harness::circuits::Circuit;
use prestage_vram::Host;

use crate::files::{self, KeyFile};
use crate::{Error, convert};

pub use arkworks::Arkworks;
pub use bellperson::{Bellperson, BellpersonMapped, R1csCircuit};
pub use ours::Ours;
pub use taceo::Taceo;

/// A prover with a key and a statement. All that can be kept from one proof to the next is ready: what
/// [`prove`](Peer::prove) does is what every proof costs.
pub trait Peer {
    /// One proof. Provers of one reduction give the same proof under one pair of blinding scalars.
    ///
    /// # Errors
    /// What the prover says.
    fn prove(&self, blinding: &Blinding) -> Result<Proof, Error>;
}

/// A constraint system and a witness; clones share them.
#[derive(Clone, Debug)]
pub struct Statement(Arc<Circuit>);

impl Statement {
    /// The constraints.
    #[must_use]
    pub fn r1cs(&self) -> &R1cs {
        &self.0.r1cs
    }

    /// A witness.
    #[must_use]
    pub fn witness(&self) -> &Witness {
        &self.0.witness
    }
}

impl From<Circuit> for Statement {
    fn from(circuit: Circuit) -> Self {
        Self(Arc::new(circuit))
    }
}

/// The keys of one constraint system, made when they are asked for, from a seed that everyone knows.
#[derive(Debug)]
pub struct Keys {
    statement: Statement,
    libsnark: OnceCell<ProvingKey<Libsnark>>,
    circom: OnceCell<ProvingKey<Circom>>,
}

impl Keys {
    /// None yet.
    #[must_use]
    pub fn new(statement: &Statement) -> Self {
        Self { statement: statement.clone(), libsnark: OnceCell::new(), circom: OnceCell::new() }
    }

    /// The statement.
    #[must_use]
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// A key of bellman and arkworks.
    ///
    /// # Errors
    /// What the setup says.
    pub fn libsnark(&self) -> Result<&ProvingKey<Libsnark>, Error> {
        once(&self.libsnark, &self.statement)
    }

    /// A key of circom.
    ///
    /// # Errors
    /// What the setup says.
    pub fn circom(&self) -> Result<&ProvingKey<Circom>, Error> {
        once(&self.circom, &self.statement)
    }
}

fn once<'c, R: Reduction>(
    cell: &'c OnceCell<ProvingKey<R>>,
    statement: &Statement,
) -> Result<&'c ProvingKey<R>, Error> {
    if let Some(key) = cell.get() {
        return Ok(key);
    }
    let key = setup_insecure_from_seed(statement.r1cs(), [0; 32])?;
    Ok(cell.get_or_init(|| key))
}

/// The provers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// prestage on the CPU, a bellman key; nothing checked, as the peers check nothing.
    Ours,
    /// The same as it is used: witness checked before, proof verified after.
    OursChecked,
    /// prestage on the CPU, a circom key; nothing checked.
    OursCircom,
    /// ark-groth16 from matrices.
    Arkworks,
    /// bellperson's CPU prover.
    Bellperson,
    /// The same, whose key stays in its file, mapped.
    BellpersonMapped,
    /// taceo-groth16 from matrices, a bellman key.
    Taceo,
    /// taceo-groth16 from matrices, a circom key.
    TaceoCircom,
}

impl Kind {
    /// All of them, prestage first.
    pub const ALL: [Self; 8] = [
        Self::Ours,
        Self::OursChecked,
        Self::OursCircom,
        Self::Taceo,
        Self::TaceoCircom,
        Self::Arkworks,
        Self::Bellperson,
        Self::BellpersonMapped,
    ];

    /// Name in tables and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "prestage",
            Self::OursChecked => "prestage-checked",
            Self::OursCircom => "prestage-circom",
            Self::Arkworks => "ark-groth16",
            Self::Bellperson => "bellperson",
            Self::BellpersonMapped => "bellperson-mapped",
            Self::Taceo => "taceo-groth16",
            Self::TaceoCircom => "taceo-groth16-circom",
        }
    }

    /// The prover of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether its key is circom's.
    #[must_use]
    pub const fn is_circom(self) -> bool {
        matches!(self, Self::OursCircom | Self::TaceoCircom)
    }

    /// The prover, ready; prestage on `device`.
    ///
    /// # Errors
    /// What the prover says to the key.
    pub fn ready<'d>(self, device: &'d Host, keys: &Keys) -> Result<Box<dyn Peer + 'd>, Error> {
        let statement = keys.statement().clone();
        Ok(match self {
            Self::Ours => Box::new(Ours::new(device, keys.libsnark()?.clone(), statement)?),
            Self::OursChecked => Box::new(Ours::new(device, keys.libsnark()?.clone(), statement)?.checked()),
            Self::OursCircom => Box::new(Ours::new(device, keys.circom()?.clone(), statement)?),
            Self::Arkworks => Box::new(Arkworks::new(convert::proving_key(keys.libsnark()?), &statement)),
            Self::Bellperson => Box::new(Bellperson::new(keys.libsnark()?, &statement)?),
            Self::BellpersonMapped => Box::new(BellpersonMapped::new(keys.libsnark()?, &statement)?),
            Self::Taceo => Box::new(Taceo::libsnark(convert::proving_key(keys.libsnark()?), &statement)),
            Self::TaceoCircom => Box::new(Taceo::circom(convert::proving_key(keys.circom()?), &statement)),
        })
    }

    /// The kind of file that the prover's own loader reads.
    #[must_use]
    pub const fn key_file(self) -> KeyFile {
        match self {
            Self::Ours | Self::OursChecked | Self::Bellperson | Self::BellpersonMapped => KeyFile::Params,
            Self::OursCircom => KeyFile::Zkey,
            Self::Arkworks | Self::Taceo => KeyFile::Ark,
            Self::TaceoCircom => KeyFile::ArkCircom,
        }
    }

    /// The prover, ready, with the key of a file of its kind, whose points are believed; prestage on `device`.
    ///
    /// # Errors
    /// What the loader says to the file, and the prover to the key.
    pub fn load<'d>(
        self,
        device: &'d Host,
        path: &Path,
        statement: Statement,
    ) -> Result<Box<dyn Peer + 'd>, Error> {
        Ok(match self {
            Self::Ours => Box::new(Ours::new(device, files::libsnark(path, &statement)?, statement)?),
            Self::OursChecked => {
                Box::new(Ours::new(device, files::libsnark(path, &statement)?, statement)?.checked())
            }
            Self::OursCircom => Box::new(Ours::new(device, files::circom(path, &statement)?, statement)?),
            Self::Arkworks => Box::new(Arkworks::new(files::arkworks(path)?, &statement)),
            Self::Bellperson => Box::new(Bellperson::load(path, &statement)?),
            Self::BellpersonMapped => Box::new(BellpersonMapped::load(path, &statement)?),
            Self::Taceo => Box::new(Taceo::libsnark(files::arkworks(path)?, &statement)),
            Self::TaceoCircom => Box::new(Taceo::circom(files::arkworks(path)?, &statement)),
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
