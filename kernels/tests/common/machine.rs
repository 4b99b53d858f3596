//! One sequence of launches on two machines: the host build and a device.

use std::{collections::HashMap, ffi::CString, ptr, time::Instant};

use cudarc::driver::sys::{self as cuda, CUdevice_attribute_enum as Attribute, CUresult};
use prestage_kernels::{
    Cache, Capability, Error, Family, Launch, check_driver, driver_version,
    host::{self, Order as Threads},
    module,
};

/// Memory and launches, on the host or on a device.
pub trait Machine {
    fn alloc(&mut self, bytes: usize) -> *mut u8;
    fn write(&mut self, to: *mut u8, bytes: &[u8]);
    fn read(&mut self, from: *const u8, bytes: usize) -> Vec<u8>;
    fn launch(&mut self, launch: &Launch);

    fn run(&mut self, launches: &[Launch]) {
        for l in launches {
            self.launch(l);
        }
    }
}

pub fn bytes_of<T: Copy>(values: &[T]) -> &[u8] {
    // SAFETY: plain integers without padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) }
}
/// The values in memory of the machine.
pub fn place<T: Copy>(m: &mut dyn Machine, values: &[T]) -> *mut T {
    let at = m.alloc(size_of_val(values));
    m.write(at, bytes_of(values));
    at.cast()
}

#[derive(Default)]
pub struct Host {
    memory: Vec<Vec<[u64; 4]>>,
}

impl Machine for Host {
    fn alloc(&mut self, bytes: usize) -> *mut u8 {
        self.memory.push(vec![[0; 4]; bytes.div_ceil(32).max(1)]);
        self.memory.last_mut().unwrap().as_mut_ptr().cast()
    }
    fn write(&mut self, to: *mut u8, bytes: &[u8]) {
        // SAFETY: `to` comes from `alloc` with at least as many bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }
    fn read(&mut self, from: *const u8, bytes: usize) -> Vec<u8> {
        // SAFETY: `from` comes from `alloc` with at least as many bytes.
        unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec()
    }
    fn launch(&mut self, launch: &Launch) {
        // SAFETY: arguments point into memory of this machine, of the sizes that the launches ask for.
        unsafe { host::launch(launch, Threads::Forwards).unwrap() };
    }
}

pub struct Gpu {
    capability: Capability,
    modules: HashMap<Family, cuda::CUmodule>,
    functions: HashMap<&'static str, cuda::CUfunction>,
    allocations: Vec<u64>,
}

fn ok(status: CUresult) {
    assert_eq!(status, CUresult::CUDA_SUCCESS);
}

impl Gpu {
    /// Device 0, or why not.
    pub fn open() -> Result<Self, Error> {
        driver_version()?;
        let (mut count, mut context) = (0, ptr::null_mut());
        // SAFETY: the driver is there, and the pointers are valid for the calls.
        unsafe {
            if cuda::cuInit(0) != CUresult::CUDA_SUCCESS
                || cuda::cuDeviceGetCount(&mut count) != CUresult::CUDA_SUCCESS
            {
                return Err(Error::NoDriver);
            }
            if count == 0 {
                return Err(Error::NoDriver);
            }
            ok(cuda::cuDevicePrimaryCtxRetain(&mut context, 0));
            ok(cuda::cuCtxSetCurrent(context));
        }
        let attribute = |which| {
            let mut value = 0;
            // SAFETY: device 0 exists.
            unsafe { ok(cuda::cuDeviceGetAttribute(&mut value, which, 0)) };
            value.unsigned_abs()
        };
        let capability = Capability {
            major: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            minor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        };
        let mut gpu =
            Self { capability, modules: HashMap::new(), functions: HashMap::new(), allocations: Vec::new() };
        // The smallest one tells whether kernels can be had.
        gpu.module(Family::MsmLists)?;
        Ok(gpu)
    }

    /// The module of a family, compiled or read from the cache when it is first asked for.
    fn module(&mut self, family: Family) -> Result<cuda::CUmodule, Error> {
        if let Some(&loaded) = self.modules.get(&family) {
            return Ok(loaded);
        }
        let image = module(&Cache::from_env()?, family, self.capability)?;
        check_driver(driver_version()?, &image)?;
        let mut loaded = ptr::null_mut();
        // SAFETY: the image is a whole cubin, or PTX that ends in NUL.
        unsafe { ok(cuda::cuModuleLoadData(&mut loaded, image.bytes.as_ptr().cast())) };
        self.modules.insert(family, loaded);
        Ok(loaded)
    }

    fn function(&mut self, name: &'static str) -> cuda::CUfunction {
        if let Some(&f) = self.functions.get(name) {
            return f;
        }
        let family = Family::ALL.iter().find(|family| family.kernels().contains(&name));
        let loaded = self.module(*family.unwrap_or_else(|| panic!("no kernel {name}"))).unwrap();
        let (c, mut f) = (CString::new(name).unwrap(), ptr::null_mut());
        // SAFETY: a loaded module and a NUL-terminated name.
        unsafe { ok(cuda::cuModuleGetFunction(&mut f, loaded, c.as_ptr())) };
        self.functions.insert(name, f);
        f
    }

    pub fn synchronize(&self) {
        // SAFETY: the context is current.
        unsafe { ok(cuda::cuCtxSynchronize()) };
    }

