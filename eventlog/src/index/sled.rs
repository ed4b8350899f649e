//! The index on sled 0.34.7. One tree; keys sort as what they stand for does:
//!
//! | key | value |
//! |---|---|
//! | `s` ‖ stream ‖ 0 ‖ first sequence | segment, hash of the stream's last event there, offsets as deltas |
//! | `p` ‖ segment | offset of every 1,024th event |
//! | `c` ‖ segment ‖ shard | command ids of the shard: 8 bytes of the id, index of the first event |
//! | `f` ‖ segment ‖ chunk | the filter over all command ids, in chunks |
//! | `w` ‖ segment | that the segment is complete: last position, global hash, sum over its `s` entries, its shards |
//!
//! Numbers in keys are big-endian. Every value ends in the CRC-32C of key and value.
//! sled is held on a short leash: at most 100 keys per batch (larger ones pinned gigabytes), no value near a quarter
//! of its segment (128 KiB), every call inside `catch_unwind` (it panics on some damage).

use std::{
    any::Any,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use crate::{
    id::CommandId,
    log::Hash,
    number::{Position, Sequence},
    segment::map::{Head, SegmentMap, StreamPlaces},
    stream::StreamId,
};

use super::{Index, IndexError, Mark, Place, filter::Filter};

const BATCH_KEYS_MAX: usize = 100;
const CACHE_BYTES: u64 = 16 * 1024 * 1024;
/// So many offsets in one `s` entry, at most five bytes each.
const ENTRY_OFFSETS_MAX: usize = 16 * 1024;
const NEAR_EVENTS: usize = 1024;
const CHUNK_BYTES: usize = 32 * 1024;
const SHARDS: u64 = 4096;

/// The index in a folder of its own.
pub(crate) struct SledIndex {
    tree: sled::Db,
}

impl SledIndex {
    /// Opens or makes the index in this folder.
    pub(crate) fn open(folder: &Path) -> Result<Self, IndexError> {
        guarded(|| {
            let tree = sled::Config::new()
                .path(folder)
                .cache_capacity(CACHE_BYTES)
                .open()
                .map_err(|error| IndexError(error.to_string()))?;
            Ok(Self { tree })
        })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        let value = self.tree.get(key).map_err(|error| IndexError(error.to_string()))?;
        value.map(|value| checked(key, &value).map(<[u8]>::to_vec)).transpose()
    }

    fn need(&self, key: &[u8]) -> Result<Vec<u8>, IndexError> {
        self.get(key)?.ok_or_else(|| IndexError("an entry is missing".into()))
    }

    fn mark(&self, segment: Position) -> Result<FullMark, IndexError> {
        FullMark::read(segment, &self.need(&segment_key(b'w', segment, &[]))?)
    }
}

/// Runs a call into sled; its panic is an error like any other.
fn guarded<T>(call: impl FnOnce() -> Result<T, IndexError>) -> Result<T, IndexError> {
    let text = |panic: Box<dyn Any + Send>| {
        let known = panic.downcast_ref::<&str>().map(ToString::to_string);
        known.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".into())
    };
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|panic| Err(IndexError(format!("it panicked: {}", text(panic)))))
}

fn segment_key(kind: u8, segment: Position, rest: &[u8]) -> Vec<u8> {
    [&[kind], &segment.0.to_be_bytes()[..], rest].concat()
}

fn stream_prefix(stream: &StreamId) -> Vec<u8> {
    // The zero ends a Workspace's name, so that no stream's entries lie between those of another.
    [b"s", stream.to_bytes().as_slice(), &[0]].concat()
}

fn sealed(key: &[u8], mut value: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c_append(crc32c::crc32c(key), &value);
    value.extend_from_slice(&checksum.to_le_bytes());
    value
}

fn checked<'a>(key: &[u8], value: &'a [u8]) -> Result<&'a [u8], IndexError> {
    let (value, checksum) =
        value.split_last_chunk::<4>().ok_or_else(|| IndexError("an entry is too short".into()))?;
    if crc32c::crc32c_append(crc32c::crc32c(key), value) == u32::from_le_bytes(*checksum) {
        Ok(value)
    } else {
        Err(IndexError("a checksum does not match".into()))
    }
}

