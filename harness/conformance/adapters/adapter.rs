// A consumer in Rust, without crates: reads RING_FILE, drains it once, and prints the events.
// usage: adapter RING_FILE PAGES SAMPLE_TYPE
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileExt;

const RAW: u64 = 1 << 10;
const SAMPLE: u32 = 9;
const LOST: u32 = 2;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let size = arguments[2].parse::<usize>().unwrap() * 4096;
    let fields = arguments[3].parse::<u64>().unwrap() & !RAW;
    let raw_at = 8 + 8 * fields.count_ones() as usize;
    let file = OpenOptions::new().read(true).write(true).open(&arguments[1])?;
    let mut ring = vec![0u8; 4096 + size];
    file.read_exact_at(&mut ring, 0)?;
    let mut out = std::io::BufWriter::new(std::io::stdout());

    let word = |bytes: &[u8], at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    let half = |bytes: &[u8], at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    let at = |position: u64, length: usize| -> Vec<u8> {
        let from = (position % size as u64) as usize;
        (from..from + length).map(|i| ring[4096 + i % size]).collect()
    };
    let (head, mut tail) = (word(&ring, 1024), word(&ring, 1032));
    let mut left = head.wrapping_sub(tail) as u32 as usize; // a 32-bit kernel's data_head has 32 bits
    let end = tail.wrapping_add(left as u64);
    if left != 0 && (left > size || head % 8 != 0 || tail % 8 != 0) {
        writeln!(out, "error positions")?;
        left = 0;
    }
    while left != 0 {
        let header = at(tail, 8);
        let kind = half(&header, 0);
        let length = u16::from_ne_bytes(header[6..8].try_into().unwrap()) as usize;
        if length < 8 || length % 8 != 0 || length > left {
            writeln!(out, "error header.size")?;
            break;
        }
        let record = at(tail, length);
        let raw = if length >= raw_at + 4 { Some(half(&record, raw_at) as usize) } else { None };
        match (kind, raw) {
            (SAMPLE, Some(raw)) if raw <= length - raw_at - 4 => {
                write!(out, "sample ")?;
                for byte in &record[raw_at + 4..raw_at + 4 + raw] {
                    write!(out, "{byte:02x}")?;
                }
                writeln!(out)?;
            }
            (LOST, _) if length >= 24 => writeln!(out, "lost {}", word(&record, 16))?,
            _ => writeln!(out, "error type {kind}")?,
        }
        tail = tail.wrapping_add(length as u64);
        left -= length;
    }
    file.write_all_at(&end.to_ne_bytes(), 1032)?;
    writeln!(out, "tail {end}")
}
