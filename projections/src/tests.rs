//! What the views promise, in the words of the domain.

mod audit;
mod engines;
mod feeding;
mod folds;
mod full_disk;
mod lists;
