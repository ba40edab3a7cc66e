//! The offset index behind kafkaspec's protocol: lines of JSON in, lines of JSON out.

mod index;

use std::fs;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use index::{Entry, Error, OffsetIndex};
use serde_json::{Value, json};

/// The bytes of a file up to which the judge wants to see them.
const SHOWN: usize = 256;

struct Target {
    path: PathBuf,
    base_offset: i64,
    index: Option<OffsetIndex>,
}

/// Why a call has no result.
enum Failed {
    Refused(Error),
    Unknown,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Refused(error)
    }
}

impl Target {
    fn call(&mut self, op: &str, args: &Value) -> Result<Value, Failed> {
        let number = |name: &str| args[name].as_i64().unwrap_or_else(|| panic!("{op}: no integer {name} in {args}"));
        let small = |name: &str| i32::try_from(number(name)).expect("32 bits");
        let size = |name: &str| u64::try_from(number(name)).expect("not negative");
        let writable = || args["writable"].as_bool().expect("a boolean");
        match op {
            "init" => {
                self.base_offset = args["baseOffset"].as_i64().unwrap_or(100);
                return self.create(args["maxIndexSize"].as_u64().unwrap_or(43));
            }
            "openNew" => return self.create(size("maxIndexSize")),
            "open" => return self.open(size("maxIndexSize"), writable()),
            "openFile" => {
                self.index = None;
                fs::write(&self.path, from_hex(args["file"].as_str().expect("a text"))).map_err(Error::from)?;
                return self.open(size("maxIndexSize"), writable());
            }
            "fill" => {
                let count = number("count");
                self.create(count as u64 * index::ENTRY_SIZE)?;
                let base_offset = self.base_offset;
                for n in 1..=count {
                    self.opened().append(base_offset + n, n as i32 * 10)?;
                }
                return Ok(Value::Null);
            }
            "canAppendOffset" => return Ok(index::relative_offset(self.base_offset, number("offset")).is_ok().into()),
            "relativeOffset" => return Ok(index::relative_offset(self.base_offset, number("offset"))?.into()),
            "close" => return Ok(self.index.take().map_or(Ok(()), OffsetIndex::close)?.into()),
            "closeHandler" => {
                self.index = None;
                return Ok(Value::Null);
            }
            "trimToValidSize" if self.index.is_none() => return Ok(Value::Null),
            _ => {}
        }
        let index = self.opened();
        Ok(match op {
            "append" => index.append(number("offset"), small("position"))?.into(),
            "lookup" => pair(index.lookup(number("offset"))?),
            "pagesTouched" => {
                let (slots, pages) = index.pages_touched(number("offset"))?;
                json!({"slots": slots, "pages": pages})
            }
            "entry" => pair(index.entry(size("n"))?),
            "fetchUpperBoundOffset" => {
                index.fetch_upper_bound(small("position"), small("size"))?.map_or(Value::Null, pair)
            }
            "truncateTo" => index.truncate_to(number("offset"))?.into(),
            "truncate" => index.truncate()?.into(),
            "resize" => index.resize(size("newSize"))?.into(),
            "trimToValidSize" => index.trim()?.into(),
            "reset" => index.reset()?.into(),
            "sanityCheck" => index.sanity_check()?.into(),
            _ => return Err(Failed::Unknown),
        })
    }

    fn create(&mut self, max_size: u64) -> Result<Value, Failed> {
        self.index = None;
        self.index = Some(OffsetIndex::create(&self.path, self.base_offset, max_size)?);
        Ok(Value::Null)
    }

    fn open(&mut self, max_size: u64, writable: bool) -> Result<Value, Failed> {
        self.index = None;
        self.index = Some(OffsetIndex::open(&self.path, self.base_offset, max_size, writable)?);
        Ok(Value::Null)
    }

    fn opened(&mut self) -> &mut OffsetIndex {
        self.index.as_mut().expect("the index is open")
    }

    fn observe(&self) -> Result<Value, Error> {
        let file = fs::read(&self.path)?;
        let mut state = json!({"open": self.index.is_some(), "fileLength": file.len()});
        if file.len() <= SHOWN {
            state["file"] = to_hex(&file).into();
        }
        if let Some(index) = &self.index {
            state["entries"] = index.all()?.into_iter().map(pair).collect();
            state["maxEntries"] = index.max_entries().into();
            state["length"] = index.length().into();
            state["isFull"] = index.is_full().into();
            state["lastOffset"] = index.last_offset().into();
        }
        Ok(state)
    }

    fn answer(&mut self, request: &Value) -> Value {
        let op = request["op"].as_str().expect("an operation");
        let mut answer = json!({"i": request["i"]});
        let (key, value) = match op {
            "hello" => ("result", hello()),
            "observe" => ("state", self.observe().expect("the file can be read")),
            _ => match self.call(op, &request["args"]) {
                Ok(result) => ("result", result),
                Err(Failed::Refused(error)) => ("error", json!({"class": class(error)})),
                Err(Failed::Unknown) => ("unknown", op.into()),
            },
        };
        answer[key] = value;
        answer
    }
}

fn hello() -> Value {
    json!({"protocol": 1, "name": "Offset index in Rust", "version": env!("CARGO_PKG_VERSION"), "subsystems": {"offset_index": {}}})
}

/// What Kafka throws there.
fn class(error: Error) -> &'static str {
    match error {
        Error::Full | Error::NoSuchEntry | Error::TooSmall => "java.lang.IllegalArgumentException",
        Error::NotAbove => "org.apache.kafka.common.errors.InvalidOffsetException",
        Error::TooFar => "org.apache.kafka.storage.internals.log.IndexOffsetOverflowException",
        Error::ReadOnly => "java.nio.ReadOnlyBufferException",
        Error::Corrupt => "org.apache.kafka.storage.internals.log.CorruptIndexException",
        Error::Io(error) => panic!("{error}"),
    }
}

fn pair(entry: Entry) -> Value {
    json!([entry.offset, entry.position])
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal")).collect()
}

fn main() -> io::Result<()> {
    let directory = std::env::temp_dir().join(format!("offset-index-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let mut target = Target { path: directory.join("00000000000000000000.index"), base_offset: 0, index: None };
    let (mut input, mut output) = (BufReader::new(io::stdin()), BufWriter::new(io::stdout()));
    let (mut line, mut written) = (String::new(), Instant::now());
    while input.read_line(&mut line)? > 0 {
        let request = serde_json::from_str(&line).map_err(io::Error::other)?;
        writeln!(output, "{}", target.answer(&request))?;
        if input.buffer().is_empty() || written.elapsed() >= Duration::from_secs(1) {
            output.flush()?; // no answer is held back for longer
            written = Instant::now();
        }
        line.clear();
    }
    fs::remove_dir_all(directory)
}
