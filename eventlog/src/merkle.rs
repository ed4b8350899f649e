//! The Merkle tree over the log: what gives short proofs, which a chain can not.
//!
//! RFC 6962, section 2.1 (the same tree as RFC 9162, section 2.1): SHA-256, leaf `H(00 ‖ entry)`, node
//! `H(01 ‖ left ‖ right)`. The entry at index `p − 1` is the 32-byte hash of the event at position `p` in the chain of its
//! stream, which covers its envelope and everything before it in that stream.
//!
//! Pure. The tree is never stored: a [`Range`] of it is a few hashes, and it is folded again from the log at any time.

use sha2::{Digest as _, Sha256};

use crate::log::Hash;

/// The longest path that a proof may have: a tree of 2^64 leaves has no longer one.
pub const PATH_HASHES_MAX: usize = 64;

/// A hash of a leaf or a node of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TreeHash(pub [u8; 32]);

/// The hash of a leaf.
#[must_use]
pub fn leaf_hash(event: Hash) -> TreeHash {
    TreeHash(Sha256::new_with_prefix([0]).chain_update(event.0).finalize().into())
}

/// The hash of a node.
#[must_use]
pub fn node_hash(left: TreeHash, right: TreeHash) -> TreeHash {
    TreeHash(Sha256::new_with_prefix([1]).chain_update(left.0).chain_update(right.0).finalize().into())
}

/// A whole subtree: it spans the leaves `index << level ..  (index + 1) << level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    level: u32,
    index: u64,
    hash: TreeHash,
}

/// A run of leaves, folded into as few whole subtrees as there are: at most two for each level. Ranges of neighbours fold
/// together, so a log can be hashed in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    begin: u64,
    end: u64,
    nodes: Vec<Node>,
}

impl Range {
    /// An empty range; its first leaf will have this index.
    #[must_use]
    pub const fn new(begin: u64) -> Self {
        Self { begin, end: begin, nodes: Vec::new() }
    }

    /// The index of the first leaf.
    #[must_use]
    pub const fn begin(&self) -> u64 {
        self.begin
    }

    /// One more than the index of the last leaf: in a range from 0 on, the size of the tree.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Adds the next leaf.
    pub fn push(&mut self, event: Hash) {
        self.push_node(Node { level: 0, index: self.end, hash: leaf_hash(event) });
    }

    /// Adds the leaves of the range that begins where this one ends.
    ///
    /// # Panics
    /// When it begins elsewhere.
    pub fn extend(&mut self, next: &Self) {
        assert_eq!(self.end, next.begin, "ranges of a tree are joined in order");
        for node in &next.nodes {
            self.push_node(*node);
        }
    }

    fn push_node(&mut self, node: Node) {
        self.end = (node.index + 1) << node.level;
        let mut right = node;
        while let Some(left) = self.nodes.last().copied()
            && left.level == right.level
            && left.index % 2 == 0
            && left.index + 1 == right.index
        {
            self.nodes.pop();
            right =
                Node { level: left.level + 1, index: left.index / 2, hash: node_hash(left.hash, right.hash) };
        }
        self.nodes.push(right);
    }

    /// The root of the tree of these leaves; only a range from 0 on is a tree.
    #[must_use]
    pub fn root(&self) -> Option<TreeHash> {
        (self.begin == 0).then(|| self.fold())
    }

    fn fold(&self) -> TreeHash {
        let mut right_to_left = self.nodes.iter().rev().map(|node| node.hash);
        match right_to_left.next() {
            Some(last) => right_to_left.fold(last, |right, left| node_hash(left, right)),
            None => TreeHash(Sha256::digest([]).into()),
        }
    }
}

/// Collects the path from one leaf to the root of a tree while the leaves go by, in memory of a few hashes.
///
/// The path of leaf `m` in a tree of `n` leaves is made of the roots of the subtrees beside its way up (RFC 6962, section
/// 2.1.1). Which these are depends on `m` and `n` alone, so each is folded as its leaves pass.
#[derive(Debug)]
pub struct PathBuilder {
    index: u64,
    /// The subtrees beside the way, from the leaf up: their leaves, and what was folded of them so far.
    siblings: Vec<(std::ops::Range<u64>, Range)>,
    /// Siblings sorted by their first leaf, the next one to be filled last.
    order: Vec<usize>,
    next: u64,
}

impl PathBuilder {
    /// For the leaf at `index` in a tree of `size` leaves; `None` if it is not in it.
    #[must_use]
    pub fn new(index: u64, size: u64) -> Option<Self> {
        if index >= size {
            return None;
        }
        let mut siblings = Vec::new();
        let (mut low, mut high) = (0, size);
        while high - low > 1 {
            let middle = low + split(high - low);
            let beside = if index < middle { middle..high } else { low..middle };
            (low, high) = if index < middle { (low, middle) } else { (middle, high) };
            siblings.push((beside.clone(), Range::new(beside.start)));
        }
        siblings.reverse();
        let mut order: Vec<usize> = (0..siblings.len()).collect();
        order.sort_unstable_by_key(|at| std::cmp::Reverse(siblings[*at].0.start));
        Some(Self { index, siblings, order, next: 0 })
    }

