//! What the views promise, in the words of the domain.

mod audit;
mod feeding;
mod folds;
mod full_disk;
mod lists;
