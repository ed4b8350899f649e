//! A Bloom filter over the command ids of one segment: answers nearly every "was this id seen?" without a lookup.

use crate::id::CommandId;

/// Twelve bits and six probes per id: about 1 in 300 unknown ids is looked up in vain.
const BITS_PER_ID: usize = 12;
const PROBES: u64 = 6;

/// The filter of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    pub(crate) fn of<'a>(ids: impl ExactSizeIterator<Item = &'a CommandId>) -> Self {
        let words = (ids.len() * BITS_PER_ID).div_ceil(64).max(1);
        let mut filter = Self { words: vec![0; words] };
        for id in ids {
            for bit in filter.probes(*id) {
                filter.words[bit / 64] |= 1 << (bit % 64);
            }
        }
        filter
    }

    /// `false` only if the id is certainly not in the segment.
    pub(crate) fn may_hold(&self, id: CommandId) -> bool {
        self.probes(id).all(|bit| self.words[bit / 64] & (1 << (bit % 64)) != 0)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// `None`: not the bytes of a filter.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        (rest.is_empty() && !words.is_empty())
            .then(|| Self { words: words.iter().map(|word| u64::from_le_bytes(*word)).collect() })
    }

    fn probes(&self, id: CommandId) -> impl Iterator<Item = usize> + use<> {
        let bits = self.words.len() as u64 * 64;
        let (high, low) = id.as_uuid().as_u64_pair();
        // Ids made in the same millisecond share their high half, so both halves go into both hashes.
        let first = mix(low ^ high.rotate_left(32));
        let second = mix(first ^ high) | 1;
        (0..PROBES).map(move |probe| {
            let bit = first.wrapping_add(probe.wrapping_mul(second)) % bits;
            usize::try_from(bit).expect("a filter is smaller than memory")
        })
    }
}

/// The finalizer of splitmix64: every input bit reaches every output bit.
pub(crate) const fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn id(n: u64) -> CommandId {
        CommandId::from_uuid(Uuid::from_u64_pair(0x0193_7a2b_1c3d_7e4f, 0x8000_0000_0000_0000 | n))
    }

    #[test]
    fn a_filter_holds_all_of_its_ids_and_few_others() {
        let ids: Vec<CommandId> = (0..10_000).map(id).collect();
        let filter = Filter::of(ids.iter());
        let filter = Filter::from_bytes(&filter.to_bytes()).expect("it reads back");
        assert!(ids.iter().all(|id| filter.may_hold(*id)));
        let others = (10_000..20_000).filter(|n| filter.may_hold(id(*n))).count();
        assert!(others < 100, "{others} of 10,000 unknown ids pass");
    }
}
