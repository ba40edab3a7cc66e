//! Kafka's offset index: the `.index` file beside a segment's `.log`.
//!
//! Slots of 8 bytes: the offset less the segment's base offset, and a position in the log, both `i32`, big-endian. The file
//! is as long as it may get until it is trimmed; nothing in it says how many slots are in use.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub const ENTRY_SIZE: u64 = 8;
const PAGE_SIZE: u64 = 4096;
/// The search begins this many entries before the last one: readers near the end stay on pages that are in memory.
const WARM_ENTRIES: u64 = 8192 / ENTRY_SIZE;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub offset: i64,
    pub position: i32,
}

#[derive(Debug)]
pub enum Error {
    Full,
    NotAbove,
    TooFar,
    ReadOnly,
    NoSuchEntry,
    /// A size that holds not one slot, or not the entries in use.
    TooSmall,
    Corrupt,
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

type Result<T> = std::result::Result<T, Error>;

pub struct OffsetIndex {
    path: PathBuf,
    file: File,
    base_offset: i64,
    max_size: u64,
    length: u64,
    entries: u64,
    last_offset: i64,
    writable: bool,
}

impl OffsetIndex {
    /// A new file, filled with zeros, without an entry.
    pub fn create(path: &Path, base_offset: i64, max_size: u64) -> Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        if max_size < ENTRY_SIZE {
            return Err(Error::TooSmall);
        }
        let length = whole(max_size);
        file.set_len(length)?;
        Ok(Self { path: path.into(), file, base_offset, max_size, length, entries: 0, last_offset: base_offset, writable: true })
    }

    /// The file that is there: every whole slot counts as an entry.
    pub fn open(path: &Path, base_offset: i64, max_size: u64, writable: bool) -> Result<Self> {
        let file = File::options().read(true).write(writable).open(path)?;
        let length = file.metadata()?.len();
        let mut index =
            Self { path: path.into(), file, base_offset, max_size, length, entries: 0, last_offset: base_offset, writable };
        index.keep(index.max_entries())?;
        Ok(index)
    }

    pub fn max_entries(&self) -> u64 {
        self.length / ENTRY_SIZE
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn is_full(&self) -> bool {
        self.entries >= self.max_entries()
    }

    pub fn last_offset(&self) -> i64 {
        self.last_offset
    }

    pub fn append(&mut self, offset: i64, position: i32) -> Result<()> {
        if self.is_full() {
            return Err(Error::Full);
        }
        if self.entries > 0 && offset <= self.last_offset {
            return Err(Error::NotAbove);
        }
        let relative = relative_offset(self.base_offset, offset)?;
        if !self.writable {
            return Err(Error::ReadOnly);
        }
        let mut slot = [0; ENTRY_SIZE as usize];
        slot[..4].copy_from_slice(&relative.to_be_bytes());
        slot[4..].copy_from_slice(&position.to_be_bytes());
        self.file.write_all_at(&slot, self.entries * ENTRY_SIZE)?;
        self.entries += 1;
        self.last_offset = offset;
        Ok(())
    }

    /// The entry of the greatest offset that is not above the target, or the segment's first byte.
    pub fn lookup(&self, target: i64) -> Result<Entry> {
        match self.search(target, |_| ())? {
            Some(slot) => self.read(slot),
            None => Ok(Entry { offset: self.base_offset, position: 0 }),
        }
    }

    /// The slots that a lookup reads, in order, before it reads the answer, and all pages on which they lie.
    pub fn pages_touched(&self, target: i64) -> Result<(Vec<u64>, BTreeSet<u64>)> {
        let mut slots = Vec::new();
        let found = self.search(target, |slot| slots.push(slot))?;
        let pages = slots.iter().chain(&found).map(|slot| slot * ENTRY_SIZE / PAGE_SIZE).collect();
        if found.is_none() {
            slots.pop();
        }
        Ok((slots, pages))
    }

    pub fn entry(&self, n: u64) -> Result<Entry> {
        if n < self.entries { self.read(n) } else { Err(Error::NoSuchEntry) }
    }

    pub fn all(&self) -> Result<Vec<Entry>> {
        (0..self.entries).map(|slot| self.read(slot)).collect()
    }

    /// The first entry at or beyond the end of a fetch: its offset lies outside.
    pub fn fetch_upper_bound(&self, position: i32, size: i32) -> Result<Option<Entry>> {
        let end = i64::from(position) + i64::from(size);
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low.midpoint(high);
            if i64::from(self.read(middle)?.position) < end { low = middle + 1 } else { high = middle }
        }
        if low < self.entries { self.read(low).map(Some) } else { Ok(None) }
    }

