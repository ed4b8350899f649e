//! given/when/then: the rules in the words of the domain. For tests of this and of other crates.
