mod adapter;
mod differences;
mod distributions;
mod experts;
mod interrupt;
mod memory;
mod scalar_head;
mod vocabulary;