    /// Takes the next leaf; those beyond the tree are ignored.
    pub fn push(&mut self, event: Hash) {
        let at = self.next;
        self.next += 1;
        if at == self.index {
            return;
        }
        let Some(sibling) = self.order.last().map(|at| &mut self.siblings[*at]) else { return };
        sibling.1.push(event);
        if sibling.1.end() == sibling.0.end {
            self.order.pop();
        }
    }

    /// The path, from the leaf's sibling up to the root's; `None` if leaves are missing.
    #[must_use]
    pub fn finish(self) -> Option<Vec<TreeHash>> {
        (self.order.is_empty() && self.next > self.index)
            .then(|| self.siblings.iter().map(|(_, range)| range.fold()).collect())
    }
}

/// The largest power of two below `leaves`, which is at least 2.
const fn split(leaves: u64) -> u64 {
    1 << (63 - (leaves - 1).leading_zeros())
}

/// The root that a path leads to from this event at `index` in a tree of `size` leaves; `None` if the path has not the
/// length that it must have. RFC 9162, section 2.1.3.2.
#[must_use]
pub fn root_of_path(event: Hash, index: u64, size: u64, path: &[TreeHash]) -> Option<TreeHash> {
    if index >= size {
        return None;
    }
    let (mut node, mut last) = (index, size - 1);
    let mut hash = leaf_hash(event);
    for sibling in path {
        if last == 0 {
            return None;
        }
        if node % 2 == 1 || node == last {
            hash = node_hash(*sibling, hash);
            while node % 2 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            hash = node_hash(hash, *sibling);
        }
        node >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(n: u64) -> Hash {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&n.to_le_bytes());
        Hash(bytes)
    }

    /// The definition of RFC 6962, section 2.1, word for word.
    fn naive_root(events: &[Hash]) -> TreeHash {
        match events {
            [] => TreeHash(Sha256::digest([]).into()),
            [one] => leaf_hash(*one),
            _ => {
                let (left, right) =
                    events.split_at(usize::try_from(split(events.len() as u64)).expect("it is there"));
                node_hash(naive_root(left), naive_root(right))
            }
        }
    }

    #[test]
    fn a_range_has_the_root_of_the_definition_however_it_was_put_together() {
        let events: Vec<Hash> = (0..70).map(event).collect();
        for size in 0..=events.len() {
            let wanted = naive_root(&events[..size]);
            for cut in 0..=size {
                let (mut left, mut right) = (Range::new(0), Range::new(cut as u64));
                events[..cut].iter().for_each(|event| left.push(*event));
                events[cut..size].iter().for_each(|event| right.push(*event));
                left.extend(&right);
                assert_eq!(left.root(), Some(wanted), "{size} leaves cut at {cut}");
                assert_eq!(left.end(), size as u64);
                assert_eq!(right.root().is_some(), cut == 0);
            }
        }
    }

    #[test]
    fn a_path_leads_from_its_leaf_to_the_root_and_from_no_other() {
        let events: Vec<Hash> = (0..40).map(event).collect();
        for size in 1..=events.len() as u64 {
            let root = naive_root(&events[..usize::try_from(size).expect("it is there")]);
            for index in 0..size {
                let mut builder = PathBuilder::new(index, size).expect("it is there");
                // What goes by behind the tree does no harm.
                events.iter().for_each(|event| builder.push(*event));
                let path = builder.finish().expect("it is there");
                assert_eq!(root_of_path(event(index), index, size, &path), Some(root), "{index} of {size}");
                assert_ne!(root_of_path(event(99), index, size, &path), Some(root));
                for other in (0..size).filter(|other| *other != index) {
                    assert_ne!(root_of_path(event(index), other, size, &path), Some(root));
                }
                let longer = [path.as_slice(), &[root]].concat();
                assert_eq!(root_of_path(event(index), index, size, &longer), None);
                if let Some((_, shorter)) = path.split_last() {
                    assert_eq!(root_of_path(event(index), index, size, shorter), None);
                }
            }
        }
    }

    #[test]
    fn the_roots_of_the_published_test_vectors_come_out() {
        // RFC 6962 names the empty tree; a leaf of 32 zeros is ours.
        let empty = hex::encode(Range::new(0).root().expect("it is there").0);
        assert_eq!(empty, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let leaf = hex::encode(leaf_hash(Hash([0; 32])).0);
        assert_eq!(leaf, hex::encode(Sha256::digest([0; 33])));
    }

    #[test]
    fn an_unfinished_path_is_none() {
        let mut builder = PathBuilder::new(1, 4).expect("it is there");
        (0..3).for_each(|n| builder.push(event(n)));
        assert_eq!(builder.finish(), None);
        assert!(PathBuilder::new(4, 4).is_none());
    }
}