    /// Keeps the entries below the offset. The file stays as it is.
    pub fn truncate_to(&mut self, offset: i64) -> Result<()> {
        let entries = match self.search(offset, |_| ())? {
            None => 0,
            Some(slot) if self.read(slot)?.offset == offset => slot,
            Some(slot) => slot + 1,
        };
        self.keep(entries)
    }

    pub fn truncate(&mut self) -> Result<()> {
        self.keep(0)
    }

    /// Cuts the file, or adds zeros; says whether its length changed. It can be written from then on.
    pub fn resize(&mut self, size: u64) -> Result<bool> {
        let length = whole(size);
        if length < self.entries * ENTRY_SIZE {
            return Err(Error::TooSmall);
        }
        if length == self.length {
            return Ok(false);
        }
        self.file = File::options().read(true).write(true).open(&self.path)?;
        self.file.set_len(length)?;
        self.writable = true;
        self.length = length;
        Ok(true)
    }

    pub fn trim(&mut self) -> Result<()> {
        self.resize(self.entries * ENTRY_SIZE).map(drop)
    }

    pub fn reset(&mut self) -> Result<()> {
        self.truncate()?;
        self.resize(self.max_size).map(drop)
    }

    pub fn sanity_check(&self) -> Result<()> {
        let below = self.entries > 0 && self.last_offset < self.base_offset;
        if below || self.length % ENTRY_SIZE != 0 { Err(Error::Corrupt) } else { Ok(()) }
    }

    /// Trims, and lets go of the file. To drop an index leaves the file as it is.
    pub fn close(mut self) -> Result<()> {
        self.trim()
    }

    fn keep(&mut self, entries: u64) -> Result<()> {
        self.entries = entries;
        self.last_offset = if entries > 0 { self.read(entries - 1)?.offset } else { self.base_offset };
        Ok(())
    }

    fn read(&self, slot: u64) -> Result<Entry> {
        let (mut relative, mut position) = ([0; 4], [0; 4]);
        self.file.read_exact_at(&mut relative, slot * ENTRY_SIZE)?;
        self.file.read_exact_at(&mut position, slot * ENTRY_SIZE + 4)?;
        Ok(Entry {
            offset: self.base_offset + i64::from(i32::from_be_bytes(relative)),
            position: i32::from_be_bytes(position),
        })
    }

    /// The slot of the greatest offset that is not above the target; `looked` is told of each slot that is read.
    fn search(&self, target: i64, mut looked: impl FnMut(u64)) -> Result<Option<u64>> {
        let Some(last) = self.entries.checked_sub(1) else { return Ok(None) };
        let mut offset_at = |slot| {
            looked(slot);
            self.read(slot).map(|entry| entry.offset)
        };
        let first_warm = last.saturating_sub(WARM_ENTRIES);
        let (mut low, mut high) = if offset_at(first_warm)? < target {
            (first_warm, last)
        } else if offset_at(0)? > target {
            return Ok(None);
        } else {
            (0, first_warm)
        };
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match offset_at(middle)?.cmp(&target) {
                std::cmp::Ordering::Less => low = middle,
                std::cmp::Ordering::Equal => return Ok(Some(middle)),
                std::cmp::Ordering::Greater => high = middle - 1,
            }
        }
        Ok(Some(low))
    }
}

/// The offset as it is stored, where it can be; an index need not be open for that.
pub fn relative_offset(base_offset: i64, offset: i64) -> Result<i32> {
    let relative = i32::try_from(offset - base_offset).map_err(|_| Error::TooFar)?;
    if relative < 0 { Err(Error::TooFar) } else { Ok(relative) }
}

fn whole(size: u64) -> u64 {
    size / ENTRY_SIZE * ENTRY_SIZE
}
