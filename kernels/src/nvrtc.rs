//! Compilation at run time, and the versions of what is installed. Needs no GPU.

use std::{
    ffi::{CString, c_char},
    ptr,
};

use cudarc::{driver::sys as cuda, nvrtc::sys};

use crate::{
    Error, Family, Target, Version,
    arch::{Arch, Capability, Form},
    cache::{Cache, Image, check_driver, check_version, options},
};

/// NVRTC, found and asked for its version.
#[derive(Debug, Clone)]
pub struct Compiler {
    version: Version,
    architectures: Vec<u32>,
}

impl Compiler {
    /// Finds NVRTC.
    ///
    /// # Errors
    ///
    /// [`Error::NoNvrtc`] when there is none.
    pub fn find() -> Result<Self, Error> {
        // SAFETY: loads a shared library by its usual names. Asked first, because every other call ends the
        // process when the library is missing.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::NoNvrtc);
        }
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: the pointers are valid for the calls.
        unsafe {
            check("nvrtcVersion", sys::nvrtcVersion(&mut major, &mut minor))?;
            check("nvrtcGetNumSupportedArchs", sys::nvrtcGetNumSupportedArchs(&mut count))?;
        }
        let mut architectures = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the list has as many places as NVRTC said.
        unsafe { check("nvrtcGetSupportedArchs", sys::nvrtcGetSupportedArchs(architectures.as_mut_ptr()))? };
        Ok(Self {
            version: Version { major: major.unsigned_abs(), minor: minor.unsigned_abs() },
            architectures: architectures.into_iter().map(i32::unsigned_abs).collect(),
        })
    }

    /// NVRTC's version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The numbers of the architectures that it compiles for.
    #[must_use]
    pub fn architectures(&self) -> &[u32] {
        &self.architectures
    }

    /// Compiles a family, without the cache.
    ///
    /// # Errors
    ///
    /// [`Error::Compile`] with NVRTC's log, or [`Error::Call`].
    pub fn compile(&self, family: Family, target: Target) -> Result<Image, Error> {
        let program = Program::new(family)?;
        let options = c_strings(options(target).iter().map(String::as_str))?;
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let count = i32::try_from(pointers.len()).unwrap_or(0);
        // SAFETY: `count` NUL-terminated options, alive through the call.
        let status = unsafe { sys::nvrtcCompileProgram(program.raw, count, pointers.as_ptr()) };
        if status != sys::nvrtcResult::NVRTC_SUCCESS {
            return Err(Error::Compile {
                family,
                target,
                compiler: self.version,
                status: format!("{status:?}"),
                log: program.log()?,
            });
        }
        let bytes = program.output(target)?;
        Ok(Image { family, target, compiler: self.version, bytes })
    }
}

/// An NVRTC program, destroyed when dropped.
struct Program {
    raw: sys::nvrtcProgram,
    // NVRTC may keep pointers into these while the program lives.
    _sources: Vec<CString>,
}