    /// The median time of seven runs in milliseconds, by the host's clock around synchronised work.
    pub fn time(&mut self, launches: &[Launch]) -> f64 {
        self.run(launches);
        let mut times: Vec<f64> = (0..7)
            .map(|_| {
                self.synchronize();
                let start = Instant::now();
                for l in launches {
                    self.enqueue(l);
                }
                self.synchronize();
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[3]
    }

    /// The milliseconds that each kernel takes by device events, and how often it is launched.
    pub fn profile(&mut self, launches: &[Launch]) -> Vec<(&'static str, f64, usize)> {
        self.synchronize();
        let event = || {
            let (mut event, flags) = (ptr::null_mut(), cuda::CUevent_flags_enum::CU_EVENT_DEFAULT as u32);
            // SAFETY: the context is current and the pointer valid for the call.
            unsafe { ok(cuda::cuEventCreate(&mut event, flags)) };
            // SAFETY: created above.
            unsafe { ok(cuda::cuEventRecord(event, ptr::null_mut())) };
            event
        };
        let mut events = vec![event()];
        for l in launches {
            self.enqueue(l);
            events.push(event());
        }
        self.synchronize();
        let mut all: Vec<(&'static str, f64, usize)> = Vec::new();
        for (l, pair) in launches.iter().zip(events.windows(2)) {
            let mut ms = 0f32;
            // SAFETY: both events have been recorded and have passed.
            unsafe { ok(cuda::cuEventElapsedTime_v2(&mut ms, pair[0], pair[1])) };
            match all.iter_mut().find(|(name, ..)| *name == l.kernel) {
                Some((_, total, count)) => {
                    *total += f64::from(ms);
                    *count += 1;
                }
                None => all.push((l.kernel, f64::from(ms), 1)),
            }
        }
        for event in events {
            // SAFETY: destroyed once.
            unsafe { cuda::cuEventDestroy_v2(event) };
        }
        all
    }

    /// Fills `bytes` bytes with copies of the first `period`.
    pub fn repeat(&mut self, at: *mut u8, period: usize, bytes: usize) {
        let mut done = period.min(bytes);
        while done < bytes {
            let next = done.min(bytes - done);
            // SAFETY: both ranges are inside the allocation and apart.
            unsafe { ok(cuda::cuMemcpyDtoD_v2(at as u64 + done as u64, at as u64, next)) };
            done += next;
        }
    }

    /// Gives everything back that was allocated.
    pub fn free(&mut self) {
        self.synchronize();
        for at in self.allocations.drain(..) {
            // SAFETY: allocated once, freed once.
            unsafe { cuda::cuMemFree_v2(at) };
        }
    }

    pub fn enqueue(&mut self, l: &Launch) {
        let f = self.function(l.kernel);
        let mut pointers = l.args.pointers();
        // SAFETY: arguments have the types of the kernel's parameters and point into this device's memory.
        unsafe {
            ok(cuda::cuLaunchKernel(
                f,
                l.grid.0,
                l.grid.1,
                1,
                l.block,
                1,
                1,
                l.shared_bytes,
                ptr::null_mut(),
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            ));
        }
    }
}

impl Machine for Gpu {
    fn alloc(&mut self, bytes: usize) -> *mut u8 {
        let mut at = 0;
        // SAFETY: the context is current.
        unsafe { ok(cuda::cuMemAlloc_v2(&mut at, bytes.max(32))) };
        self.allocations.push(at);
        at as *mut u8
    }
    fn write(&mut self, to: *mut u8, bytes: &[u8]) {
        // SAFETY: `to` comes from `alloc` with at least as many bytes.
        unsafe { ok(cuda::cuMemcpyHtoD_v2(to as u64, bytes.as_ptr().cast(), bytes.len())) };
    }
    fn read(&mut self, from: *const u8, bytes: usize) -> Vec<u8> {
        let mut out = vec![0u8; bytes];
        // SAFETY: `from` comes from `alloc` with at least as many bytes.
        unsafe { ok(cuda::cuMemcpyDtoH_v2(out.as_mut_ptr().cast(), from as u64, bytes)) };
        out
    }
    fn launch(&mut self, launch: &Launch) {
        self.enqueue(launch);
        // A fault names its kernel: the next call would report it as its own.
        // SAFETY: the context is current.
        let status = unsafe { cuda::cuCtxSynchronize() };
        assert_eq!(status, CUresult::CUDA_SUCCESS, "after {}", launch.kernel);
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        self.free();
        for &m in self.modules.values() {
            // SAFETY: loaded once, unloaded once.
            unsafe { cuda::cuModuleUnload(m) };
        }
    }
}

/// The device, or nothing where there is none.
pub fn device() -> Option<Gpu> {
    match Gpu::open() {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            let typed =
                matches!(error, Error::NoDriver | Error::NoCompiler { .. } | Error::DriverTooOld { .. });
            assert!(typed, "{error}");
            assert!(std::env::var_os("PRESTAGE_REQUIRE_CUDA").is_none(), "{error}");
            println!("nothing to compare with: {error}");
            None
        }
    }
}

/// Runs `job` on both machines and compares what it returns.
pub fn compare(gpu: &mut Gpu, what: &str, job: impl Fn(&mut dyn Machine) -> Vec<u8>) {
    let expected = job(&mut Host::default());
    assert!(job(gpu) == expected, "{what}: the device and the host build differ");
}
