//! Wiping long secrets quickly.

/// Overwrites all words with noughts. The crate `zeroize` writes word by word, so that nothing can be left out; here the
/// words are filled at once, and the barrier of that crate makes the compiler believe that they are read afterwards.
pub(crate) fn wipe<T: Copy + Default>(words: &mut [T]) {
    words.fill(T::default());
    zeroize::optimization_barrier(words);
}