impl Program {
    fn new(family: Family) -> Result<Self, Error> {
        let headers = family.headers();
        let unit = family.source();
        let texts = headers.iter().map(|h| h.text).chain([unit.text]);
        let names = headers.iter().map(|h| h.name).chain([unit.name]);
        let sources = c_strings(texts.chain(names))?;
        let pointers: Vec<*const c_char> = sources.iter().map(|s| s.as_ptr()).collect();
        let (texts, names) = pointers.split_at(headers.len() + 1);
        let count = i32::try_from(headers.len()).unwrap_or(0);
        let mut raw = ptr::null_mut();
        // SAFETY: the unit's text and name come last in their halves; before them are `count` texts and names,
        // NUL-terminated and owned by `sources`.
        let status = unsafe {
            sys::nvrtcCreateProgram(
                &mut raw,
                texts[headers.len()],
                names[headers.len()],
                count,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        check("nvrtcCreateProgram", status)?;
        Ok(Self { raw, _sources: sources })
    }

    fn log(&self) -> Result<String, Error> {
        let mut size = 0;
        // SAFETY: the program lives, and the buffer has the size that NVRTC asks for.
        let bytes = unsafe {
            check("nvrtcGetProgramLogSize", sys::nvrtcGetProgramLogSize(self.raw, &mut size))?;
            let mut bytes = vec![0u8; size];
            check("nvrtcGetProgramLog", sys::nvrtcGetProgramLog(self.raw, bytes.as_mut_ptr().cast()))?;
            bytes
        };
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches(['\0', '\n']).to_owned())
    }

    fn output(&self, target: Target) -> Result<Vec<u8>, Error> {
        let mut size = 0;
        // SAFETY: the program lives, and the buffer has the size that NVRTC asks for.
        unsafe {
            match target.form {
                Form::Cubin => {
                    check("nvrtcGetCUBINSize", sys::nvrtcGetCUBINSize(self.raw, &mut size))?;
                    let mut bytes = vec![0u8; size];
                    check("nvrtcGetCUBIN", sys::nvrtcGetCUBIN(self.raw, bytes.as_mut_ptr().cast()))?;
                    Ok(bytes)
                }
                Form::Ptx => {
                    check("nvrtcGetPTXSize", sys::nvrtcGetPTXSize(self.raw, &mut size))?;
                    let mut bytes = vec![0u8; size];
                    check("nvrtcGetPTX", sys::nvrtcGetPTX(self.raw, bytes.as_mut_ptr().cast()))?;
                    Ok(bytes)
                }
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created by `nvrtcCreateProgram` and destroyed once.
        unsafe { sys::nvrtcDestroyProgram(&mut self.raw) };
    }
}

fn check(call: &'static str, status: sys::nvrtcResult) -> Result<(), Error> {
    match status {
        sys::nvrtcResult::NVRTC_SUCCESS => Ok(()),
        _ => Err(Error::Call { call, status: format!("{status:?}") }),
    }
}

fn c_strings<'a>(strings: impl Iterator<Item = &'a str>) -> Result<Vec<CString>, Error> {
    strings
        .map(|s| {
            CString::new(s).map_err(|e| Error::Call { call: "nvrtcCreateProgram", status: e.to_string() })
        })
        .collect()
}

/// The version of CUDA that the installed driver supports. Needs the driver's library, not a device.
///
/// # Errors
///
/// [`Error::NoDriver`] when there is none.
pub fn driver_version() -> Result<Version, Error> {
    // SAFETY: loads a shared library by its usual names; asked first, as in `Compiler::find`.
    if !unsafe { cuda::is_culib_present() } {
        return Err(Error::NoDriver);
    }
    let mut packed = 0;
    // SAFETY: the pointer is valid for the call, which is allowed before `cuInit`.
    let status = unsafe { cuda::cuDriverGetVersion(&mut packed) };
    match status {
        cuda::CUresult::CUDA_SUCCESS => Ok(Version::from_packed(packed.unsigned_abs())),
        _ => Err(Error::Call { call: "cuDriverGetVersion", status: format!("{status:?}") }),
    }
}

/// The module of `family` for a device of `capability`: from the cache, or compiled and cached. A cache that
/// cannot be written costs a compilation at every start and is no error.
///
/// # Errors
///
/// [`Error::UnsupportedArchitecture`], [`Error::NoCompiler`] when there is neither NVRTC nor a warm cache,
/// [`Error::Compile`], or [`Error::Cache`] when the cache cannot be read.
pub fn module(cache: &Cache, family: Family, capability: Capability) -> Result<Image, Error> {
    match Compiler::find() {
        Ok(compiler) => {
            let target = Target::for_device(capability, compiler.architectures())?;
            if let Some(image) = cache.load(family, target, Some(compiler.version()))? {
                return Ok(image);
            }
            let image = compiler.compile(family, target)?;
            let _ = cache.store(&image);
            Ok(image)
        }
        Err(Error::NoNvrtc) => cached(cache, family, capability),
        Err(e) => Err(e),
    }
}

/// The module as a warm cache has it.
fn cached(cache: &Cache, family: Family, capability: Capability) -> Result<Image, Error> {
    let target = Target::for_device(capability, &[])?;
    let ptx = Target { form: Form::Ptx, ..target };
    for candidate in [target, ptx] {
        if let Some(image) = cache.load(family, candidate, None)? {
            return Ok(image);
        }
    }
    Err(Error::NoCompiler { family, target, cache: cache.dir().to_owned() })
}

/// Whether a device of `capability` can have the kernels of `families` under this `driver`: NVRTC can compile them,
/// or they are in a warm cache. Compiles nothing.
///
/// # Errors
///
/// As [`module`], without [`Error::Compile`]; [`Error::DriverTooOld`].
pub fn ready(
    cache: &Cache,
    families: &[Family],
    capability: Capability,
    driver: Version,
) -> Result<(), Error> {
    match Compiler::find() {
        Ok(compiler) => {
            let target = Target::for_device(capability, compiler.architectures())?;
            check_version(driver, target, compiler.version())
        }
        Err(Error::NoNvrtc) => {
            families.iter().try_for_each(|&family| check_driver(driver, &cached(cache, family, capability)?))
        }
        Err(e) => Err(e),
    }
}

/// One module that [`build`] saw to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Built {
    /// The family.
    pub family: Family,
    /// The architecture.
    pub target: Target,
    /// The size of the module.
    pub bytes: usize,
    /// Whether it had to be compiled.
    pub compiled: bool,
}

/// Warms the cache: machine code of every family for each of `archs`. `progress` hears of each module as it is
/// done. Needs NVRTC and no GPU.
///
/// # Errors
///
/// [`Error::NoNvrtc`], [`Error::Compile`], or [`Error::Cache`].
pub fn build(cache: &Cache, archs: &[Arch], mut progress: impl FnMut(Built)) -> Result<Vec<Built>, Error> {
    let compiler = Compiler::find()?;
    let mut all = Vec::new();
    for &arch in archs {
        for &family in Family::ALL {
            let target = Target::cubin(arch);
            let cached = cache.load(family, target, Some(compiler.version()))?;
            let compiled = cached.is_none();
            let image = match cached {
                Some(image) => image,
                None => {
                    let image = compiler.compile(family, target)?;
                    cache.store(&image)?;
                    image
                }
            };
            let built = Built { family, target, bytes: image.bytes.len(), compiled };
            progress(built);
            all.push(built);
        }
    }
    Ok(all)
}
