//! A card as a device. Without a driver these tests say that they were skipped, and check that this is said by a typed error;
//! with `PRESTAGE_REQUIRE_CUDA` set they fail then. The binary runs on a machine without Rust.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cupti;
mod failures;
mod memory;
mod open;
mod work;

use std::ffi::c_void;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use prestage_vram::conformance::{KERNELS, OnCuda, run};
use prestage_vram::cuda::{Cuda, CudaConfig, CudaQueue, Grid, Kernel};
use prestage_vram::{Buf, Bytes, Error, Event, LedgerConfig, Margin, Sink, Span, Track, Work};

mod contract {
    use prestage_vram::conformance::OnCuda;

    prestage_vram::conformance!(OnCuda);
}

/// Runs a test on the card, or says why not.
fn on_card(name: &str, test: impl FnOnce()) {
    run(&OnCuda, name, |_| test());
}

/// No margin.
fn config() -> CudaConfig {
    let ledger = LedgerConfig { margin: Margin::Fixed(Bytes::ZERO), ..LedgerConfig::default() };
    CudaConfig { ledger, ..CudaConfig::default() }
}

/// Keeps every event.
#[derive(Default)]
struct Recorder(Mutex<Vec<Event>>);

impl Sink for Recorder {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

impl Recorder {
    fn spans(&self, track: Track) -> Vec<Span> {
        let events = self.0.lock().unwrap().clone().into_iter();
        events
            .filter_map(|e| if let Event::Span(s) = e { (s.track == track).then_some(s) } else { None })
            .collect()
    }
}

/// As [`config`], with a recorder.
fn recorded() -> (CudaConfig, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let mut config = config();
    config.ledger.sink = recorder.clone();
    (config, recorder)
}

fn kernel(card: &Cuda, name: &str) -> Kernel {
    // SAFETY: the image is whole PTX.
    let module = unsafe { card.module("checks", || Ok::<_, Error>(KERNELS.into())) };
    module.unwrap().kernel(name).unwrap()
}

/// Adds `value` to each element, after what the queue was given before.
fn add(card: &Cuda, queue: &CudaQueue, buf: &mut Buf<'_, Cuda, u64>, value: u64) -> Result<(), Error> {
    buf.claim(queue)?;
    let kernel = kernel(card, "add");
    let (mut at, mut n, mut value) = (buf.block().as_ptr::<u64>(), buf.len() as u64, value);
    let mut args =
        [(&raw mut at).cast::<c_void>(), (&raw mut n).cast::<c_void>(), (&raw mut value).cast::<c_void>()];
    let blocks = u32::try_from(n.div_ceil(256)).unwrap();
    // SAFETY: the kernel takes a pointer and two numbers and stays inside the buffer, which was claimed.
    unsafe {
        card.enqueue(queue, Work::launch("add", buf.bytes()), |stream| {
            stream.launch(&kernel, Grid::line(blocks, 256), &mut args)
        })
    }
}

/// Sets each byte to `value`.
fn filled<'a>(
    card: &Cuda,
    queue: &CudaQueue,
    mut buf: Buf<'a, Cuda, std::mem::MaybeUninit<u64>>,
    value: u8,
) -> Buf<'a, Cuda, u64> {
    buf.claim(queue).unwrap();
    let (at, len) = (buf.block().as_ptr(), buf.block().len());
    // SAFETY: the whole buffer, which was claimed.
    unsafe { card.enqueue(queue, Work::launch("fill", buf.bytes()), |stream| stream.fill(at, value, len)) }
        .unwrap();
    // SAFETY: every byte is written by the work just enqueued, and any bytes are numbers.
    unsafe { buf.assume_init() }
}

/// The elements, read after what the queue was given before.
fn read(card: &Cuda, queue: &CudaQueue, buf: &mut Buf<'_, Cuda, u64>) -> Vec<u64> {
    use prestage_vram::Device;
    buf.claim(queue).unwrap();
    let mut out = vec![0u64; buf.len()];
    let (at, to, len) = (buf.block().as_ptr::<u8>(), out.as_mut_ptr().cast::<u8>(), buf.block().len());
    // SAFETY: the whole buffer, which was claimed; `out` is as long and is waited for below.
    unsafe { card.enqueue(queue, Work::copy("read", buf.bytes()), |stream| stream.download(at, to, len)) }
        .unwrap();
    card.drain(queue).unwrap();
    out
}

/// This binary again, to run the test `name` as a child.
fn again(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env("PRESTAGE_CHILD", "1");
    command
}

fn is_child() -> bool {
    std::env::var_os("PRESTAGE_CHILD").is_some()
}

/// Starts a child and waits until it has printed `line`.
fn start(mut command: Command, line: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while !said.ends_with(line) {
        said.clear();
        assert_ne!(out.read_line(&mut said).unwrap(), 0, "the child has ended");
        said.truncate(said.trim_end().len());
    }
    (child, out)
}