/// What an entry adds to its segment's sum. A sum does not mind the order and notices what is missing or too much.
fn weight(key: &[u8], value: &[u8]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(key).update(value);
    let hash = hasher.finalize();
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
}

/// Reads numbers and hashes off the front of a value.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes<const N: usize>(&mut self) -> Result<&'a [u8; N], IndexError> {
        let (front, rest) =
            self.0.split_first_chunk::<N>().ok_or_else(|| IndexError("an entry is too short".into()))?;
        self.0 = rest;
        Ok(front)
    }

    fn u64(&mut self) -> Result<u64, IndexError> {
        self.bytes::<8>().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Seven bits a byte, least first; the high bit says that more follow.
    fn varint(&mut self) -> Result<u64, IndexError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = *self.bytes::<1>()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(IndexError("a number is too long".into()))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the low seven bits are what is wanted")]
fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// An `s` entry.
struct StreamEntry {
    segment: Position,
    last_hash: Hash,
    offsets: Vec<u64>,
}

impl StreamEntry {
    fn write(segment: Position, last_hash: Hash, offsets: &[u32]) -> Vec<u8> {
        let mut value = Vec::with_capacity(48 + offsets.len() * 2);
        value.extend_from_slice(&segment.0.to_le_bytes());
        value.extend_from_slice(&last_hash.0);
        let mut previous = 0;
        for offset in offsets {
            write_varint(u64::from(offset - previous), &mut value);
            previous = *offset;
        }
        value
    }

    fn read(value: &[u8]) -> Result<Self, IndexError> {
        let mut fields = Fields(value);
        let segment = Position(fields.u64()?);
        let last_hash = Hash(*fields.bytes::<32>()?);
        let (mut offsets, mut offset) = (Vec::new(), 0);
        while !fields.0.is_empty() {
            offset += fields.varint()?;
            offsets.push(offset);
        }
        Ok(Self { segment, last_hash, offsets })
    }
}

/// A `w` entry.
struct FullMark {
    mark: Mark,
    /// The sum of [`weight`] over the segment's `s` entries.
    streams: u64,
    /// The size of the filter: a lost chunk would make it forget ids.
    filter_bytes: u64,
    /// One bit for each shard that has a `c` entry: tells "not there" from "lost".
    shards: Vec<u8>,
}

impl FullMark {
    fn write(&self) -> Vec<u8> {
        let Mark { last, global, .. } = self.mark;
        let (streams, filter) = (self.streams.to_le_bytes(), self.filter_bytes.to_le_bytes());
        [&last.0.to_le_bytes()[..], &global.0, &streams, &filter, &self.shards].concat()
    }

    fn read(first: Position, value: &[u8]) -> Result<Self, IndexError> {
        let mut fields = Fields(value);
        let last = Position(fields.u64()?);
        let global = Hash(*fields.bytes::<32>()?);
        let (streams, filter_bytes) = (fields.u64()?, fields.u64()?);
        if fields.0.len() as u64 != SHARDS / 8 {
            return Err(IndexError("a mark has the wrong length".into()));
        }
        Ok(Self { mark: Mark { first, last, global }, streams, filter_bytes, shards: fields.0.to_vec() })
    }
}

/// The half of an id that is random in every kind of id, and its shard.
fn short_id(id: CommandId) -> (u64, u16) {
    let (high, low) = id.as_uuid().as_u64_pair();
    let short = super::filter::mix(low ^ high.rotate_left(32));
    (short, u16::try_from(short % SHARDS).expect("there are fewer shards"))
}

/// Where the entries of a segment go.
type Put<'a> = dyn FnMut(&[u8], Vec<u8>) -> Result<(), IndexError> + 'a;

/// Every entry of a segment but its mark, which is answered together with the filter.
fn put_segment(map: &SegmentMap, global: Hash, put: &mut Put<'_>) -> Result<(Filter, FullMark), IndexError> {
    let mut streams = 0u64;
    for (stream, places) in &map.streams {
        streams = streams.wrapping_add(put_stream(map.first, stream, places, put)?);
    }
    let near: Vec<u8> =
        map.offsets.iter().step_by(NEAR_EVENTS).flat_map(|offset| offset.to_le_bytes()).collect();
    put(&segment_key(b'p', map.first, &[]), near)?;
    let shards = put_commands(map, put)?;
    let filter = Filter::of(map.commands.keys());
    let bytes = filter.to_bytes();
    for (chunk, number) in bytes.chunks(CHUNK_BYTES).zip(0u32..) {
        put(&segment_key(b'f', map.first, &number.to_be_bytes()), chunk.to_vec())?;
    }
    let mark = Mark { first: map.first, last: map.last(), global };
    Ok((filter, FullMark { mark, streams, filter_bytes: bytes.len() as u64, shards }))
}

fn put_stream(
    segment: Position,
    stream: &StreamId,
    places: &StreamPlaces,
    put: &mut Put<'_>,
) -> Result<u64, IndexError> {
    let prefix = stream_prefix(stream);
    let mut sum = 0u64;
    for (offsets, number) in places.offsets.chunks(ENTRY_OFFSETS_MAX).zip(0u64..) {
        let first = places.first.0 + number * ENTRY_OFFSETS_MAX as u64;
        let key = [prefix.as_slice(), &first.to_be_bytes()].concat();
        let value = StreamEntry::write(segment, places.last_hash, offsets);
        sum = sum.wrapping_add(weight(&key, &value));
        put(&key, value)?;
    }
    Ok(sum)
}

fn put_commands(map: &SegmentMap, put: &mut Put<'_>) -> Result<Vec<u8>, IndexError> {
    let mut shards = BTreeMap::<u16, Vec<(u64, u32)>>::new();
    for (id, run) in &map.commands {
        let (short, shard) = short_id(*id);
        shards.entry(shard).or_default().push((short, run.index));
    }
    let mut present = vec![0; usize::try_from(SHARDS / 8).expect("small")];
    for (shard, mut ids) in shards {
        present[usize::from(shard / 8)] |= 1 << (shard % 8);
        // In the order of the log, so that the same segment always has the same entries.
        ids.sort_unstable_by_key(|(_, index)| *index);
        let bytes = |(short, index): (u64, u32)| [&short.to_le_bytes()[..], &index.to_le_bytes()].concat();
        let entry = ids.into_iter().flat_map(bytes).collect();
        put(&segment_key(b'c', map.first, &shard.to_be_bytes()), entry)?;
    }
    Ok(present)
}

impl SledIndex {
    /// Holds what is there of a segment against what belongs there; answers how many entries that is.
    pub(crate) fn compare(&self, map: &SegmentMap, global: Hash) -> Result<usize, IndexError> {
        guarded(|| {
            let mut count = 0;
            let mut same = |key: &[u8], value: Vec<u8>| {
                count += 1;
                let there = self.tree.get(key).map_err(|error| IndexError(error.to_string()))?;
                match there {
                    None => Err(IndexError(format!("an entry of segment {} is missing", map.first))),
                    // Entries of an older program stand in another order and say the same.
                    Some(there) if key[0] == b'c' && is_permutation(key, &there, &value) => Ok(()),
                    Some(there) if there[..] == sealed(key, value)[..] => Ok(()),
                    Some(_) => {
                        Err(IndexError(format!("an entry of segment {} says something else", map.first)))
                    }
                }
            };
            let (_, mark) = put_segment(map, global, &mut same)?;
            same(&segment_key(b'w', map.first, &[]), mark.write())?;
            Ok(count)
        })
    }

    /// How many entries there are in all.
    pub(crate) fn len(&self) -> Result<usize, IndexError> {
        guarded(|| Ok(self.tree.len()))
    }
}

/// Whether a `c` entry holds these ids in any order, under a good checksum.
fn is_permutation(key: &[u8], there: &[u8], wanted: &[u8]) -> bool {
    let sorted = |entry: &[u8]| {
        let mut ids: Vec<[u8; 12]> = entry.as_chunks::<12>().0.to_vec();
        ids.sort_unstable();
        ids
    };
    checked(key, there).is_ok_and(|there| there.len() == wanted.len() && sorted(there) == sorted(wanted))
}

impl Index for SledIndex {
    fn marks(&self) -> Result<Vec<Mark>, IndexError> {
        guarded(|| {
            let mut marks = Vec::new();
            for entry in self.tree.scan_prefix(b"w") {
                let (key, value) = entry.map_err(|error| IndexError(error.to_string()))?;
                let first =
                    Fields(&key[1..]).bytes::<8>().map(|bytes| Position(u64::from_be_bytes(*bytes)))?;
                marks.push(FullMark::read(first, checked(&key, &value)?)?.mark);
            }
            Ok(marks)
        })
    }

    fn add(&self, map: &SegmentMap, global: Hash) -> Result<Filter, IndexError> {
        guarded(|| {
            let mut batch = sled::Batch::default();
            let mut keys = 0;
            let (filter, mark) = put_segment(map, global, &mut |key, value| {
                batch.insert(key, sealed(key, value));
                keys += 1;
                if keys % BATCH_KEYS_MAX > 0 {
                    return Ok(());
                }
                let full = std::mem::take(&mut batch);
                self.tree.apply_batch(full).map_err(|error| IndexError(error.to_string()))
            })?;
            self.tree.apply_batch(batch).map_err(|error| IndexError(error.to_string()))?;
            // The mark comes last and after a flush: a crash leaves the segment unmarked, and it is put in again.
            self.tree.flush().map_err(|error| IndexError(error.to_string()))?;
            let key = segment_key(b'w', map.first, &[]);
            let mark = sealed(&key, mark.write());
            self.tree.insert(key, mark).map_err(|error| IndexError(error.to_string()))?;
            Ok(filter)
        })
    }

    fn heads(&self, tell: &mut dyn FnMut(StreamId, Head)) -> Result<(), IndexError> {
        let marks = self.marks()?;
        guarded(|| {
            let mut sums = BTreeMap::<Position, u64>::new();
            for entry in self.tree.scan_prefix(b"s") {
                let (key, value) = entry.map_err(|error| IndexError(error.to_string()))?;
                let value = checked(&key, &value)?;
                let (stream, first) = parse_stream_key(&key)?;
                let entry = StreamEntry::read(value)?;
                let sum = sums.entry(entry.segment).or_default();
                *sum = sum.wrapping_add(weight(&key, value));
                let sequence = Sequence(first + entry.offsets.len() as u64 - 1);
                // Keys rise with the sequence, so the last one told of a stream is its end.
                tell(stream, Head { sequence, hash: entry.last_hash });
            }
            for mark in &marks {
                if sums.remove(&mark.first) != Some(self.mark(mark.first)?.streams) {
                    return Err(IndexError("entries of a segment are missing or changed".into()));
                }
            }
            if sums.is_empty() { Ok(()) } else { Err(IndexError("entries of an unknown segment".into())) }
        })
    }

    fn stream_places(
        &self,
        stream: &StreamId,
        from: Sequence,
        count: usize,
    ) -> Result<Vec<Place>, IndexError> {
        guarded(|| {
            let prefix = stream_prefix(stream);
            let key_of = |sequence: u64| [prefix.as_slice(), &sequence.to_be_bytes()].concat();
            // The entry that holds `from` is the last one that begins at or before it.
            let holding = self.tree.range(key_of(0)..=key_of(from.0)).next_back();
            let Some(holding) = holding.transpose().map_err(|error| IndexError(error.to_string()))? else {
                return Ok(Vec::new());
            };
            let mut places = Vec::new();
            let mut next = from.0;
            for entry in self.tree.range(&holding.0[..]..=&key_of(u64::MAX)[..]) {
                let (key, value) = entry.map_err(|error| IndexError(error.to_string()))?;
                let (_, first) = parse_stream_key(&key)?;
                let entry = StreamEntry::read(checked(&key, &value)?)?;
                let skip = usize::try_from(next - first.min(next)).unwrap_or(usize::MAX);
                if first > next {
                    return Err(IndexError("entries of a stream have a gap".into()));
                }
                for offset in entry.offsets.iter().skip(skip).take(count - places.len()) {
                    places.push(Place { segment: entry.segment, offset: *offset });
                    next += 1;
                }
                if places.len() == count {
                    break;
                }
            }
            Ok(places)
        })
    }

    fn streams_between(&self, segment: Position, from: u64, to: u64) -> Result<Vec<StreamId>, IndexError> {
        guarded(|| {
            let mut streams = Vec::new();
            for entry in self.tree.scan_prefix(b"s") {
                let (key, value) = entry.map_err(|error| IndexError(error.to_string()))?;
                let entry = StreamEntry::read(checked(&key, &value)?)?;
                if entry.segment == segment {
                    let count = entry.offsets.iter().filter(|offset| (from..to).contains(*offset)).count();
                    let (stream, _) = parse_stream_key(&key)?;
                    streams.extend(std::iter::repeat_n(stream, count));
                }
            }
            Ok(streams)
        })
    }

    fn near(&self, segment: Position, position: Position) -> Result<(Position, u64), IndexError> {
        guarded(|| {
            let offsets = self.need(&segment_key(b'p', segment, &[]))?;
            let index = (position.0 - segment.0) / NEAR_EVENTS as u64;
            let at = usize::try_from(index * 4).unwrap_or(usize::MAX);
            let offset = offsets.get(at..).and_then(|rest| rest.first_chunk::<4>());
            let offset =
                offset.ok_or_else(|| IndexError("a segment is shorter than its footer says".into()))?;
            Ok((Position(segment.0 + index * NEAR_EVENTS as u64), u64::from(u32::from_le_bytes(*offset))))
        })
    }

    fn filter(&self, segment: Position) -> Result<Filter, IndexError> {
        guarded(|| {
            let mut bytes = Vec::new();
            for entry in self.tree.scan_prefix(segment_key(b'f', segment, &[])) {
                let (key, value) = entry.map_err(|error| IndexError(error.to_string()))?;
                bytes.extend_from_slice(checked(&key, &value)?);
            }
            let whole = self.mark(segment)?.filter_bytes == bytes.len() as u64;
            let filter = Filter::from_bytes(&bytes).filter(|_| whole);
            filter.ok_or_else(|| IndexError("a part of a filter is missing".into()))
        })
    }

    fn append_candidates(&self, segment: Position, id: CommandId) -> Result<Vec<Position>, IndexError> {
        guarded(|| {
            let (short, shard) = short_id(id);
            let shards = self.mark(segment)?.shards;
            if shards[usize::from(shard / 8)] & (1 << (shard % 8)) == 0 {
                return Ok(Vec::new());
            }
            let mut entry = &self.need(&segment_key(b'c', segment, &shard.to_be_bytes()))?[..];
            let mut candidates = Vec::new();
            while let Some((front, rest)) = entry.split_first_chunk::<12>() {
                let mut fields = Fields(front);
                if fields.u64()? == short {
                    let index = u32::from_le_bytes(*fields.bytes::<4>()?);
                    candidates.push(Position(segment.0 + u64::from(index)));
                }
                entry = rest;
            }
            Ok(candidates)
        })
    }
}

fn parse_stream_key(key: &[u8]) -> Result<(StreamId, u64), IndexError> {
    let bad = || IndexError("a key is not of its form".into());
    let (stream, first) = key.get(1..).and_then(|rest| rest.split_last_chunk::<8>()).ok_or_else(bad)?;
    let stream = stream.strip_suffix(&[0]).ok_or_else(bad)?;
    Ok((StreamId::from_bytes(stream).map_err(|_| bad())?, u64::from_be_bytes(*first)))
}
