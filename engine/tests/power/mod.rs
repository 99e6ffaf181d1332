//! Power cuts for tests: an ext4 file system in a file, mounted over a loop device, that is shut down on command.
//!
//! `EXT4_IOC_SHUTDOWN` without a journal flush stops the file system at once: nothing reaches the loop device after
//! that. The call has no safe wrapper in Rust, so a few lines of Python make it. This needs root, a loop device,
//! `mkfs.ext4` and `python3`. Without them [`setup`] prints a message and returns nothing, unless
//! `CORTADO_POWER_CUTS=100` asks for a number of cuts: then it fails.
//!
//! What counts is what was acknowledged before [`Cutter::cut`] took the time. A sync that runs at the moment of the cut
//! may succeed with nothing on the disk, for any program.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests of two packages use it, each a part"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Shuts down the file system of a directory on command.
const CUTTER: &str = "
import fcntl, os, struct, sys, time
handle = os.open(sys.argv[1], os.O_RDONLY)
print('ready', flush=True)
sys.stdin.readline()
EXT4_IOC_SHUTDOWN, NOLOGFLUSH = 0x8004587d, 2
print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
fcntl.ioctl(handle, EXT4_IOC_SHUTDOWN, struct.pack('I', NOLOGFLUSH))
";

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// An ext4 file system in a file. Unmounted when dropped, also by a failing test.
pub struct Volume {
    image: PathBuf,
    pub mount: PathBuf,
    mounted: bool,
    /// Removed after the unmount.
    _dir: tempfile::TempDir,
}

impl Volume {
    /// A new volume of `bytes`, in memory if possible: its flushes are free. The error says what is missing.
    fn new(bytes: u64) -> Result<Volume, String> {
        if std::fs::metadata("/proc/self").map_err(|error| error.to_string())?.uid() != 0 {
            return Err("needs root".to_owned());
        }
        run("python3", &["--version"])?;
        let text = |error: std::io::Error| error.to_string();
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).map_err(text)?;
        let (image, mount) = (dir.path().join("image"), dir.path().join("mount"));
        std::fs::File::create(&image).and_then(|file| file.set_len(bytes)).map_err(text)?;
        std::fs::create_dir(&mount).map_err(text)?;
        run("mkfs.ext4", &["-q", "-F", path(&image)])?;
        let mut volume = Volume { image, mount, mounted: false, _dir: dir };
        volume.mount()?;
        Ok(volume)
    }

    /// Mounts it again.
    pub fn mount(&mut self) -> Result<(), String> {
        run("mount", &["-o", "loop", path(&self.image), path(&self.mount)])?;
        self.mounted = true;
        Ok(())
    }

    /// Unmounts it. No process may use it.
    pub fn unmount(&mut self) -> Result<(), String> {
        run("umount", &[path(&self.mount)])?;
        self.mounted = false;
        Ok(())
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if self.mounted && self.unmount().is_err() {
            // Still in use: the kernel unmounts it later.
            let _ = run("umount", &["-l", path(&self.mount)]);
        }
    }
}

/// A path as text.
pub fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A process that does not outlive the test.
pub struct Process(pub Child);

impl Process {
    /// Starts it, with pipes.
    pub fn spawn(command: &mut Command) -> Process {
        Process(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Its standard input and output.
    pub fn pipes(&mut self) -> (ChildStdin, BufReader<ChildStdout>) {
        (self.0.stdin.take().unwrap(), BufReader::new(self.0.stdout.take().unwrap()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that is ready to cut the power of a volume.
pub struct Cutter {
    process: Process,
    tell: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Cutter {
    /// Prepares a cut.
    pub fn new(volume: &Volume) -> Cutter {
        let mut process = Process::spawn(Command::new("python3").args(["-c", CUTTER, path(&volume.mount)]));
        let (tell, mut answers) = process.pipes();
        let mut ready = String::new();
        answers.read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        Cutter { process, tell, answers }
    }

    /// Cuts the power. Returns the time right before, by [`now`].
    pub fn cut(mut self) -> u64 {
        self.tell.write_all(b"\n").unwrap();
        let mut cut_at = String::new();
        self.answers.read_line(&mut cut_at).unwrap();
        let mut rest = String::new();
        self.answers.read_to_string(&mut rest).unwrap();
        assert!(self.process.0.wait().unwrap().success(), "the file system was not shut down");
        cut_at.trim().parse().unwrap()
    }
}

/// Nanoseconds of the monotonic clock, which all processes share.
pub fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The number of cuts, and a volume for them. Prints a message and returns `None` if power cannot be cut here.
pub fn setup(default_cuts: u64, bytes: u64) -> Option<(u64, Volume)> {
    let asked = std::env::var("CORTADO_POWER_CUTS").ok().map(|cuts| cuts.parse().unwrap());
    match Volume::new(bytes) {
        Ok(volume) => Some((asked.unwrap_or(default_cuts), volume)),
        Err(missing) => {
            assert!(asked.is_none(), "power cannot be cut here: {missing}");
            // Not by a macro: the test harness captures its output when a test passes.
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("a test");
            let said = writeln!(std::io::stderr(), "{test}: SKIPPED, not passed: power cannot be cut here: {missing}");
            said.unwrap();
            None
        }
    }
}
