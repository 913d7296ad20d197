//! Linear encryption against the clear computation, against bad input and against its key holder.

mod exactness;
mod noise;
mod privacy;
mod refusal;
