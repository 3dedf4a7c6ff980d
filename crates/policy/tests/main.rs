//! Tests of the language's public face: what is accepted, what is refused, and with which words.

mod examples;
mod golden;
mod properties;
mod sample;
